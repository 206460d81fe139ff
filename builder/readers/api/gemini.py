"""The Gemini API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from builder.conversation import (
    Content,
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers.api.codec import Api, ApiAnswer, History, Kept, ServerStep, weight
from builder.readers.api.dialects import GEMINI, is_interaction, is_interaction_event, path_of
from builder.readers.api.exchanges import Exchange
from builder.readers.toolkit.chat_messages import (
    media_of,
    results_apart,
    text_or_data,
    value_arguments,
)
from builder.readers.toolkit.comparison import CallKeys
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_int,
    as_list,
    as_str,
    flag_or_none,
    name_or_none,
    one_or_many,
    tuple_or_none,
)
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted

_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_ENDED = frozenset({"completed", "requires_action"})
"""Statuses of a complete answer; the second one of an answer that calls tools."""


def _interaction_history(body: dict[str, Json]) -> History:
    messages: list[Message] = []
    if system := as_str(body.get("system_instruction")):
        messages.append(Message("system", (Text(system),)))
    messages += _messages(one_or_many(body.get("input")))
    problems: tuple[Problem, ...] = ()
    if body.get("previous_interaction_id") or body.get("cached_content"):
        detail = "the service keeps the history"
        problems = (Problem("missing_history", "request", detail, records=0),)
    tools = tuple_or_none(body.get("tools"))
    return History(tuple(messages), tools, name_or_none(body.get("model")), problems)


def _messages(items: Iterable[Json]) -> Iterator[Message]:
    """Yields the messages of steps, turns with a role, or bare contents (of the user).

    Consecutive steps of the model are one message.
    """
    role, parts = "", list[Part]()
    for item in items:
        for part_role, part in _parts_by_role(item):
            if parts and part_role != role:
                yield Message(role, tuple(parts))
                parts = []
            role = part_role
            parts.append(part)
    if parts:
        yield Message(role, tuple(parts))


def _typed(item: Json) -> dict[str, Json]:
    return {"type": "text", "text": item} if isinstance(item, str) else as_dict(item)


def _parts_by_role(item: Json) -> Iterator[tuple[str, Part]]:
    step = _typed(item)
    kind = as_str(step.get("type"))
    if "role" in step and not kind:
        role = {"model": "assistant"}.get(as_str(step["role"]), as_str(step["role"])[:40])
        for piece in one_or_many(step.get("content")):
            for part_role, part in _parts_by_role(piece):
                yield part_role if part_role == "tool" else role, part
    elif kind == "user_input":
        yield from (("user", part) for part in _contents(step.get("content")))
    elif kind == "function_result":
        yield "tool", _step_result(step)
    elif kind == "text" or kind in _MEDIA:
        yield from (("user", part) for part in _contents([step]))
    else:
        yield from (("assistant", part) for part in _model_parts(step))


def _model_parts(step: dict[str, Json]) -> Iterator[Part]:
    kind = as_str(step.get("type"))
    if kind == "model_output":
        yield from _contents(step.get("content"))
    elif kind == "thought":
        pieces = [as_str(item.get("text")) for item in as_dicts(step.get("summary"))]
        if text := "".join(pieces):
            yield Reasoning(text)
    elif kind == "function_call":
        call_id = name_or_none(step.get("id"))
        yield ToolCall(as_str(step.get("name")), step.get("arguments"), call_id)
    elif kind.endswith(("_call", "_result")) and kind != "function_result":
        yield Unparsed(dumps(step), "server_tool")
    else:
        yield unknown_part(kind or "nothing")


def _contents(value: Json) -> Iterator[Text | Media | Unparsed]:
    for item in one_or_many(value):
        content = _typed(item)
        kind = as_str(content.get("type"))
        if kind in _MEDIA:
            yield Media(_MEDIA[kind], as_str(content.get("mime_type")))
        elif kind == "text":
            if text := as_str(content.get("text")):
                yield Text(text)
        elif item is not None:
            yield unknown_part(kind or "nothing")


def _step_result(step: dict[str, Json]) -> ToolResult:
    value = step.get("result")
    content: tuple[Content, ...]
    if isinstance(value, list) and all(as_dict(item).get("type") for item in value):
        content = tuple(_contents(value))
    else:
        content = text_or_data(value)
    return ToolResult(
        content,
        call_id=name_or_none(step.get("call_id")),
        name=name_or_none(step.get("name")),
        is_error=flag_or_none(step.get("is_error")),
    )


# -- answers -------------------------------------------------------------------------------------


def _interaction_answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    body = exchange.answer_body(_whole_interaction)
    steps = _steps_of(body)
    if not steps:
        return ()
    parts = [part for step in steps for part in _model_parts(step)]
    failed = any(step.get("error") for step in steps)
    return [
        ApiAnswer(
            Message("assistant", tuple(parts)),
            fault=None if as_str(body.get("status")) in _ENDED and not failed else "truncated",
            model=name_or_none(body.get("model")),
        )
    ]


def _steps_of(body: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the model's steps in an interaction, without the input that it repeats."""
    found = (*as_dicts(body.get("steps")), *as_dicts(body.get("outputs")))
    steps = map(_step, found)
    return [step for step in steps if step.get("type") != "user_input"]


