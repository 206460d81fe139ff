"""Reads UI messages of the AI SDK: one assistant message contains a whole loop of steps.

Source: docs/formats/vercel-ai-sdk.md. The model sees the text and calls of a step, then its
results, then the next step (vercel/ai convert-to-model-messages.ts). Parts that are only displayed
(sources, data) are not sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import (
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
from builder.readers.toolkit.chat_messages import text_or_data
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, first_of, name_of
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.readers.traces.any_vendor.parts import PartNotes, decoded
from builder.readers.traces.vercel_ai_sdk.chunks import assembled, is_chunk

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


def is_ui_message(value: Json) -> bool:
    """Returns whether a value is a UI message of AI SDK 4 or later."""
    item = as_dict(value)
    if as_str(item.get("role")) not in _ROLES:
        return False
    parts = decoded(item.get("parts"))
    if isinstance(parts, list) and parts:
        return (all if item.get("content") else any)(map(_is_ui_part, parts))
    listed = as_list(item.get("toolInvocations"))
    return bool(listed) and all("toolCallId" in as_dict(one) for one in listed)


def has_sdk_messages(value: Json) -> bool:
    """Returns whether a chat has UI messages, or messages with calls and results as parts."""
    return any(
        is_ui_message(item)
        or any(
            as_str(part, "type") in ("tool-call", "tool-result")
            for part in as_list(content_of(as_dict(item)))
        )
        for item in messages_of(value)
    )


def content_of(message: dict[str, Json]) -> Json:
    """Returns a message's content: the list of its parts if a table stores it as JSON text."""
    body = message.get("content")
    if isinstance(body, str) and body.startswith('[{"type"'):
        parts = decoded(body)
        if isinstance(parts, list) and all("type" in as_dict(part) for part in parts):
            return parts
    return body


def messages_of(value: Json) -> list[Json]:
    """Returns the messages of a chat: a list, or the `messages` of an object."""
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
    return is_chunk(part) or kind in _UI_PARTS or kind.startswith("data-")


def read_ui_message(item: dict[str, Json], number: int, notes: PartNotes) -> list[Message]:
    """Returns the messages that the model saw: for each step, its answer and its results.

    `number` is the index of the message in the chat; it replaces a missing id.
    """
    parts = decoded(item.get("parts"))
    if isinstance(parts, list):
        item = {**item, "parts": assembled(parts)}
    return noted(_messages(item, number, notes), item, _KEYS)


def _messages(item: dict[str, Json], number: int, notes: PartNotes) -> list[Message]:
    role = as_str(item.get("role"))
    inside = decoded(item.get("content"))
    if isinstance(inside, dict) and isinstance(inside.get("parts"), list):
        item = {**item, **inside, "parts": assembled(as_list(inside["parts"]))}
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
    return [
        part
        for number, (part, call_id) in enumerate(zip(parts, ids, strict=True))
        if call_id is None or last[call_id] == number
    ]


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
        call, result = _call(tool)
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


def _call(tool: dict[str, Json]) -> tuple[ToolCall | Unparsed, ToolResult | None]:
    """Returns a call and its result, or None for the result of an unanswered call."""
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


def model_of(items: list[Json]) -> str | None:
    """Returns the model that is named most often in the metadata of the messages, or None."""
    named = (_message_model(as_dict(item)) for item in items)
    names = Counter(name for name in named if name is not None)
    return max(names, key=lambda name: names[name]) if names else None
