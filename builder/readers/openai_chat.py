"""OpenAI chat completions: captured requests and responses, streams, and fine-tuning rows.

References: openai-chat.md, openai-finetune.md, http-captures.md. Every request repeats the whole
history, so requests that extend one another are one conversation: the last one with its response.
What a later request leaves out of the history (thoughts) is taken from the response that said it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from builder.conversation import (
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Reasoning,
    ToolCall,
)
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem
from builder.readers._chat_messages import read_message
from builder.readers._chat_stream import assemble
from builder.readers._exchanges import Exchange, dialect, events, read_exchange
from builder.readers._messages import assistant_parts, unknown_parts
from builder.readers._narrow import as_dict, as_list, as_str, name_or_none
from builder.readers._openhands import is_llm_log
from builder.source import Source

NAME = "openai-chat"
SUMMARY = (
    "OpenAI chat completions: request/response captures, chunks, and rows with messages and tools"
)

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_COLUMNS = frozenset(
    {
        "messages", "tools", "functions", "parallel_tool_calls", "tool_choice", "response_format",
        "metadata", "logit_bias", "stop", "stream_options", "reasoning", "provider", "extra_body",
        "modalities", "audio", "prediction", "web_search_options", "function_call", "thinking",
        "chat_template_kwargs", "usage", "plugins", "models", "transforms", "input", "response",
        "request",
    }
)  # fmt: skip
"""Keys of a request or row whose values are lists or objects."""
_FOREIGN = frozenset(
    {
        "instance_id", "trajectory_format", "termination_reason", "sessionId", "session_id",
        "task_id", "run_type", "trace_id", "traceId", "call_type", "schema_version", "exit_status",
        "resolved",
    }
)  # fmt: skip
"""Keys beside `messages` that belong to other formats' rows."""


def recognise(source: Source) -> str | None:
    """Chat bodies in the first records, and none of another API before them."""
    for value in source.peek.objects:
        if is_llm_log(value):
            return None  # OpenHands': its calls stand beside the request as they were understood
        if isinstance(value.get("messages"), list) and not _is_rows(value):
            continue
        exchange = read_exchange("", value)
        kind = dialect(exchange)
        if kind == "chat":
            return _reason(exchange)
        if kind:
            return None
        if isinstance(as_dict(value.get("input")).get("messages"), list):
            return "preference rows (input, preferred_output)"
    stream = source.peek.kind == "text" and source.head.lstrip().startswith(b"data:")
    if stream and b"chat.completion.chunk" in source.head:
        return "a stream of chat.completion.chunk events"
    return None


def _reason(exchange: Exchange) -> str:
    if exchange.request is None:
        return "a chat completion response"
    envelope = exchange.response is not None or exchange.stream is not None or exchange.url
    return "requests to chat completions" if envelope else "rows with messages of chat roles"


def _is_rows(value: dict[str, Json]) -> bool:
    """Are these messages of chat, not another format's list of that name?"""
    nested = {key for key, item in value.items() if isinstance(item, list | dict)}
    if _FOREIGN & set(value) or nested - _COLUMNS:
        return False
    for item in as_list(value.get("messages")):
        message = as_dict(item)
        if message.get("role") not in _ROLES:
            return False
        body = message.get("content")
        if not isinstance(body, str | list | None):
            return False
        if any("value" in as_dict(part) for part in as_list(body)):
            return False  # LLaMA-Factory's typed parts
        if message["role"] == "assistant" and "<function=" in as_str(body):
            return False  # SWE-agent's and OpenHands' text calls
    return bool(as_list(value.get("messages")))


def read(source: Source) -> Iterator[Event]:
    """The source's conversations, and what became of its other records."""
    if source.peek.kind == "text":
        source.count_records()
        yield Problem("no_request", "file", "a streamed response without its request")
        return
    exchanges: list[Exchange] = []
    for item in source.records():
        if isinstance(item, Problem):
            yield item
        elif not isinstance(item.value, dict):
            yield Problem("not_object", item.where, "the record is no JSON object")
        else:
            value = item.value
            row = _row(item.where, value)
            if row is not None:
                yield row
                continue
            exchange = read_exchange(item.where, value)
            event = _unusable(exchange)
            if event is not None:
                yield event
            else:
                exchanges.append(exchange)
    yield from _conversations(exchanges)


# -- rows of datasets ----------------------------------------------------------------------------


