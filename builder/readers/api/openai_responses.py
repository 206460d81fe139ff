"""OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from builder.conversation import (
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers.api import response_items
from builder.readers.api.codec import Api, ApiAnswer, History, Kept, ServerStep, weight
from builder.readers.api.dialects import OPENAI_RESPONSES, ROLES, path_of
from builder.readers.api.exchanges import Exchange
from builder.readers.api.histories import PENDING
from builder.readers.api.response_items import definitions
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted, unknown_names

_Item = dict[str, Json]

_CALLS = {
    "local_shell_call": ("local_shell", "action"),
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    "computer_call": ("computer", "action"),
}
"""Calls of built-in tools that the client runs: the tool's name, and the field of arguments."""

_NAMED_CALLS = frozenset({"function_call", "custom_tool_call", "tool_search_call"})
_OUTPUTS = frozenset({
    "function_call_output", "custom_tool_call_output", "tool_search_output",
    "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
    "computer_call_output",
})  # fmt: skip
_SERVER = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "mcp_call", "mcp_approval_request", "program", "program_output",
})  # fmt: skip
_SILENT = frozenset({"mcp_list_tools", "mcp_approval_response", "compaction_trigger"})
"""Items without content: lists of a server's tools, and approvals by the user."""

_LOCAL_ID = "__fake_id__"
"""The id of items that OpenAI's Agents SDK made of a Chat Completions message, which holds the
model's own thought."""

ITEMS = (
    frozenset(_CALLS)
    | _NAMED_CALLS
    | _OUTPUTS
    | _SERVER
    | response_items.COMPACTIONS
    | _SILENT
    | {"message", "reasoning", "additional_tools", "item_reference"}
)
"""All known types."""

_KEYS = MESSAGE_KEYS | {
    "arguments", "call_id", "output", "summary", "input", "action", "actions", "operation",
    "namespace", "caller", "environment", "execution", "tools", "queries", "results", "code",
    "outputs", "container_id", "server_label", "error", "pending_safety_checks", "result",
    "acknowledged_safety_checks", "revised_prompt", "approval_request_id", "reason", "approve",
    "created_by", "max_output_length",
}  # fmt: skip
"""Keys of items that are known."""


def item_type(item: _Item) -> str:
    """Returns the item's type, which messages and references to items may lack."""
    if isinstance(item.get("type"), str):
        return as_str(item.get("type"))
    if "role" in item:
        return "message"
    return "item_reference" if set(item) - {"type"} == {"id"} else "nothing"


def _is_said_by_others(item: _Item) -> bool:
    return item_type(item) == "message" and item.get("role", "assistant") != "assistant"


