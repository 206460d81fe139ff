"""Finds lists of LangChain messages in dumps and turns them into conversations.

Source: docs/formats/langchain.md; langgraph.graph.message.add_messages for the meaning of a
repeated id and of a RemoveMessage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from builder.conversation import Conversation, Json, Message, unknown_part
from builder.problem import Problem
from builder.readers.toolkit.call_keys import with_request_keys
from builder.readers.toolkit.comparison import cut_off
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_of
from builder.readers.traces.any_vendor.answers import fault_of
from builder.readers.traces.any_vendor.parts import decoded
from builder.readers.traces.langchain.messages import (
    REMOVE_ALL,
    as_fields,
    is_kind,
    is_message,
    joined_chunks,
    lc_message,
)

Fields = dict[str, Json]

_LISTS = ("messages", "chat_history", "history")
_CONTAINERS = ("values", "channel_values", "checkpoint", "state", "kwargs", "output", "data")
_NAMES = ("model_name", "model", "model_id")
_FINISH = ("finish_reason", "stop_reason", "finishReason", "done_reason", "status")
_MAX_CONTAINERS = 3


def messages_in(value: Json, depth: int = 0) -> list[Json] | None:
    """Returns a value's list of messages: itself, or inside a state; None if it has none."""
    value = decoded(value)
    if isinstance(value, list):
        items = [decoded(item) for item in value]
        return items if items and is_message(items[0]) else None
    if not isinstance(value, dict) or depth > _MAX_CONTAINERS or is_message(value):
        return None
    for key in _LISTS:
        if key in value and (messages := messages_in(value[key], _MAX_CONTAINERS)) is not None:
            return messages
    for key in _CONTAINERS:
        inner = value.get(key)
        if isinstance(inner, dict) and (messages := messages_in(inner, depth + 1)) is not None:
            return messages
    return None


def final_messages(items: Sequence[Json]) -> tuple[list[Fields], list[Fields]]:
    """Returns the messages that remain at the end of a list, and those that did not.

    Chunks are joined. A message replaces an earlier one with the same id; a RemoveMessage removes
    it.
    """
    kept: list[Fields] = []
    removed: list[Fields] = []
    for fields in joined_chunks(list(items)):
        name = name_of(fields, "id")
        kind = fields.get("type")
        at = next((n for n, one in enumerate(kept) if name and one.get("id") == name), None)
        if kind in ("remove", "RemoveMessage"):
            if name == REMOVE_ALL:
                removed += kept
                kept = []
            elif at is not None:
                removed.append(kept.pop(at))
        elif at is None:
            kept.append(fields)
        else:
            if kept[at] != fields:
                removed.append(kept[at])
            kept[at] = fields
    return kept, removed


def conversations(
    items: Sequence[Json],
    name: str,
    where: str,
    records: int,
    *,
    tools: tuple[Json, ...] | None = None,
    problems: tuple[Problem, ...] = (),
) -> Iterator[Conversation | Problem]:
    """Yields the conversation of a list, and one of the messages with calls removed from it."""
    kept, removed = final_messages(items)
    messages = [message for fields in kept if (message := _message(fields))]
    if not messages:
        yield Problem("no_messages", where, "no message has any content", records)
        return
    yield Conversation(
        id=name,
        record=where,
        messages=with_request_keys(messages),
        tools=tools,
        model=_model(kept),
        records=records,
        problems=problems,
    )
    remaining = {name for fields in kept for name in _call_ids(fields)}
    lost = [fields for fields in removed if set(_call_ids(fields)) - remaining]
    if lost_messages := [message for fields in lost if (message := _message(fields))]:
        detail = "messages with calls were removed or replaced later"
        yield Conversation(
            id=f"{name}~removed",
            record=where,
            messages=with_request_keys(lost_messages),
            tools=tools,
            problems=(Problem("rewound", where, detail, records=0),),
        )


def _message(fields: Fields) -> Message | None:
    """Returns the message that the fields describe; a truncated answer is marked as such."""
    if not is_kind(fields):
        return Message("user", (unknown_part(as_str(fields.get("type")) or "message"),))
    message = lc_message(fields)
    if message is None or not message.parts:
        return None
    meta = as_dict(fields.get("response_metadata"))
    if message.role == "assistant":
        # Messages with ids of their own are answers of their own, also one after the other.
        message = replace(message, turn=name_of(fields, "id"), model=name_of(meta, *_NAMES))
    fault = next((code for key in _FINISH if (code := fault_of(meta.get(key)))), None)
    return cut_off(message, fault) if fault and message.role == "assistant" else message


def _call_ids(fields: Fields) -> list[str]:
    listed = as_list(as_fields(fields).get("tool_calls"))
    return [name for item in listed if (name := name_of(as_dict(item), "id"))]


def _model(kept: Sequence[Fields]) -> str | None:
    """Returns the model of the last message that names one."""
    for fields in reversed(kept):
        meta = as_dict(fields.get("response_metadata"))
        if name := name_of(meta, *_NAMES):
            return name
    return None