def _row(where: str, value: dict[str, Json]) -> Conversation | None:
    """A fine-tuning row: messages without a model, or a preference row; None: a capture."""
    body, extra = value, as_list(value.get("preferred_output"))
    if "preferred_output" in value:
        body = as_dict(value.get("input"))
    if not isinstance(body.get("messages"), list) or "model" in body:
        return None
    if {"response", "request", "response_stream", "choices"} & set(value):
        return None
    messages = [*as_list(body.get("messages")), *extra]
    changes: Counter[str] = Counter()
    if "non_preferred_output" in value:
        changes["non_preferred_left_out"] += 1
    unknown: list[str] = []
    flat = _is_flat(messages)
    built = [
        message
        for number, item in enumerate(messages)
        for message in read_message(item, str(number), unknown, changes, flat=flat)
    ]
    tools = _tools(body)
    if not built:
        built = [Message("user", ())]
    return Conversation(
        id=where,
        record=where,
        messages=tuple(built),
        tools=tools,
        records=1,
        problems=unknown_parts(unknown, where),
        changes=changes,
        complete=True,
    )


def _is_flat(messages: list[Json]) -> bool:
    """Are calls and results text, as in this project's own rows?"""
    items = [as_dict(item) for item in messages]
    if any(item.get("tool_calls") or item.get("role") in ("tool", "function") for item in items):
        return False
    return any(
        item.get("role") == "assistant" and "<tool_call>" in as_str(item.get("content"))
        for item in items
    )


def _tools(body: dict[str, Json]) -> tuple[Json, ...] | None:
    """The definitions of a body: `tools`, perhaps as JSON text, or the older `functions`."""
    tools = body.get("tools")
    if isinstance(tools, str):
        try:
            tools = loads(tools)
        except JsonFault:
            return None
    found = [*as_list(tools), *as_list(body.get("functions"))]
    if found or isinstance(tools, list):
        return tuple(found)
    return None


# -- captures ------------------------------------------------------------------------------------


def _unusable(exchange: Exchange) -> Problem | Ignored | None:
    """Why an exchange can be no part of a conversation, or None."""
    kind = dialect(exchange)
    if exchange.request is None:
        if kind == "chat" or exchange.stream is not None or exchange.failed:
            return Problem("no_request", exchange.where, "a response without its request")
        return Problem("unknown_shape", exchange.where, "neither a request nor a response")
    if kind != "chat":
        return Ignored(f"other_api:{(exchange.path or kind or 'unknown')[-40:]}")
    if not as_list(exchange.request.get("messages")):
        return Problem("no_messages", exchange.where, "the request has no messages")
    return None


@dataclass(slots=True)
class _Turned:
    """An exchange with its answer read: `prefixes[n]` names its first n messages."""

    exchange: Exchange
    messages: list[dict[str, Json]]
    prefixes: list[str]
    answers: list[dict[str, Json]]
    model: str | None

    @property
    def whole(self) -> str:
        """The name of all messages of the request."""
        return self.prefixes[-1]

    @property
    def answer(self) -> dict[str, Json] | None:
        """The answer that counts: the first."""
        return self.answers[0] if self.answers else None

    def place(self, answer: dict[str, Json]) -> str:
        """The name of an answer where it was given."""
        return f"{self.whole}{_canonical(answer)}"


def _conversations(exchanges: list[Exchange]) -> Iterator[Event]:
    turned = [_read(exchange) for exchange in exchanges]
    said: dict[str, str] = {}
    continued: set[str] = set()
    for item in turned:
        pairs = zip(item.prefixes, item.messages[1:], strict=False)
        continued.update(f"{prefix}{_canonical(message)}" for prefix, message in pairs)
    for item in turned:
        # Of several choices the client took the one that its next request holds.
        taken = [answer for answer in item.answers if item.place(answer) in continued]
        item.answers = taken or item.answers
        thoughts = _thoughts(item.answer) if item.answer is not None else []
        if item.answer is not None and thoughts:
            said.setdefault(item.place(item.answer), "\n\n".join(part.text for part in thoughts))
    beginnings = {prefix for item in turned for prefix in item.prefixes[:-1]}
    latest: dict[str, _Turned] = {}
    for item in turned:
        best = latest.get(item.whole)
        if best is None or (best.answer is None and item.answer is not None):
            latest[item.whole] = item
    for item in turned:
        again = latest[item.whole] is not item
        if item.answer is None and (again or item.whole in beginnings):
            yield Ignored("retry" if again else "prefix")
        elif item.answer is not None and item.place(item.answer) in continued:
            yield Ignored("prefix")
        else:
            yield _conversation(item, said, again=again)


