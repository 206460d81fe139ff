"""Parses values in text: JSON, or the Python literals that many datasets contain instead.

Nothing is evaluated. Constants are read in both spellings (`True` and `true`, `None` and `null`).
"""

from __future__ import annotations

import re
from collections import Counter

from builder.conversation import Json
from builder.jsonio import JsonFault, loads

_MAX_DEPTH = 100
"""Maximum nesting of a literal, since the scanner recurses. `jsonio` limits JSON itself."""

_SPACE = re.compile(r"\s*")
_STRING = re.compile(
    r"'(?P<single>[^'\\\n\r]*(?:\\.[^'\\\n\r]*)*)'"
    r'|"(?P<double>[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*)"',
    re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?(?:\d+(?P<fraction>\.\d*)?|(?P<bare>\.\d+))(?P<power>[eE][-+]?\d+)?\b")
_WORD = re.compile(r"[A-Za-z]+\b")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)

_CONSTANTS: dict[str, bool | None] = {
    "True": True, "true": True, "False": False, "false": False, "None": None, "null": None,
}  # fmt: skip
_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "\n": "",
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


def values(text: str, changes: Counter[str]) -> list[Json]:
    """Returns the values of a text that contains one or more, optionally separated by commas.

    Each is JSON or a Python literal, which `changes` counts as `python_literal`. Raises JsonFault
    if there is no value or any other text.
    """
    try:
        return [loads(text)]
    except JsonFault:
        pass  # several values, or Python's spelling
    values: list[Json] = []
    literals = 0
    at = past_space(text, 0)
    while at < len(text):
        value, end = scan(text, at)
        try:
            value = loads(text[at:end])  # JSON wins where both parse
        except JsonFault:
            literals += 1
        values.append(value)
        at = past_space(text, end)
        if text[at : at + 1] == ",":
            at = past_space(text, at + 1)
    if not values:
        raise JsonFault("bad_json", "no value")
    if literals:
        changes["python_literal"] += literals
    return values


def value(text: str, changes: Counter[str]) -> Json:
    """Returns the only value of a text. Raises JsonFault; see `values`."""
    only = values(text, changes)
    if len(only) > 1:
        raise JsonFault("bad_json", f"{len(only)} values in one text")
    return only[0]


def column(cell: Json, changes: Counter[str]) -> Json:
    """Returns the value of a table cell, parsed if it is text; None for blank text.

    Raises JsonFault; see `values`.
    """
    if not isinstance(cell, str):
        return cell
    return value(cell, changes) if cell.strip() else None


def scan(text: str, at: int = 0, depth: int = 0) -> tuple[Json, int]:
    """Returns the literal that begins at `at`, and the position after it. Raises JsonFault."""
    if depth > _MAX_DEPTH:
        raise JsonFault("too_deep", f"a literal nested deeper than {_MAX_DEPTH}")
    at = past_space(text, at)
    first = text[at : at + 1]
    if first == "{":
        return _dict(text, at + 1, depth + 1)
    if first == "[":
        items, end, _ = _items(text, at + 1, "]", depth + 1)
        return items, end
    if first == "(":
        items, end, is_tuple = _items(text, at + 1, ")", depth + 1)
        return items if is_tuple else items[0], end
    if match := _STRING.match(text, at):
        return _unescape(match["single"] if first == "'" else match["double"]), match.end()
    if match := _NUMBER.match(text, at):
        return _number(match), match.end()
    match = _WORD.match(text, at)
    if match and match[0] in _CONSTANTS:
        return _CONSTANTS[match[0]], match.end()
    raise _fault(text, at)


def _dict(text: str, at: int, depth: int) -> tuple[Json, int]:
    members: dict[str, Json] = {}
    at = past_space(text, at)
    while text[at : at + 1] != "}":
        key, at = scan(text, at, depth)
        if not isinstance(key, str):
            raise JsonFault("bad_json", "a key that is not a string")
        at = _expect(text, at, ":")
        members[key], at = scan(text, at, depth)
        at = past_space(text, at)
        if text[at : at + 1] != "}":
            at = _expect(text, at, ",")
    return members, at + 1


def _items(text: str, at: int, close: str, depth: int) -> tuple[list[Json], int, bool]:
    items: list[Json] = []
    comma = False
    at = past_space(text, at)
    while text[at : at + 1] != close:
        item, at = scan(text, at, depth)
        items.append(item)
        at = past_space(text, at)
        if text[at : at + 1] != close:
            at = _expect(text, at, ",")
            comma = True
    return items, at + 1, comma or not items


def _number(match: re.Match[str]) -> Json:
    if match["fraction"] is None and match["bare"] is None and match["power"] is None:
        try:
            return int(match[0])
        except ValueError:
            raise JsonFault("number", f"integer of {len(match[0])} digits") from None
    number = float(match[0])
    if number in (float("inf"), float("-inf")):
        raise JsonFault("number", f"number out of range: {match[0][:40]}")
    return number


def _unescape(body: str) -> str:
    return _ESCAPE.sub(_character, body) if "\\" in body else body


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1 and code[0] in "xuU":
        point = int(code[1:], 16)
        return chr(point) if point <= 0x10FFFF else match[0]
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPES.get(code, match[0])  # Python keeps an unknown escape as it is


def past_space(text: str, at: int) -> int:
    """Returns the position after any white space at `at`."""
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _expect(text: str, at: int, char: str) -> int:
    at = past_space(text, at)
    if text[at : at + 1] != char:
        raise _fault(text, at)
    return past_space(text, at + 1)


def _fault(text: str, at: int) -> JsonFault:
    actual = repr(text[at]) if at < len(text) else "the end"
    return JsonFault("bad_json", f"unexpected {actual} at character {at}")