class ItemReading:
    """Collects items into messages.

    messages  the messages so far
    tools     definitions given to the model during the conversation, all before `loaded_at`
    missing   references to items that are not in the log
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.tools: list[Json] = []
        self.loaded_at = 0
        self.missing: list[str] = []
        self._answer: list[Part] = []  # parts of the current assistant message
        self._unknown: list[str] = []  # its unknown keys
        self._server_calls: set[str] = set()  # ids of calls that no client answers

    def read(self, items: Iterable[Json]) -> ItemReading:
        """Takes the items of a request."""
        for value in items:
            self._take(as_dict(value), answer=False)
        self._end()
        return self

    def read_answer(self, items: Iterable[Json]) -> Message:
        """Returns the items of a response as one message."""
        for value in items:
            self._take(as_dict(value), answer=True)
        return Message("assistant", tuple(self._answer), unknown=tuple(self._unknown))

    def _take(self, item: _Item, *, answer: bool) -> None:
        kind = item_type(item)
        if (
            not answer
            and kind in ("message", "reasoning")
            and any(isinstance(part, ToolCall) for part in self._answer)
        ):
            self._end()
        if answer and _is_said_by_others(item):
            self._answer.append(unknown_part(f"message of {as_str(item.get('role'))}"))
        elif kind == "message" and (answer or item.get("role") == "assistant"):
            self._answer += thoughts_of_keys(item)
            self._answer += response_items.content_parts(item.get("content"))
        elif kind == "message":
            self._end()
            parts = response_items.content_parts(item.get("content"))
            message = Message(as_str(item.get("role"))[:40], tuple(parts))
            self.messages += noted([message], item, _KEYS)
            return
        elif kind == "reasoning":
            self._answer += self._thoughts(item)
        elif kind in _NAMED_CALLS or kind in _CALLS:
            self._answer += thoughts_of_keys(item)
            self._answer.append(self._call(kind, item))
        elif kind in _OUTPUTS:
            self._output(kind, item, answer=answer)
        elif kind in _SERVER:
            self._answer.append(_server(kind))
        elif kind in response_items.COMPACTIONS:
            self._answer.append(Unparsed(kind, "encrypted_context"))
        elif kind == "additional_tools":
            self._offer(item)
        elif kind == "item_reference":
            self.missing.append(as_str(item.get("id")))
        elif kind not in _SILENT:
            self._answer.append(unknown_part(kind))
            return
        if kind not in _OUTPUTS:
            self._unknown += unknown_names(item, _KEYS)

    def _thoughts(self, item: _Item) -> list[Part]:
        """Returns thoughts in clear text, else the summary of them by another model."""
        texts = [as_str(part.get("text")) for part in as_dicts(item.get("content"))]
        summary = [as_str(part.get("text")) for part in as_dicts(item.get("summary"))]
        if not any(texts) and item.get("id") == _LOCAL_ID:
            texts = summary
        thoughts: list[Part] = [Reasoning(text) for text in texts if text]
        thoughts = thoughts or thoughts_of_keys(item)
        if summary and not thoughts:
            thoughts.append(Reasoning("\n\n".join(summary), is_summary=True))
        return thoughts

    def _call(self, kind: str, item: _Item) -> ToolCall | Unparsed:
        call_id = response_items.call_id(item)
        caller = as_str(item, "caller", "type")
        container = as_str(item, "environment", "type").startswith("container")
        if caller not in ("", "direct") or container or item.get("execution") == "server":
            self._server_calls.add(call_id or "")
            return (
                _server(kind)
                if container or not caller
                else Unparsed(as_str(item.get("name")), "programmatic_call")
            )
        if kind in _CALLS:
            name, field = _CALLS[kind]
            arguments = item.get(field)
            if kind == "computer_call" and "actions" in item:
                arguments = {"actions": item["actions"]}
            return ToolCall(name, arguments, call_id)
        if kind != "tool_search_call" and name_or_none(item.get("name")) is None:
            return Unparsed(dumps(item), "bad_call")
        if item.get("namespace") == item.get("name"):  # a deferred tool outside of any namespace
            item = {**item, "namespace": None}
        return response_items.call(item)

    def _output(self, kind: str, item: _Item, *, answer: bool) -> None:
        call_id = response_items.call_id(item)
        server = (
            answer or item.get("execution") == "server" or (call_id or "") in self._server_calls
        )
        if server:
            self._answer.append(_server(kind))
        else:
            self._end()
            result = _result(kind, item, call_id)
            self.messages += noted([Message("tool", (result,))], item, _KEYS)
        if kind == "tool_search_output":
            self._offer(item)

    def _offer(self, item: _Item) -> None:
        for tool in response_items.definitions(item.get("tools")):
            if tool not in self.tools:
                self.tools.append(tool)
                self.loaded_at = len(self.messages) + bool(self._answer)

    def _end(self) -> None:
        if self._answer:
            unknown = tuple(self._unknown)
            self.messages.append(Message("assistant", tuple(self._answer), unknown=unknown))
            self._answer = []
            self._unknown = []


def _result(kind: str, item: _Item, call_id: str | None) -> ToolResult:
    if kind == "computer_call_output":
        return ToolResult((Media("image"),), call_id)
    result = response_items.result({**item, "call_id": call_id})
    if kind == "apply_patch_call_output" and not result.content:
        result = replace(result, content=(Data({"status": item.get("status")}),))
    return replace(result, is_error=item.get("status") == "failed" or None)


def _server(kind: str) -> Unparsed:
    # Only the type, since clients do not send the whole item back.
    return Unparsed(kind, "server_tool")


_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


def whole_response(events: Iterable[Json]) -> dict[str, Json]:
    """Returns the response of the events, in the form of a response that is not streamed.

    Its status is "incomplete" if the end is missing. Some servers leave `output` of the last event
    empty; it is then filled with the completed items and the text of incomplete ones, but no
    incomplete calls.
    """
    response: dict[str, Json] = {}
    ended = broken = False
    done: dict[int, Json] = {}
    words: dict[int, list[str]] = {}
    for value in events:
        event = as_dict(value)
        kind = as_str(event.get("type"))
        at = index if isinstance(index := event.get("output_index"), int) else len(done)
        if isinstance(event.get("response"), dict):
            response = as_dict(event["response"])
            ended = kind in _ENDS
        elif kind == "response.output_item.done":
            done[at] = event.get("item")
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            words.setdefault(at, []).append(as_str(event.get("delta")))
        elif kind == "error":
            broken = True
    if broken or not ended:
        response = {**response, "status": "incomplete"}
    if not as_list(response.get("output")):
        for at in words.keys() - done.keys():
            done[at] = {"type": "message", "role": "assistant", "content": "".join(words[at])}
        response = {**response, "output": [done[at] for at in sorted(done)]}
    return response


_KEPT = ("previous_response_id", "conversation", "prompt")
"""Fields of a request that refer to a history or prompt on the server."""


def history(body: dict[str, Json]) -> History:
    """Returns the history of a request; `missing_history` if the server keeps part of it."""
    instructions = body.get("instructions")
    system = as_list(instructions)
    if isinstance(instructions, str) and instructions:
        system = [{"role": "system", "content": instructions}]
    reading = ItemReading().read([*system, *items(body.get("input"))])
    problems: tuple[Problem, ...] = ()
    kept = [name for name in _KEPT if body.get(name)]
    if kept or reading.missing:
        detail = f"{', '.join(kept) or 'item_reference'} refers to data that is not in the log"
        problems = (Problem("missing_history", "request", detail, records=0),)
    read = History(
        tuple(reading.messages),
        _tools(body, reading.tools),
        name_or_none(body.get("model")),
        problems,
        loaded_at=reading.loaded_at,
    )
    names = {as_str(tool, "name") for tool in reading.tools}
    return read.without_deferred(names, reading.loaded_at)


def items(value: Json) -> list[Json]:
    """Returns the items of an `input`; a text is the user's."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value else []
    return as_list(value)


