"""Reads the wire format of Protocol Buffers without a schema: numbers of fields and their values.

Source: the encoding that protobuf.dev documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

ProtoMessage: TypeAlias = "dict[int, list[int | bytes]]"
"""The values of each field, in order: numbers, or bytes (text, a message, a packed list)."""

_FIXED = {1: 8, 5: 4}
"""{wire type: bytes of its value}."""


def fields(data: object) -> ProtoMessage:
    """Returns the fields of a message. Raises ValueError for what is no message."""
    fields_by_number: ProtoMessage = {}
    for number, value in entries(data):
        fields_by_number.setdefault(number, []).append(value)
    return fields_by_number


def entries(data: object) -> Iterator[tuple[int, int | bytes]]:
    """Yields (number of the field, value) in order. Raises ValueError for what is no message."""
    if not isinstance(data, bytes):
        raise ValueError("no bytes")
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size = _FIXED.get(kind)
            if size is None and kind != 2:
                raise ValueError(f"wire type {kind}")
            if size is None:
                size, at = _varint(data, at)
            value = data[at : at + size]
            at += size
            if len(value) != size:
                raise ValueError("ends inside a value")
        if not key >> 3:
            raise ValueError("a field without a number")
        yield key >> 3, value


def varints(data: object) -> list[int]:
    """Returns the numbers of a packed list. Raises ValueError."""
    if isinstance(data, int):
        return [data]
    if not isinstance(data, bytes):
        raise ValueError("no bytes")
    numbers = []
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        numbers.append(value)
    return numbers


def last(message: ProtoMessage, number: int) -> int | bytes | None:
    """Returns the last value of a field, which counts if it is not a list; None without one."""
    values = message.get(number)
    return values[-1] if values else None


def text(message: ProtoMessage, number: int) -> str:
    """Returns the text of a field; "" if it has none."""
    value = last(message, number)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else ""


def number(message: ProtoMessage, field: int) -> int:
    """Returns the number in a field; 0 if it has none, which is how the format writes zero."""
    value = last(message, field)
    return value if isinstance(value, int) else 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
