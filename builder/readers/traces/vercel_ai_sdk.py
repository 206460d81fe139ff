"""Vercel AI SDK."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import (
    Conversation,
    Data,
    Event,
    Ignored,
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
from builder.readers import declared
from builder.readers.toolkit.chat_messages import text_or_data, unreadable_messages
from builder.readers.toolkit.comparison import with_request_keys
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, first_of, name_of, unknown_code
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import SeparateMessages, collected, outcome_of_records
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.readers.traces.any_vendor import (
    definitions,
    read_messages,
    system_text,
    tools_of,
    with_system,
)
from builder.readers.traces.parts import PartNotes, decoded
from builder.readers.traces.span_log import read_spans
from builder.readers.traces.spans import VERCEL, first_dialect
from builder.sources.source import Record, Source

_ROLES = frozenset({"system", "user", "assistant", "data"})
_UI_PARTS = frozenset(
    {"step-start", "file", "source", "source-url", "source-document", "dynamic-tool"}
)  # fmt: skip
_KEYS = MESSAGE_KEYS | {
    "parts", "toolInvocations", "experimental_attachments", "attachments", "revisionId", "data",
}  # fmt: skip
"""Keys of a UI message that are known."""
_DISPLAYED = ("source", "source-url", "source-document", "step-start")
_STATES = {
    "partial-call": "input-streaming",
    "call": "input-available",
    "result": "output-available",
}
"""States of AI SDK 4 and their names in later versions."""


def _is_ui_message(value: Json) -> bool:
    item = as_dict(value)
    if as_str(item.get("role")) not in _ROLES:
        return False
    parts = decoded(item.get("parts"))
    if isinstance(parts, list) and parts:
        return (all if item.get("content") else any)(map(_is_ui_part, parts))
    listed = as_list(item.get("toolInvocations"))
    return bool(listed) and all("toolCallId" in as_dict(one) for one in listed)


def _has_sdk_messages(value: Json) -> bool:
    """Returns whether a chat has UI messages, or messages with calls and results as parts."""
    return any(
        _is_ui_message(item)
        or any(
            as_str(part, "type") in ("tool-call", "tool-result")
            for part in as_list(_content_of(as_dict(item)))
        )
        for item in _messages_of(value)
    )


def _content_of(message: dict[str, Json]) -> Json:
    """Returns a message's content: the list of its parts if a table stores it as JSON text."""
    body = message.get("content")
    if isinstance(body, str) and body.startswith('[{"type"'):
        parts = decoded(body)
        if isinstance(parts, list) and all("type" in as_dict(part) for part in parts):
            return parts
    return body


def _messages_of(value: Json) -> list[Json]:
    if isinstance(value, dict) and "messages" not in value:
        return []
    listed = value if isinstance(value, list) else decoded(as_dict(value).get("messages"))
    return [item for item in as_list(listed) if "role" in as_dict(item)]


def _is_ui_part(value: Json) -> bool:
    part = as_dict(value)
    kind = as_str(part.get("type"))
    if kind == "text":
        return isinstance(part.get("text"), str)
    if kind == "reasoning":
        return isinstance(part.get("text", part.get("reasoning")), str)
    if kind == "tool-invocation":
        return "toolInvocation" in part
    if kind.startswith("tool-") and "toolCallId" in part and "state" in part:
        return True
    return kind in _UI_PARTS or kind.startswith("data-")


def read_ui_message(item: dict[str, Json], number: int, notes: PartNotes) -> list[Message]:
    """Returns the messages that the model saw: for each step, its answer and its results.

    `number` is the index of the message in the chat; it replaces a missing id.
    """
    return noted(_messages(item, number, notes), item, _KEYS)


def _messages(item: dict[str, Json], number: int, notes: PartNotes) -> list[Message]:
    role = as_str(item.get("role"))
    inside = decoded(item.get("content"))
    if isinstance(inside, dict) and isinstance(inside.get("parts"), list):
        item = {**item, **inside, "parts": inside["parts"]}
    parts = decoded(item.get("parts"))
    if not isinstance(parts, list):
        parts = _old_parts(item)
    if role != "assistant":
        pieces = [part for one in parts for part in _content_of_part(as_dict(one), notes)]
        return [Message(role[:40], tuple(pieces))] if pieces else []
    name = as_str(item.get("id"))[:200] or str(number)
    messages: list[Message] = []
    for count, step in enumerate(_steps(_last_states(parts))):
        messages += _step(step, f"{name} {count}", notes)
    if messages and not any(isinstance(part, Reasoning) for one in messages for part in one.parts):
        messages[0] = replace(messages[0], parts=(*thoughts_of_keys(item), *messages[0].parts))
    model = _message_model(item)
    return [replace(one, model=model) if one.role == "assistant" else one for one in messages]


