"""Narrowing JSON values to a type: a log may contain any value at any place."""

from __future__ import annotations

from builder.conversation import Json


def as_dict(value: Json) -> dict[str, Json]:
    """Returns the value if it is an object, else {}."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Returns the value if it is a list, else []."""
    return value if isinstance(value, list) else []


def as_str(value: Json) -> str:
    """Returns the value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def name_or_none(value: Json) -> str | None:
    """Returns the value if it is a non-empty string, else None."""
    return value if isinstance(value, str) and value else None


def name_of(value: dict[str, Json], *keys: str) -> str | None:
    """Returns the first of the named fields that is a non-empty string, else None."""
    return next((name for key in keys if (name := name_or_none(value.get(key)))), None)


def first_of(value: dict[str, Json], *keys: str) -> Json:
    """Returns the first of the named fields that is there and not null, else null."""
    return next((found for key in keys if (found := value.get(key)) is not None), None)


def unknown_code(name: Json) -> str:
    """Returns the code for ignoring a record of an unknown type: `unknown:<type>`.

    At most 40 printable characters of the type are kept.
    """
    text = name if isinstance(name, str) else type(name).__name__
    return "unknown:" + "".join(char for char in text if char.isprintable())[:40]