def _step(output: dict[str, Json]) -> dict[str, Json]:
    kind = as_str(output.get("type"))
    spoken = kind == "text" or kind in _MEDIA
    return {"type": "model_output", "content": [output]} if spoken else output


def _whole_interaction(events: Iterable[Json]) -> dict[str, Json]:
    """Returns the interaction assembled from events; its status is None if they are incomplete."""
    steps: dict[int, _Open] = {}
    whole: dict[str, Json] = {}
    broken = False
    for item in events:
        event = as_dict(item)
        kind = as_str(event.get("event_type"))
        if kind == "error" or event.get("error"):
            broken = True
        elif kind.startswith("interaction."):
            whole |= as_dict(event.get("interaction"))
        place = as_int(event.get("index"))
        if kind.endswith(".start") and not kind.startswith("interaction."):
            steps[place] = _Open(_step(as_dict(event.get("step") or event.get("content"))))
        elif kind.endswith(".delta"):
            steps.setdefault(place, _Open({})).add(as_dict(event.get("delta")))
    if not as_list(whole.get("steps")) and not as_list(whole.get("outputs")):
        whole["steps"] = [steps[place].whole() for place in sorted(steps)]
    return {**whole, "status": None if broken else whole.get("status")}


class _Open:
    """A step that is assembled from its pieces. Appends in place to lists that it created."""

    def __init__(self, start: dict[str, Json]) -> None:
        self.step = dict(start)
        self.lists: dict[str, list[Json]] = {}
        self.arguments: list[Json] = []

    def add(self, delta: dict[str, Json]) -> None:
        """Adds a piece; the first may contain the type of the step."""
        kind = as_str(delta.get("type"))
        if kind == "text" or kind in _MEDIA:
            self.step.setdefault("type", "model_output")
            self._append("content", delta)
        elif kind == "thought_summary":
            self.step.setdefault("type", "thought")
            self._append("summary", delta.get("content"))
        elif kind == "arguments_delta":
            before = self.step.get("arguments")  # {} from the start of the step
            if before is not self.arguments:
                self.arguments = [before] if isinstance(before, str) else []
                self.step["arguments"] = self.arguments
            self.arguments.append(as_str(delta.get("arguments")))
        elif kind not in ("thought_signature", "text_annotation_delta"):
            self.step.update(delta)

    def _append(self, name: str, item: Json) -> None:
        if name not in self.lists or self.step.get(name) is not self.lists[name]:
            self.lists[name] = [*as_list(self.step.get(name))]
            self.step[name] = self.lists[name]
        self.lists[name].append(item)

    def whole(self) -> dict[str, Json]:
        """Returns the step assembled so far."""
        if self.step.get("arguments") is not self.arguments:
            return self.step
        return {**self.step, "arguments": "".join(map(as_str, self.arguments))}


