"""Decodes and encodes JSON without loss.

orjson decodes most records. Those that it would change or refuse (integers beyond 64 bits, lone
surrogates) are decoded by the standard library. NaN, Infinity, numbers that overflow a double, and
integers beyond Python's digit limit are faults (`number`). Logs have them in fields that no reader
needs, such as scores: `loads_leniently` decodes them as text of a separate type.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from sys import intern
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import orjson

from builder.conversation import Json
from builder.problem import Problem

Item = TypeVar("Item")

MAX_DEPTH = 200
"""The deepest nesting that is accepted: recursive code would fail on deeper values."""

_MARKS = bytes.maketrans(b"123456789{", b"000000000[")
_LONG_DIGITS = b"0" * 19
"""Digits that may form an integer beyond 64 bits; `_MARKS` maps digits to 0 and brackets to [."""

_DIGITS = re.compile(rb"\d+")
_BOM = b"\xef\xbb\xbf"


class NotANumber(str):
    """The text of a number that is invalid JSON or not representable: NaN, Infinity, 1e999."""

    __slots__ = ()


_TYPES: dict[type, str] = {
    bool: "boolean", bytes: "binary", dict: "object", float: "number", int: "number", list: "array",
}  # fmt: skip


def json_type(value: object) -> str:
    """Returns the name of a decoded value's type in JSON: null, number, string and so on."""
    return "null" if value is None else _TYPES.get(type(value), "string")


def schema_type(value: object) -> str:
    """Returns the name of a decoded value's type in JSON Schema, which tells integers apart."""
    return "integer" if type(value) is int else json_type(value)


def a_json_type(value: object) -> str:
    """Returns the name of a decoded value's type in JSON with its article: an array, null."""
    name = json_type(value)
    return name if value is None else f"{'an' if name[0] in 'ao' else 'a'} {name}"


class JsonFault(ValueError):
    """JSON text that cannot be used: `code` is bad_utf8, bad_json, number or too_deep."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail

    def at(self, where: str) -> Problem:
        """Returns the fault as a Problem at a location."""
        return Problem(self.code, where, self.detail)


def _no_constant(name: str) -> Json:
    raise JsonFault("number", f"{name} is not a JSON number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonFault("number", f"number out of range: {text[:40]}")
    return value


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise JsonFault("number", f"integer of {len(text)} digits is beyond the limit") from error


_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False)  # decoded JSON is a tree
_COMPACT = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_float, parse_int=_int)


def _leniently(parse: Callable[[str], float], text: str) -> float | str:
    try:
        return parse(text)
    except JsonFault:
        return NotANumber(text)


_LENIENT = json.JSONDecoder(
    parse_constant=NotANumber,
    parse_float=partial(_leniently, _float),
    parse_int=partial(_leniently, _int),
)


def loads(data: bytes | str) -> Json:
    """Decodes one JSON text exactly. The last of duplicate keys wins. A UTF-8 BOM is skipped.

    Raises JsonFault and no other exception, whatever the bytes.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if raw.startswith(_BOM):
        raw = raw[3:]
    marks = raw.translate(_MARKS)
    exact = not _may_overflow(raw, marks)
    # A depth of n needs n opening brackets: counting them clears most texts.
    deep = marks.count(b"[") > MAX_DEPTH
    del marks  # as large as the text
    if exact:
        try:
            return _checked(cast("Json", orjson.loads(raw)), deep)
        except orjson.JSONDecodeError:
            pass  # the standard library accepts it or explains the fault
    return _checked(_decoded(_DECODER, data if isinstance(data, str) else raw), deep)


def _decoded(decoder: json.JSONDecoder, data: bytes | str) -> Json:
    """Decodes with the standard library. Raises JsonFault."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return cast("Json", decoder.decode(text.removeprefix("\ufeff")))
    except UnicodeDecodeError as error:
        raise JsonFault("bad_utf8", f"invalid UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"character {error.pos}"
        if error.lineno > 1:
            place = f"line {error.lineno}, column {error.colno}"
        raise JsonFault("bad_json", f"{error.msg.removesuffix(' at')} at {place}") from None
    except RecursionError:
        raise JsonFault("too_deep", "nesting is too deep to read") from None


def adjacent_objects(line: bytes) -> list[bytes]:
    """Returns the objects of a line that is several JSON objects without a separator, else [].

    Programs that write a log from two processes, or lose the end of a line, leave such lines.
    """
    found: list[bytes] = []
    try:
        text = line.decode("utf-8").strip()
        while text.startswith("{"):
            _, end = _DECODER.raw_decode(text)
            found.append(text[:end].encode())
            text = text[end:].lstrip()
    except (ValueError, RecursionError):
        return []
    return found if len(found) > 1 and not text else []


def loads_text(value: Json) -> Json:
    """Returns the value of a JSON text, or any other value or text unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except JsonFault:
        return value


def loads_leniently(data: bytes) -> tuple[Json, bool]:
    """Decodes like `loads`, except that numbers that it refuses become `NotANumber`.

    Returns the value, and whether it is exact (without any `NotANumber`). Raises JsonFault.
    """
    try:
        return loads(data), True
    except JsonFault as fault:
        if fault.code != "number":
            raise
    return _checked(_decoded(_LENIENT, data.removeprefix(_BOM)), True), False


def _may_overflow(raw: bytes, marks: bytes) -> bool:
    """Returns whether the text may contain an integer that orjson would change.

    Digits inside strings do not count. 19 digits exceed 64 bits only after a minus sign.
    """
    at = marks.find(_LONG_DIGITS)
    while at >= 0:
        run = _DIGITS.match(raw, at)
        assert run is not None
        before = raw[at - 1 : at]
        if before in b"-+.eE" or (before in b" \t\r\n:,[" and len(run[0]) > len(_LONG_DIGITS)):
            return True
        at = marks.find(_LONG_DIGITS, run.end())
    return False


def _checked(value: Json, deep: bool) -> Json:
    if deep and depth(value) > MAX_DEPTH:
        raise JsonFault("too_deep", f"nested deeper than {MAX_DEPTH}")
    return value


def depth(value: Json) -> int:
    """Returns the nesting depth of a decoded value: 0 for a scalar, 1 for a flat list."""
    deepest = 0
    level = [value] if value and isinstance(value, dict | list) else []
    while level:
        deepest += 1
        level = [
            child
            for item in level
            for child in (item.values() if type(item) is dict else item)
            if child
            and (type(child) is dict or type(child) is list)  # isinstance takes twice as long
        ]
    return deepest


def dumps(value: Json) -> str:
    """Encodes a value exactly as transformers' `tojson` does: ", ", ": ", in order, unescaped."""
    return _ENCODER.encode(value)


def dumps_compact(value: Json) -> str:
    """Encodes a value as JavaScript's `JSON.stringify` does: no spaces, in order, unescaped."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # a lone surrogate, or an integer of more than 64 bits
        return _COMPACT.encode(value)


def packed(value: object) -> bytes:
    """Encodes a value compactly for internal files; a lone surrogate becomes "?".

    Dataclasses become objects, bytes hexadecimal digits.
    """
    try:
        return orjson.dumps(value, default=bytes.hex)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=False, default=_plain).encode("utf-8", "replace")


def _plain(value: Any) -> object:
    if isinstance(value, bytes):
        return value.hex()
    return {item.name: getattr(value, item.name) for item in fields(value)}


def unpacked(kind: type[Item], value: Any) -> Item:
    """Returns a value of a dataclass that `packed` encoded. Equal texts are one object."""
    read: Item = _reading(cast("Any", kind))(value)
    return read


@cache
def _reading(kind: Any) -> Callable[[Any], Any]:
    """Returns the function that reads the values of a type: bytes, tuples, dataclasses, unions."""
    if kind in (bytes, str):
        return bytes.fromhex if kind is bytes else intern
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        known = {item.name: _reading(hints[item.name]) for item in fields(kind)}
        made: Any = kind
        return lambda values: made(**{name: known[name](item) for name, item in values.items()})
    items = [_reading(item) for item in get_args(kind) if item not in (..., type(None))]
    if get_origin(kind) is tuple and get_args(kind)[-1] is ...:
        return lambda values: tuple(map(items[0], values))
    if get_origin(kind) is tuple:
        return lambda values: tuple(one(item) for one, item in zip(items, values, strict=True))
    if type(None) in get_args(kind):
        return lambda value: None if value is None else items[0](value)
    return lambda value: value


def quoted(text: str) -> bytes:
    """Encodes a string as `dumps` does, faster. Raises UnicodeEncodeError for lone surrogates."""
    try:
        return orjson.dumps(text)
    except orjson.JSONEncodeError:
        return dumps(text).encode("utf-8")
