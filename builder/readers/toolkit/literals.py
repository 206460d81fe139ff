"""Parses values in text: JSON, or the Python literals that many datasets contain instead.

Nothing is evaluated. Constants are read in both spellings (`True` and `true`, `None` and `null`).
"""

from __future__ import annotations

import re
from collections import Counter

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.readers.toolkit.narrow import one_or_many

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
_CLOSES = {"{": "}", "[": "]", "(": ")"}
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


def items(text: str, changes: Counter[str]) -> list[Json]:
    """Returns the values of a text, and for each list among them its items; see `values`."""
    return [one for item in values(text, changes) for one in one_or_many(item)]


def value(text: str, changes: Counter[str]) -> Json:
    """Returns the only value of a text. Raises JsonFault; see `values`."""
    only = values(text, changes)
    if len(only) > 1:
        raise JsonFault("bad_json", f"{len(only)} values in one text")
    return only[0]


def scan(text: str, at: int = 0, depth: int = 0) -> tuple[Json, int]:
    """Returns the literal that begins at `at`, and the position after it. Raises JsonFault."""
    if depth > _MAX_DEPTH:
        raise JsonFault("too_deep", f"a literal nested deeper than {_MAX_DEPTH}")
    at = past_space(text, at)
    first = text[at : at + 1]
    if first and first in _CLOSES:
        return _container(text, at + 1, first, depth + 1)
    if match := _STRING.match(text, at):
        return _unescape(match["single"] if first == "'" else match["double"]), match.end()
    if match := _NUMBER.match(text, at):
        return _number(match), match.end()
    match = _WORD.match(text, at)
    if match and match[0] in _CONSTANTS:
        return _CONSTANTS[match[0]], match.end()
    raise _fault(text, at)


def _container(text: str, at: int, opening: str, depth: int) -> tuple[Json, int]:
    """Returns an object, a list, or a tuple as one; a value alone in parentheses is itself."""
    close, has_comma = _CLOSES[opening], False
    found: list[Json] = []
    members: dict[str, Json] = {}
    at = past_space(text, at)
    while text[at : at + 1] != close:
        item, at = scan(text, at, depth)
        if opening != "{":
            found.append(item)
        elif isinstance(item, str):
            members[item], at = scan(text, _expect(text, at, ":"), depth)
        else:
            raise JsonFault("bad_json", "a key that is not a string")
        at = past_space(text, at)
        if text[at : at + 1] != close:
            at, has_comma = _expect(text, at, ","), True
    is_alone = opening == "(" and found and not has_comma
    return members if opening == "{" else found[0] if is_alone else found, at + 1


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
