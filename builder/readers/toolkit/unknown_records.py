"""Handles records of unknown types: content until shown otherwise."""

from __future__ import annotations

from builder.conversation import Json, Message, unknown_part
from builder.readers.toolkit.narrow import as_dict, as_dicts

_CONTENT = (
    "content", "text", "parts", "message", "output", "result", "thinking", "tool_calls", "body",
    "prompt",
)  # fmt: skip
_ARGUMENTS = ("arguments", "input", "args")
_INSIDE = ("message", "payload", "data", "entry", "item", "event")
_LISTS = ("items", "messages", "blocks")


def carries_content(record: dict[str, Json]) -> bool:
    """Returns whether a record of an unknown type carries text, a message, a call or a result.

    Such a record may have been part of what the model saw. A record without, such as a changed
    setting, is bookkeeping.
    """
    values = (record, *(as_dict(record.get(key)) for key in _INSIDE))
    listed = (item for value in values for key in _LISTS for item in as_dicts(value.get(key)))
    values = (*values, *listed)
    return any(value.get(key) for value in values for key in _CONTENT) or any(
        "name" in value and not value.keys().isdisjoint(_ARGUMENTS) for value in values
    )


def unknown_message(kind: Json) -> Message:
    """Returns a message in the place of a record of an unknown type that carries content.

    It separates the answers around it, and answers after it lack `unknown_part`. Count the record
    as ignored with its `unknown_code`.
    """
    return Message("user", (unknown_part(kind if isinstance(kind, str) else "record"),))
