"""What a session of Gemini CLI says at one time: its message records as messages.

Source: gemini-cli.md (MessageRecord, ToolCallRecord, Pitfalls). Also tells whether one list of
messages begins with another, whichever of its two ways of writing each is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from builder.conversation import Json, Message, Part, Reasoning, Text, ToolCall, ToolResult
from builder.readers.api.gemini.contents import mark_harness, part_list, read_parts
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none

Said = Sequence[tuple[str, Part]]
"""Roles and parts in order, without thoughts, the program's words and incidental fields."""


@dataclass(frozen=True, slots=True)
class View:
    """The messages; what they say in comparable form; the model; names of unknown parts."""

    messages: tuple[Message, ...]
    said: Said
    model: str | None
    unknown: tuple[str, ...]


def view_of(records: Iterable[tuple[str, dict[str, Json]]], session: str) -> View:
    """The message records (id, record) of one session at one time as messages."""
    keys = CallKeys(session)
    messages: list[Message] = []
    odd: list[str] = []
    answered: set[str] = set()
    model: str | None = None
    for key, item in records:
        content = item.get("content")
        parts, strange = read_parts([] if content is None else part_list(content), keys)
        odd += strange
        role = "assistant" if item.get("type") == "gemini" else "user"
        results = [part for part in parts if isinstance(part, ToolResult)]
        rest = mark_harness([part for part in parts if not isinstance(part, ToolResult)], role)
        if role == "assistant":
            rest, more = _with_calls(item, rest, keys)
            results += more
            answered -= {part.id for part in rest if isinstance(part, ToolCall) and part.id}
            model = name_or_none(item.get("model")) or model
        else:
            rest = _local_commands(rest)
        if role == "assistant" and rest:
            messages.append(Message(role, tuple(rest), turn=key))
        # Results are written twice: with the call and as a message of the user.
        results = [part for part in results if part.call_id not in answered]
        answered |= {part.call_id for part in results if part.call_id}
        if results:
            messages.append(Message("tool", tuple(results)))
        if role == "user" and rest:
            messages.append(Message(role, tuple(rest), turn=key))
    said = tuple(
        (message.role, _bare(part))
        for message in messages
        for part in message.parts
        if not isinstance(part, Reasoning) and not (isinstance(part, Text) and part.harness)
    )
    return View(tuple(messages), said, model, tuple(sorted(set(odd))))


def _with_calls(
    item: dict[str, Json], parts: list[Part], keys: CallKeys
) -> tuple[list[Part], list[ToolResult]]:
    """The model's parts with what stands beside `content`: thoughts, calls, results of calls.

    `content` is the truth where it holds thoughts or calls; what it lacks is added.
    """
    if not any(isinstance(part, Reasoning) for part in parts):
        parts = [*_thoughts(item.get("thoughts")), *parts]
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    bare = [(part.name, part.arguments) for part in parts if isinstance(part, ToolCall)]
    results: list[ToolResult] = []
    for value in as_list(item.get("toolCalls")):
        record = as_dict(value)
        call_id = name_or_none(record.get("id"))
        name = as_str(record.get("name"))
        if call_id in ids and call_id is not None:
            ids.remove(call_id)
        elif None in ids and (name, record.get("args")) in bare:
            ids.remove(None)
        else:
            parts.append(ToolCall(name, record.get("args"), call_id, keys.of(call_id)))
        result = _recorded_result(record, name, call_id, keys)
        if result is not None:
            results.append(result)
    return parts, results


def _recorded_result(
    record: dict[str, Json], name: str, call_id: str | None, keys: CallKeys
) -> ToolResult | None:
    """The result that is recorded with a call, in the form in which the model got it."""
    given = record.get("result")
    if given is None or given == []:
        return None
    parts, _ = read_parts(part_list(given), keys)
    found: ToolResult | None = next((part for part in parts if isinstance(part, ToolResult)), None)
    content = found.content if found else ()
    content += tuple(part for part in parts if isinstance(part, Text))
    return ToolResult(
        content,
        call_id=call_id,
        name=name or None,
        is_error=bool(found and found.is_error) or record.get("status") in ("error", "cancelled"),
    )


def _thoughts(value: Json) -> list[Part]:
    texts = []
    for item in map(as_dict, as_list(value)):
        subject, description = as_str(item.get("subject")), as_str(item.get("description"))
        texts.append(f"**{subject}** {description}".strip() if subject else description)
    return [Reasoning(text) for text in texts if text]


def _local_commands(parts: list[Part]) -> list[Part]:
    """Commands to the program (`/…`, `?`) are not for the model unless it answers them."""
    text = "".join(part.text for part in parts if isinstance(part, Text)).strip()
    if not text.startswith(("/", "?")):
        return parts
    return [replace(part, harness=True) if isinstance(part, Text) else part for part in parts]


def call_ids(item: dict[str, Json]) -> set[str]:
    """Returns the ids of the calls that a record shows."""
    calls = as_list(item.get("toolCalls"))
    content = [] if item.get("content") is None else part_list(item.get("content"))
    calls = calls + [as_dict(part).get("functionCall") for part in content]
    return {as_str(as_dict(call).get("id")) for call in calls if call is not None}


def _bare(part: Part) -> Part:
    """The part without what differs between two ways of writing it."""
    if isinstance(part, ToolCall):
        return replace(part, key=None)
    return replace(part, is_error=False) if isinstance(part, ToolResult) else part


def common(one: Said, other: Said) -> int:
    """Returns how many leading messages two histories share."""
    length = 0
    for ours, theirs in zip(one, other, strict=False):
        if ours != theirs:
            break
        length += 1
    return length


def begins(whole: Said, start: Said) -> bool:
    """Returns whether a history begins with another."""
    return len(start) <= len(whole) and common(whole, start) == len(start)


def answered_in(said: Said) -> bool:
    """Returns whether a history holds an answer of the model."""
    return any(role == "assistant" for role, _ in said)
