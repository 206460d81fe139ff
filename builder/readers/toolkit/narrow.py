"""Narrowing of JSON values: logs are hostile, so nothing has a type until it was looked at."""

from __future__ import annotations

from builder.conversation import Json


def as_dict(value: Json) -> dict[str, Json]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_str(value: Json) -> str:
    """The value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def name_or_none(value: Json) -> str | None:
    """The value if it is a string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def unknown(name: Json) -> str:
    """The code under which an unknown record type is ignored: `unknown:<type>`, 40 characters."""
    text = name if isinstance(name, str) else type(name).__name__
    return "unknown:" + "".join(char for char in text if char.isprintable())[:40]