_RUN_BY_SDK = ("automatic_function_calling_history", "automaticFunctionCallingHistory")


def complete() -> Callable[[Exchange], Exchange]:
    """Returns a function that completes the requests of one log; call it in the log's order."""
    links = _Links()

    def completed(exchange: Exchange) -> Exchange:
        first = as_dict((exchange.events or (exchange.response,))[0])
        if is_interaction(first) or "input" in (exchange.request or {}):
            return links.complete(exchange)
        return _with_own_calls(exchange)

    return completed


def _with_own_calls(exchange: Exchange) -> Exchange:
    """Returns the exchange with the contents of the SDK's last request."""
    chunks = exchange.events if exchange.events is not None else (exchange.response,)
    bodies = [as_dict(chunk) for chunk in chunks]
    lists = (as_list(body.get(name)) for body in reversed(bodies) for name in _RUN_BY_SDK)
    contents = next(filter(None, lists), None)
    if contents is None:
        return exchange
    request = {**(exchange.request or {}), "contents": contents}
    exchange = replace(exchange, sent=exchange.request)
    if exchange.events is None:
        return replace(exchange, request=request)
    # The stream contains several answers; those before the last are in the contents.
    last = _response_id(bodies[-1])
    events = tuple(body for body in bodies if _response_id(body) == last)
    return replace(exchange, request=request, events=events)


def _response_id(body: dict[str, Json]) -> Json:
    return body.get("responseId") or body.get("response_id")


class _Links:
    """Interactions by id. Each request has its own system text and tools."""

    def __init__(self) -> None:
        self._steps: Kept[ServerStep] = Kept()
        self._waiting: Kept[dict[str, Json]] = Kept()  # unanswered requests

    def complete(self, exchange: Exchange) -> Exchange:
        """Returns the exchange with the history that its request names, as far as it is logged.

        An interaction that the client polls by its id gets the request that began it.
        """
        body = exchange.response or {}
        if exchange.events is not None:
            body = _whole_interaction(exchange.events)
        own_id = as_str(body.get("id"))
        sent = exchange.request if exchange.request is not None else self._waiting.get(own_id)
        if sent is None:
            return exchange
        items = one_or_many(sent.get("input"))
        previous = name_or_none(sent.get("previous_interaction_id"))
        before = self._steps.get(previous) if previous else None
        step = ServerStep.after(before, previous, items)
        request: dict[str, Json] = {**sent, "input": step.all()}
        if step.whole:
            request.pop("previous_interaction_id", None)
        steps = _steps_of(body)
        if own_id and steps:
            step = replace(step, items=(*items, *steps))
            self._steps.put(own_id, step, weight([*step.items]))
        elif own_id:
            self._waiting.put(own_id, sent, weight(sent))
        return replace(exchange, request=request)


_NOTHING = frozenset(
    {"thoughtSignature", "thought", "videoMetadata", "partMetadata", "mediaResolution"}
)
"""Additional fields of a part; a part with only these is empty."""
_KEYS = (MESSAGE_KEYS | {"parts"}) - {"content", "tool_calls"}
"""Keys of a content that are known."""
SERVER_PARTS = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
"""Parts of tools that the service runs in the model's turn, which cannot be a target."""
_WIRE_KEYS = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "tool_call": "toolCall",
    "tool_response": "toolResponse",
    "thought_signature": "thoughtSignature",
    "video_metadata": "videoMetadata",
    "part_metadata": "partMetadata",
    "media_resolution": "mediaResolution",
}


def part_list(content: Json) -> list[Json]:
    """Returns the parts of a PartListUnion: a string, one part, or a list of either."""
    return [{"text": item} if isinstance(item, str) else item for item in one_or_many(content)]