def _tools(body: dict[str, Json], later: list[Json]) -> tuple[Json, ...] | None:
    if not isinstance(body.get("tools"), list) and not later:
        return None
    tools = list(definitions(body.get("tools")))
    names = [as_dict(tool).get("name") for tool in tools]
    return (*tools, *(tool for tool in later if as_dict(tool).get("name") not in names))


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the answer, or () if the response is an error or not complete yet."""
    body = exchange.answer_body(whole_response)
    output = as_list(body.get("output"))
    status = as_str(body.get("status"))
    if status in PENDING or not output:
        return ()
    fault = None
    if status in ("incomplete", "failed", "cancelled") or body.get("error"):
        reason = as_dict(body.get("incomplete_details")).get("reason")
        fault = "content_filter" if reason == "content_filter" else "truncated"
    elif any(as_dict(item).get("status") == "incomplete" for item in output):
        fault = "truncated"
    message = ItemReading().read_answer(output)
    return (ApiAnswer(message, fault=fault, model=name_or_none(body.get("model"))),)


def continues(before: Json, after: Json) -> bool:
    """Returns whether an event belongs to the same response as the previous one."""
    one, other = as_str(before, "type"), as_str(after, "type")
    if not (one.startswith("response.") and other.startswith("response.")):
        return False
    return other != "response.created"


class _ServerHistories:
    """Histories kept by the server, by the id of a response or conversation.

    `instructions` are not inherited; each request's own are its system text. The beginning of a
    conversation is known only if the log contains the request that created it.
    """

    def __init__(self) -> None:
        self._steps: Kept[ServerStep] = Kept()
        self._items: Kept[Json] = Kept()  # by their own ids
        self._waiting: Kept[dict[str, Json]] = Kept()  # requests, by the ids of their responses

    def complete(self, exchange: Exchange) -> Exchange:
        """Returns the exchange with the history that its request names, as far as it is logged.

        A response that the client polls by its id gets the request that began it.
        """
        response = exchange.response or {}
        if exchange.events is not None:
            response = whole_response(exchange.events)
        if exchange.dialect != OPENAI_RESPONSES:
            self._begin(exchange, response)
            return exchange
        response_id = name_or_none(response.get("id")) or ""
        sent = exchange.request if exchange.request is not None else self._waiting.get(response_id)
        if sent is None:
            return exchange
        own = [
            (item_type(as_dict(item)) == "item_reference" and self._items.get(as_str(item, "id")))
            or item
            for item in items(sent.get("input"))
        ]
        previous = name_or_none(sent.get("previous_response_id"))
        conversation = name_or_none(sent.get("conversation"))
        conversation = conversation or name_or_none(as_dict(sent, "conversation").get("id"))
        named = previous or conversation
        before = self._steps.get(named) if named is not None else None
        step = ServerStep.after(before, named, own)
        request: dict[str, Json] = {**sent, "input": step.all()}
        for name in ("previous_response_id", "conversation") if step.whole else ():
            request.pop(name, None)
        if sent.get("prompt") and response.get("instructions"):
            # The response contains the stored prompt, filled in, and its tools.
            del request["prompt"]
            request["instructions"] = response["instructions"]
            request.setdefault("tools", response.get("tools"))
        output = _whole(as_list(response.get("output")))
        completed = replace(exchange, request=request)
        if turns := _server_turns(output):
            sent_alone = dict(request)
            request["input"] = [*as_list(request["input"]), *output[:turns]]
            rest: dict[str, Json] = {**response, "output": output[turns:]}
            completed = replace(completed, response=rest, events=None, sent=sent_alone)
        answered = answers(completed)
        if answered:
            added = [*own, *output]
            for value in added:
                if (own_id := name_or_none(as_dict(value).get("id"))) is not None:
                    self._items.put(own_id, value, weight(value))
            step = replace(step, items=tuple(added))
            for name in filter(None, (response_id, conversation)):
                self._steps.put(name, step, weight(added))
        if response_id and not any(answer.usable for answer in answered):
            self._waiting.put(response_id, sent, weight(sent))
        return completed

    def _begin(self, exchange: Exchange, response: dict[str, Json]) -> None:
        made = name_or_none(response.get("id"))
        if made is not None and path_of(exchange.url).endswith("/conversations"):
            given = as_list((exchange.request or {}).get("items"))
            self._steps.put(made, ServerStep(None, tuple(given), whole=True), weight(given))


def _server_turns(output: list[Json]) -> int:
    """Returns the number of items before the last turn of a response.

    A server that runs functions itself returns calls, their outputs and the next answers in one
    response. The environments of NeMo Gym also return what a user says in between.
    """
    called: set[str] = set()
    turns = 0
    for at, value in enumerate(output):
        item = as_dict(value)
        call_id = as_str(item.get("call_id"))
        if item.get("type") == "function_call" and "caller" not in item:
            called.add(call_id)
        elif (
            item.get("type") == "function_call_output" and call_id in called
        ) or _is_said_by_others(item):
            turns = at + 1
    return turns


def _whole(output: list[Json]) -> list[Json]:
    """Returns the items of a response; of one that lists all its states (Aviary), the last."""
    last = output[-1] if output else None
    return last if isinstance(last, list) and all(isinstance(it, list) for it in output) else output


RESPONSES = Api(OPENAI_RESPONSES, history, answers, continues, lambda: _ServerHistories().complete)


_PAIRED = frozenset({"function_call", "function_call_output"})
_ANSWERS = frozenset({"output", "response", "outputs"})


def is_list(values: Sequence[Json]) -> bool:
    """Returns whether values are all items, at least one a function call or its output."""
    if not all(_is_item(as_dict(value)) for value in values):
        return False
    return any(item_type(as_dict(value)) in _PAIRED for value in values)


def _is_item(item: dict[str, Json]) -> bool:
    kind = item_type(item)
    if kind == "message":
        return as_str(item.get("role")) in ROLES and isinstance(item.get("content"), str | list)
    if kind in _PAIRED:
        return isinstance(item.get("call_id"), str)
    return kind in ITEMS and kind != "item_reference"


def is_row(value: Json) -> bool:
    """Returns whether a record is a row: items under `input`, without a model and an answer."""
    if not isinstance(value, dict) or "model" in value or not _ANSWERS.isdisjoint(value):
        return False
    return is_list(as_list(value.get("input")))