def _read(exchange: Exchange) -> _Turned:
    assert exchange.request is not None, "checked before"
    messages = [as_dict(item) for item in as_list(exchange.request.get("messages"))]
    prefixes = [""]
    for message in messages:
        text = f"{prefixes[-1]}\n{_canonical(message)}".encode("utf-8", "surrogatepass")
        prefixes.append(hashlib.blake2b(text, digest_size=16).hexdigest())
    response = exchange.response
    if exchange.stream is not None and response is None:
        response = assemble(events(exchange.stream))
    model = name_or_none((response or {}).get("model"))
    return _Turned(
        exchange,
        messages,
        prefixes[1:],
        [] if exchange.failed else _answers(response),
        model or name_or_none(exchange.request.get("model")),
    )


def _answers(response: dict[str, Json] | None) -> list[dict[str, Json]]:
    """The messages that were answered, whole ones only, in the order of their choices."""
    if response is None or response.get("error"):
        return []
    choices = [as_dict(choice) for choice in as_list(response.get("choices"))]
    choices.sort(key=lambda choice: index if isinstance(index := choice.get("index"), int) else 0)
    finished = ("stop", "tool_calls", "function_call")
    return [
        message
        for choice in choices
        if choice.get("finish_reason") in finished and (message := as_dict(choice.get("message")))
    ]


def _canonical(message: dict[str, Json]) -> str:
    """What makes a message the same message when a client sends it again."""
    calls: list[Json] = []
    for item in as_list(message.get("tool_calls")):
        call = as_dict(item)
        function = as_dict(call.get("function")) or as_dict(call.get("custom"))
        calls.append([call.get("id"), function.get("name"), _value(function.get("arguments"))])
    legacy = as_dict(message.get("function_call"))
    if legacy:
        calls.append([None, legacy.get("name"), _value(legacy.get("arguments"))])
    body = message.get("content")
    role = message.get("role") or "assistant"
    return dumps([role, body or "", calls, message.get("tool_call_id"), message.get("name")])


def _value(arguments: Json) -> Json:
    if isinstance(arguments, str):
        try:
            return loads(arguments) if arguments.strip() else {}
        except JsonFault:
            return arguments
    return arguments


def _thoughts(message: dict[str, Json]) -> list[Reasoning]:
    return [part for part in assistant_parts(message, []) if isinstance(part, Reasoning)]


def _conversation(item: _Turned, said: dict[str, str], *, again: bool) -> Conversation | Problem:
    """The last request of a chain with its answer, or what its history holds without one.

    `again`: the same request was answered before; that answer is the one that counts.
    """
    unknown: list[str] = []
    changes: Counter[str] = Counter()
    built: list[Message] = []
    first = next((m for m in item.messages if m.get("role") == "user"), {})
    scope = hashlib.blake2b(_canonical(first).encode("utf-8", "surrogatepass"), digest_size=8)
    messages = [*item.messages, *([item.answer] if item.answer is not None else [])]
    if not any((m.get("role") or "assistant") == "assistant" for m in messages):
        detail = "the request was not answered, and its history holds no answer"
        return Problem("no_response", item.exchange.where, detail)
    for number, message in enumerate(messages):
        before = item.prefixes[number - 1] if number else ""
        built += [
            _with_keys(made, scope.hexdigest(), f"{before}/{number}")
            for made in read_message(message, str(number), unknown, changes, flat=False)
        ]
        thought = said.get(f"{before}{_canonical(message)}")
        if thought and built and not any(isinstance(p, Reasoning) for p in built[-1].parts):
            built[-1] = replace(built[-1], parts=(Reasoning(thought), *built[-1].parts))
    detail = "another answer to the same request came first"
    repeated = (Problem("retry", item.exchange.where, detail, records=0),) if again else ()
    assert item.exchange.request is not None, "checked before"
    return Conversation(
        id=item.exchange.where,
        record=item.exchange.where,
        messages=tuple(built),
        tools=_tools(item.exchange.request) or (),
        model=item.model,
        records=1,
        problems=(*repeated, *unknown_parts(unknown, item.exchange.where)),
        changes=changes,
    )


def _with_keys(message: Message, scope: str, place: str) -> Message:
    """The calls named so that a later request's copy is the same call.

    An id is good for one conversation; where there is none, what was said before names the place.
    """
    if not any(isinstance(part, ToolCall) for part in message.parts):
        return message
    parts: list[Part] = []
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolCall):
            key = f"{scope}/{part.id}" if part.id else f"{place}/{number}"
            parts.append(replace(part, key=key))
        else:
            parts.append(part)
    return replace(message, parts=tuple(parts))