def _wire_part(part: Json) -> dict[str, Json]:
    return {_WIRE_KEYS.get(k, k): item for k, item in as_dict(part).items() if item is not None}


def read_parts(parts: list[Json], keys: CallKeys) -> list[Part]:
    """Returns the parts of a content.

    Media after a tool result belong to the result.
    """
    read: list[Part] = []
    for item in parts:
        part = _part(_wire_part(item), keys)
        last = read[-1] if read else None
        if isinstance(part, str):
            read.append(unknown_part(part))
        elif isinstance(part, Media) and isinstance(last, ToolResult):
            read[-1] = replace(last, content=(*last.content, part))
        elif part is not None:
            read.append(part)
    return read


def _part(part: dict[str, Json], keys: CallKeys) -> Part | str | None:
    if "functionCall" in part:
        call = as_dict(part["functionCall"])
        name, call_id = as_str(call.get("name")), name_or_none(call.get("id"))
        return ToolCall(name, value_arguments(call.get("args")), call_id, keys.of(call_id))
    if "functionResponse" in part:
        return _result(as_dict(part["functionResponse"]))
    if "inlineData" in part or "fileData" in part:
        return _media(part)
    text = part.get("text")
    if isinstance(text, str):
        if not text:
            return None
        return Reasoning(text) if part.get("thought") is True else Text(text)
    if not SERVER_PARTS.isdisjoint(part):
        return Unparsed(dumps({k: part[k] for k in part if k not in _NOTHING}), "server_tool")
    names = [name for name in part if name not in _NOTHING]
    if names or not part:
        return names[0] if names else "nothing"
    return None


def _media(part: dict[str, Json]) -> Media:
    blob = as_dict(part.get("inlineData") or part.get("fileData"))
    return media_of(as_str(blob.get("mimeType") or blob.get("mime_type")))


def _result(response: dict[str, Json]) -> ToolResult:
    content = _response_content(response.get("response"))
    media: list[Content] = []
    for item in as_list(response.get("parts")):
        part = _wire_part(item)
        is_media = "inlineData" in part or "fileData" in part
        media.append(_media(part) if is_media else Data(item))
    return ToolResult(
        (*content, *media),
        call_id=name_or_none(response.get("id")),
        name=name_or_none(response.get("name")),
        is_error=as_dict(response.get("response")).get("error") is not None or None,
    )


def _response_content(response: Json) -> tuple[Content, ...]:
    """Returns the content of a `response`; unwraps a single `output`, `error` or `result`."""
    if isinstance(response, dict) and len(response) == 1:
        for name in ("output", "error", "result"):
            if name in response:
                value = response[name]
                return (Text(value) if isinstance(value, str) else Data(value),)
    return text_or_data(response)


_ACKNOWLEDGED = frozenset(
    {"Got it. Thanks for the context!", "Got it. Thanks for the additional context!"}
)
_SET_UP = re.compile(
    r"(?:\s*<(session_context|hook_context|system-reminder)>(?:(?!</\1>).)*</\1>)+\s*\Z"
    r"|\s*This is the (?:Gemini CLI|Qwen Code)\. We are setting up the context for our chat",
    re.DOTALL,
)


def mark_harness(parts: Iterable[Part], role: str) -> list[Part]:
    """Marks text of the agent program: blocks of context, and acknowledgements.

    The program opens a history with a block of context, and acknowledges it (and the summary of a
    compressed history) in the model's name.
    """
    return [
        replace(part, harness=True)
        if isinstance(part, Text)
        and (_SET_UP.match(part.text) if role == "user" else part.text in _ACKNOWLEDGED)
        else part
        for part in parts
    ]