def _old_parts(item: dict[str, Json]) -> list[Json]:
    """Returns parts for a message of AI SDK 4 without parts: its calls come before the text."""
    body = decoded(item.get("content")) if not isinstance(item.get("content"), str) else None
    if isinstance(body, list):
        return body
    listed: list[Json] = []
    if thought := as_str(item.get("reasoning")):
        listed.append({"type": "reasoning", "text": thought})
    old = as_list(item.get("toolInvocations"))
    listed += [{"type": "tool-invocation", "toolInvocation": one} for one in old]
    if text := as_str(item.get("content")):
        listed.append({"type": "text", "text": text})
    return listed


def _tool(part: dict[str, Json]) -> dict[str, Json] | None:
    """Returns the fields of a call part under their current names; None for other parts."""
    kind = as_str(part.get("type"))
    if kind == "tool-invocation":
        old = as_dict(part.get("toolInvocation"))
        state = as_str(old.get("state"))
        return {
            **old, "state": _STATES.get(state, state), "input": old.get("args"),
            "output": old.get("result"),
        }  # fmt: skip
    if kind == "dynamic-tool":
        return part
    if kind.startswith("tool-") and "toolCallId" in part:
        return {**part, "toolName": kind.removeprefix("tool-")}
    return None


def _last_states(parts: list[Json]) -> list[Json]:
    """Returns the parts with each call in its last state only, at the position of that state."""
    ids = [name_of(_tool(as_dict(part)) or {}, "toolCallId") for part in parts]
    last = {call_id: number for number, call_id in enumerate(ids)}
    return [part for at, part in enumerate(parts) if ids[at] is None or last[ids[at]] == at]


def _steps(parts: list[Json]) -> Iterator[list[dict[str, Json]]]:
    """Yields the parts of each step.

    Without step markers, a call with another step number or text after a call begins a step.
    """
    marked = any(as_dict(part).get("type") == "step-start" for part in parts)
    step: list[dict[str, Json]] = []
    called: Json = None
    for value in parts:
        part = as_dict(value)
        tool = _tool(part)
        if marked:
            begins = part.get("type") == "step-start"
        elif tool is None:
            begins = called is not None and part.get("type") in ("text", "reasoning")
        else:
            begins = called is not None and tool.get("step", 0) != called
        if begins:
            yield step
            step, called = [], None
        if tool is not None:
            called = tool.get("step", 0)
        step.append(part)
    yield step


def _step(parts: list[dict[str, Json]], turn: str, notes: PartNotes) -> Iterator[Message]:
    """Yields one answer of the model, then its results.

    Text after a result from the provider is a new answer, since the model saw that result.
    """
    pieces: list[Part] = []
    results: list[Part] = []
    executed = 0
    for part in parts:
        tool = _tool(part)
        if tool is None:
            new = _content_of_part(part, notes)
            if new and executed and results:
                yield Message("assistant", tuple(pieces), turn=turn)
                yield Message("tool", tuple(results))
                pieces, results = [], []
                turn = f"{turn}+"
            pieces += new
            continue
        call, result = _call_and_result(tool)
        pieces.append(call)
        results += [result] if result is not None else []
        executed += tool.get("providerExecuted") is True
    if pieces:
        yield Message("assistant", tuple(pieces), turn=turn)
    if results:
        yield Message("tool", tuple(results))


def _content_of_part(part: dict[str, Json], notes: PartNotes) -> list[Part]:
    """Returns the content of a part other than a call; unfinished text is marked as truncated."""
    kind = as_str(part.get("type"))
    if kind in ("text", "reasoning"):
        text = as_str(part.get("text")) or as_str(part.get("reasoning"))
        if not text:
            return []
        if part.get("state") == "streaming" and kind == "text":
            return [Unparsed(text, "truncated")]
        return [Text(text) if kind == "text" else Reasoning(text)]
    if kind in ("file", "image"):
        media = as_str(part.get("mediaType")) or as_str(part.get("mimeType"))
        named = media.partition("/")[0] if kind == "file" else "image"
        return [Media(named if named in ("image", "audio", "video") else "file")]
    if kind.startswith("data-"):
        notes.changes["data_part_ignored"] += 1
    elif kind not in _DISPLAYED:
        return [unknown_part(kind or "part")]
    return []


