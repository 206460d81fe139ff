"""Decodes JSON inside strings, which exports, span attributes and database columns contain."""

from __future__ import annotations

from builder.conversation import Json
from builder.jsonio import JsonFault, loads


def json_in_text(value: Json, *, beginnings: str = "{[", levels: int = 1) -> Json:
    """Returns the JSON value inside a string; other text and other values are returned unchanged.

    Decodes only text whose first non-space character is one of `beginnings`, so that by default
    words, numbers and quoted text stay text. `levels` is the maximum depth of JSON within JSON.
    """
    for _ in range(levels):
        if not isinstance(value, str):
            break
        first = value.lstrip()[:1]
        if not first or first not in beginnings:
            break
        try:
            value = loads(value)
        except JsonFault:
            break
    return value


def is_json(text: str) -> bool:
    """Returns whether a text is one JSON value."""
    try:
        loads(text)
    except JsonFault:
        return False
    return True


def command_failed(text: str) -> bool:
    """Returns whether a text is the JSON result of a command, with an exit code other than 0."""
    value = json_in_text(text) if '"exit_code"' in text else None
    code = value.get("exit_code") if isinstance(value, dict) else None
    return isinstance(code, int) and code != 0
