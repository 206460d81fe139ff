"""JSON inside strings, as exports, attributes of spans and database columns contain it."""

from __future__ import annotations

from builder.conversation import Json
from builder.jsonio import JsonFault, loads


def json_in_text(value: Json, *, beginnings: str = "{[", levels: int = 1) -> Json:
    """Returns the JSON value that a string contains; any other value, and other text, as it is.

    Only text whose first character (after white space) is one of `beginnings` is decoded, so that
    by default words, numbers and quoted text stay text. `levels`: how often text that decodes to a
    string is decoded again.
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