def _call_and_result(tool: dict[str, Json]) -> tuple[ToolCall | Unparsed, ToolResult | None]:
    state = as_str(tool.get("state"))
    name, call_id = name_of(tool, "toolName"), name_of(tool, "toolCallId")
    value = first_of(tool, "input", "rawInput")
    if name is None:
        return Unparsed(dumps(tool), "bad_call"), None
    if state == "input-streaming":
        return Unparsed(value if isinstance(value, str) else dumps(value), "truncated"), None
    call = ToolCall(name, value, id=call_id)
    if state == "output-available":
        return call, ToolResult(_output(tool.get("output")), call_id, name)
    if state == "output-error":
        return call, ToolResult(_output(tool.get("errorText")), call_id, name, is_error=True)
    if state == "output-denied":
        # Without a reason, the SDK sends a text that differs between versions.
        reason = as_dict(tool.get("approval")).get("reason")
        return call, ToolResult(_output(reason), call_id, name, is_error=True)
    return call, None


def _output(value: Json) -> tuple[Text | Data, ...]:
    return text_or_data(None if value == "" else value, compact=True)


def _message_model(item: dict[str, Json]) -> str | None:
    return name_of(as_dict(decoded(item.get("metadata"))), "model", "modelId", "model_id")


_CHATS = (
    "chatId", "chat_id", "threadId", "thread_id", "conversationId", "conversation_id", "sessionId",
)  # fmt: skip
_TIMES = ("createdAt", "created_at")
_PEEKED = 50


def _recognise(source: Source) -> str | None:
    for value in source.peek.records[:_PEEKED]:
        if _is_ui_message(value):
            return "UI messages with typed parts or toolInvocations"
        if _has_sdk_messages(value) or _has_sdk_messages([value]):
            return "chats of UI messages, or messages with tool-call parts"
    return "spans of the AI SDK's telemetry" if first_dialect(source) == VERCEL else None


def _read(source: Source) -> Iterator[Event]:
    if first_dialect(source) == VERCEL:
        yield from read_spans(source)
        return
    yield from collected(source.records(), _Collector(), (dict, list))


class _Collector:
    """Collects records into conversations."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.chats: dict[str, SeparateMessages] = {}

    def take(self, record: Record) -> Iterator[Event]:
        """Reads one record."""
        value = record.value
        row = as_dict(value)
        if "role" in row:
            chat_id = name_of(row, *_CHATS) or ""
            chat = self.chats.setdefault(chat_id, SeparateMessages(record.where))
            chat.add(record.where, [value])
        elif items := _messages_of(value):
            name = unique_name(as_str(row.get("id"))[:200] or record.where, self.names)
            yield _conversation(items, name, record.where, 1, row)
        elif isinstance(row.get("messages"), list):
            yield Ignored("no_messages")
        else:
            yield Ignored(unknown_code(row.get("type", "record")))

    def rest(self) -> Iterator[Event]:
        """Yields the conversations of messages that are separate records."""
        for chat_id, chat in self.chats.items():
            name = unique_name(f"chat {chat_id[:200]}" if chat_id else "messages", self.names)
            yield _conversation(_by_time(chat.items), name, chat.place, chat.records, {})


def _by_time(items: list[Json]) -> list[Json]:
    """Returns the rows of a table sorted by time if all have one; dumps may be unordered."""
    for key in _TIMES:
        times = [as_dict(item).get(key) for item in items]
        for kind in (str, int):
            comparable = [time for time in times if isinstance(time, kind)]
            if len(comparable) == len(items):
                order = sorted(range(len(items)), key=lambda number: (comparable[number], number))
                return [items[number] for number in order]
    return items


def _conversation(
    items: list[Json], name: str, where: str, records: int, chat: dict[str, Json]
) -> Event:
    notes = PartNotes()
    messages: list[Message] = []
    for number, item in enumerate(items):
        message = as_dict(item)
        body = _content_of(message)
        if message.get("role") == "data":
            continue  # for the application, never sent
        if "parts" in message or "toolInvocations" in message or isinstance(body, dict):
            messages += read_ui_message(message, number, notes)
        else:
            messages += read_messages([{**message, "content": body}], notes)
    messages = list(with_system(messages, system_text(chat.get("system"))))
    if not messages:
        return Problem("no_messages", where, "no message has any content", records)
    tools = tools_of(chat)
    named = (_message_model(as_dict(item)) for item in items)
    names = Counter(filter(None, named))
    return Conversation(
        id=name,
        record=where,
        messages=with_request_keys(messages),
        tools=None if tools is None else tuple(definitions(list(tools))),
        model=name_of(chat, "model") or max(names, key=lambda name: names[name], default=None),
        records=records,
        problems=unreadable_messages(sorted(set(notes.unreadable)), where),
        changes=notes.changes,
        outcome=outcome_of_records([*items, chat]),
    )


READER = declared("vercel-ai-sdk", recognise=_recognise, read=_read)