def content_messages(content: Json, keys: CallKeys) -> list[Message]:
    """Returns the messages of one `Content`: its tool results, then its other parts.

    Tool results have the role user (older: function; some SDKs: tool). Content without a role is
    the user's.
    """
    item = as_dict(content)
    role = "user" if item.get("role") is None else as_str(item["role"])
    role = {"model": "assistant", "function": "user", "tool": "user"}.get(role, role)[:40]
    results, rest = results_apart(read_parts(as_list(item.get("parts")), keys))
    messages = [Message("tool", results)] if results else []
    parts = with_thoughts(rest, item) if role == "assistant" else rest
    if parts:
        messages.append(Message(role, tuple(mark_harness(parts, role))))
    return noted(messages, item, _KEYS)


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,9})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_GROUNDING = (
    "groundingChunks", "groundingSupports", "webSearchQueries", "retrievalQueries",
    "searchEntryPoint", "grounding_chunks", "grounding_supports", "web_search_queries",
    "retrieval_queries", "search_entry_point",
)  # fmt: skip
"""Fields of `groundingMetadata` that show a search (google-genai types)."""
_VALUES = (
    ("numberValue", "number_value"),
    ("boolValue", "bool_value"),
    ("nullValue", "null_value"),
)


def _whole_response(chunks: Iterable[Json]) -> dict[str, Json]:
    """Returns `candidates` (`parts`, `finishReason`, `grounded`) by index, and `modelVersion`.

    `grounded`: the service searched the web, files or pages for the answer. A candidate has no
    finishReason if the stream has an error, or if one of its calls is incomplete or inconsistent.
    """
    found: dict[int, _Candidate] = {}
    model = ""
    broken = False
    for item in chunks:
        chunk = as_dict(item)
        broken = broken or bool(chunk.get("error"))
        model = model or as_str(chunk.get("modelVersion") or chunk.get("model_version"))
        for candidate in as_dicts(chunk.get("candidates")):
            found.setdefault(as_int(candidate.get("index")), _Candidate()).add(candidate)
    candidates: list[Json] = [
        {
            "parts": found[index].parts(),  # first, since it ends the last call
            "finishReason": None if broken or found[index].broken else found[index].finish,
            "grounded": found[index].grounded,
        }
        for index in sorted(found)
    ]
    return {"candidates": candidates, "modelVersion": model}


class _Candidate:
    """A candidate that is assembled from its pieces."""

    def __init__(self) -> None:
        self.finish: Json = None
        self.whole: list[Json] = []
        self.call: _Call | None = None  # the last call, if it may continue
        self.broken = False  # an incomplete call
        self.grounded = False

    def add(self, candidate: dict[str, Json]) -> None:
        for item in as_list(candidate, "content", "parts"):
            part = _wire_part(item)
            if "functionCall" in part:
                self._call(as_dict(part["functionCall"]))
            else:
                self.whole.append(part)
        metadata = candidate.get("groundingMetadata") or candidate.get("grounding_metadata")
        pages = candidate.get("urlContextMetadata") or candidate.get("url_context_metadata")
        shown = (*map(as_dict(metadata).get, _GROUNDING), *as_dict(pages).values())
        self.grounded = self.grounded or any(shown)
        self.finish = candidate.get("finishReason") or candidate.get("finish_reason") or self.finish

    def _call(self, piece: dict[str, Json]) -> None:
        """Adds a piece of a call. A name begins a call; a piece without `willContinue` ends it."""
        if self.call is None or piece.get("name"):
            self._end()
            self.call = _Call()
        self.call.add(piece)
        if not (piece.get("willContinue") or piece.get("will_continue")):
            self._end(is_whole=True)

    def _end(self, *, is_whole: bool = False) -> None:
        if self.call is not None:
            self.broken = self.broken or self.call.broken or not is_whole
            self.whole.append(self.call.part())
            self.call = None

    def parts(self) -> list[Json]:
        self._end()
        return self.whole


