"""Handles records of unknown types: content until shown otherwise."""

from __future__ import annotations

from builder.conversation import Json, Message, unknown_part
from builder.readers.toolkit.narrow import as_dict

_CONTENT = ("content", "text", "parts", "message", "output")
_INSIDE = ("message", "payload", "data")


def carries_content(record: dict[str, Json]) -> bool:
    """Returns whether a record of an unknown type carries text or a message.

    Such a record may have been part of what the model saw. A record without, such as a changed
    setting, is bookkeeping.
    """
    inner = (as_dict(record.get(key)) for key in _INSIDE)
    return any(bool(value.get(key)) for value in (record, *inner) for key in _CONTENT)


def unknown_message(kind: Json) -> Message:
    """Returns a message in the place of a record of an unknown type that carries content.

    It separates the answers around it, and answers after it lack `unknown_part`. Count the record
    as ignored with its `unknown_code`.
    """
    return Message("user", (unknown_part(kind if isinstance(kind, str) else "record"),))
