"""Represents results in one line, for notebooks and error messages."""

from __future__ import annotations

LONGEST = 80
"""The code points of a value that are shown."""


def brief(item: object, *counted: str, **shown: object) -> str:
    """Returns the repr of an item in one line: what is `shown`, and the numbers of parts."""
    parts = [f"{name}={_cut(repr(value))}" for name, value in shown.items()]
    return f"{type(item).__name__}({', '.join([*parts, *counted])})"


def shown(value: object) -> str:
    """Returns a wrong value for a message: a text or number itself, its type for others."""
    return _cut(repr(value)) if isinstance(value, str | int | float) else type(value).__name__


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