class _Call:
    """A call that is assembled from pieces of its arguments."""

    def __init__(self) -> None:
        self.call: dict[str, Json] = {}
        self.arguments: Json = None
        self.broken = False  # a path that does not fit the arguments
        self.open: str | None = None  # the path of a text that may continue

    def add(self, piece: dict[str, Json]) -> None:
        for key in ("id", "name"):
            if piece.get(key):
                self.call[key] = piece[key]
        if piece.get("args") or self.arguments is None:  # {} ends arguments in pieces
            self.arguments = piece.get("args")
        for item in as_dicts(piece.get("partialArgs") or piece.get("partial_args")):
            self._argument(item)

    def _argument(self, item: dict[str, Json]) -> None:
        place = as_str(item.get("jsonPath") or item.get("json_path"))
        steps = _steps(place)
        value: Json = item.get("stringValue", item.get("string_value"))
        if not isinstance(value, str):
            value = next((item[k] for pair in _VALUES for k in pair if k in item), None)
            value = None if value == "NULL_VALUE" else value
        if steps is None:
            self.broken = True
            return
        before = _at(self.arguments, steps) if self.open == place else None
        if isinstance(before, str) and isinstance(value, str):
            value = before + value
        self.arguments = self._put(self.arguments, steps, value)
        continues = item.get("willContinue") or item.get("will_continue")
        self.open = place if continues else None

    def _put(self, into: Json, steps: list[str | int], value: Json) -> Json:
        if not steps:
            return value
        step, rest = steps[0], steps[1:]
        if isinstance(step, str) and isinstance(into, dict | None):
            fields = as_dict(into)
            return {**fields, step: self._put(fields.get(step), rest, value)}
        if isinstance(step, int) and isinstance(into, list | None) and step <= len(as_list(into)):
            items = list(as_list(into))
            before = items[step] if step < len(items) else None
            items[step : step + 1] = [self._put(before, rest, value)]
            return items
        self.broken = True
        return into

    def part(self) -> Json:
        if self.arguments is not None:
            self.call["args"] = self.arguments
        return {"functionCall": self.call}


def _steps(place: str) -> list[str | int] | None:
    """Returns the steps of a path such as `$.items[0].name`; None for an unknown form."""
    steps: list[str | int] = []
    at = 1
    while at < len(place) and len(steps) <= 100:
        step = _STEP.match(place, at)
        if step is None:
            return None
        number = step[2]
        steps.append(int(number) if number else step[1] or step[3] or step[4] or "")
        at = step.end()
    return steps if place.startswith("$") and steps and at >= len(place) else None


def _at(value: Json, steps: list[str | int]) -> Json:
    for step in steps:
        inner = as_dict(value).get(step) if isinstance(step, str) else None
        items = as_list(value)
        value = items[step] if isinstance(step, int) and step < len(items) else inner
    return value


_NUMBERS: dict[Json, str] = {1: "STOP", 3: "SAFETY", 4: "RECITATION"}
"""Finish reasons that older SDKs write as numbers."""
_MODEL = re.compile(r"/models/([^/:]+):[A-Za-z]+$")


def history(body: dict[str, Json]) -> History:
    """Returns the history of a request."""
    if "contents" not in body and "input" in body:
        kept = _interaction_history(body)
        return replace(kept, messages=tuple(map(_joined, kept.messages)))
    keys = CallKeys("")
    messages: list[Message] = []
    system = _field(body, "systemInstruction", "system_instruction")
    if system is not None:
        system_messages = content_messages(_content(system), keys)
        # Its role, if it has one, has no meaning (docs/formats/gemini-api.md "Request").
        messages += [replace(message, role="system") for message in system_messages]
    for item in contents(body):
        messages += map(_joined, content_messages(item, keys))
    problems: tuple[Problem, ...] = ()
    if _field(body, "cachedContent", "cached_content"):
        detail = "part of what the model saw is in the service's cache"
        problems = (Problem("cached_content", "request", detail, records=0),)
    tools = _field(body, "tools")  # SDKs accept a single group instead of a list
    offered = (tools,) if isinstance(tools, dict) else tuple_or_none(tools)
    model = as_str(body.get("model")).rpartition("/")[2] or None
    return History(tuple(messages), offered, model, problems)


def contents(body: dict[str, Json]) -> list[Json]:
    """Returns the contents of a request: a list, a single content, or text or parts of one."""
    value = body.get("contents")
    if isinstance(value, list) and any("parts" in as_dict(item) for item in value):
        return [_content(item) for item in value]
    return [_content(value)] if value else []


def _content(value: Json) -> Json:
    """Returns a content in its full form; SDKs accept text, a part or a list of either."""
    if isinstance(value, dict) and "parts" in value:
        return {**value, "parts": part_list(value["parts"])}
    return {"parts": part_list(value)}


def _field(body: dict[str, Json], *names: str) -> Json:
    places = (body, as_dict(body.get("config")))
    values = (place[name] for place in places for name in names if place.get(name) is not None)
    return next(values, None)


def _joined(message: Message) -> Message:
    """Joins adjacent texts and adjacent thoughts of a model's message, which a stream splits."""
    if message.role != "assistant" or len(message.parts) < 2:
        return message
    parts: list[Part] = []
    for kind, run in groupby(message.parts, key=_kind):
        if kind in ("text", "harness", "thought"):
            text = "".join(part.text for part in run if isinstance(part, Text | Reasoning))
            whole = Text(text, harness=kind == "harness")
            parts.append(Reasoning(text) if kind == "thought" else whole)
        else:
            parts += run
    return replace(message, parts=tuple(parts))


def _kind(part: Part) -> str:
    if isinstance(part, Text):
        return "harness" if part.harness else "text"
    return "thought" if isinstance(part, Reasoning) else "other"


# -- answers -------------------------------------------------------------------------------------


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the candidates of a response by index; () if it is an error or blocked."""
    if (exchange.status or 0) >= 400:
        return ()
    first = as_dict((exchange.events or (exchange.response,))[0])
    if is_interaction(first):
        answered = _interaction_answers(exchange)
        return [replace(answer, message=_joined(answer.message)) for answer in answered]
    chunks = exchange.events if exchange.events is not None else (exchange.response or {},)
    body = _whole_response(chunks)
    named = _MODEL.search(path_of(exchange.url))
    model = name_or_none(body.get("modelVersion")) or (named[1] if named else None)
    return [_answer(candidate, model) for candidate in as_dicts(body.get("candidates"))]


def _answer(candidate: dict[str, Json], model: str | None) -> ApiAnswer:
    messages = content_messages({"role": "model", "parts": candidate.get("parts")}, CallKeys(""))
    kept = tuple(
        unknown_part("functionResponse") if isinstance(part, ToolResult) else part
        for message in messages
        for part in message.parts
    )
    unknown = tuple(name for message in messages for name in message.unknown)
    if candidate.get("grounded"):
        kept = (*kept, Unparsed("grounding", "server_tool"))
    return ApiAnswer(
        _joined(Message("assistant", kept, unknown=unknown)),
        fault=finish_fault(_reason(candidate), unknown="truncated"),
        model=model,
    )


def _reason(candidate: dict[str, Json]) -> Json:
    value = candidate.get("finishReason")
    return _NUMBERS.get(value) if isinstance(value, int) else value


def continues(before: Json, after: Json) -> bool:
    """Returns whether a chunk belongs to the same response as the previous one, by their ids.

    Without ids (older servers) a response continues until its finishReason.
    """
    one, other = as_dict(before), as_dict(after)
    if is_interaction(one) or is_interaction(other):
        begins = other.get("event_type") in ("interaction.created", "interaction.start")
        return is_interaction_event(one) and is_interaction_event(other) and not begins
    if _response_id(one) or _response_id(other):
        return _response_id(one) == _response_id(other)
    candidates = as_dicts(one, "candidates")
    return not any(c.get("finishReason") or c.get("finish_reason") for c in candidates)


GENERATE = Api(GEMINI, history, answers, continues, complete)
