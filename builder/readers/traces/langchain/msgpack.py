"""Decodes the MessagePack of LangGraph's checkpoints into plain values.

Source: the MessagePack specification; langgraph.checkpoint.serde.jsonplus for the extension types,
which name a Python class and its arguments. Nothing that they name is imported or called.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from builder.conversation import Json

MAX_DEPTH = 100
CLASS = "__class__"
"""The key of an object's class among its arguments."""

_FIXED: dict[int, tuple[str, int]] = {
    0xCA: (">f", 4), 0xCB: (">d", 8), 0xCC: (">B", 1), 0xCD: (">H", 2), 0xCE: (">I", 4),
    0xCF: (">Q", 8), 0xD0: (">b", 1), 0xD1: (">h", 2), 0xD2: (">i", 4), 0xD3: (">q", 8),
}  # fmt: skip
_SIZES = {1: ">B", 2: ">H", 4: ">I"}
_SNAPSHOT = 7
"""The extension type of a channel's whole value (langgraph.channels.delta)."""
_SIMPLE: dict[int, Json] = {0xC0: None, 0xC2: False, 0xC3: True}


class MsgpackFault(ValueError):
    """Bytes that are not MessagePack, are nested too deeply, or have no equivalent in JSON."""


def unpack(data: bytes) -> Json:
    """Returns the only value in the bytes. Raises MsgpackFault."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise MsgpackFault(f"{len(data) - reader.at} bytes after the value")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) < size:
            raise MsgpackFault(f"ends at byte {len(self.data)} inside a value")
        self.at += size
        return piece

    def size(self, width: int) -> int:
        number: int = struct.unpack(_SIZES[width], self.take(width))[0]
        return number

    def value(self, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise MsgpackFault(f"nested deeper than {MAX_DEPTH}")
        mark = self.take(1)[0]
        if mark <= 0x7F:
            return mark
        if mark >= 0xE0:
            return mark - 0x100
        if mark in _SIMPLE:
            return _SIMPLE[mark]
        if mark in _FIXED:
            form, width = _FIXED[mark]
            number: int | float = struct.unpack(form, self.take(width))[0]
            if isinstance(number, float) and not math.isfinite(number):
                raise MsgpackFault(f"{number} is not a JSON number")
            return number
        return self._sized(mark, depth)

    def _sized(self, mark: int, depth: int) -> Json:
        if 0x80 <= mark <= 0x8F:
            return self._map(mark & 0x0F, depth)
        if 0x90 <= mark <= 0x9F:
            return self._list(mark & 0x0F, depth)
        if 0xA0 <= mark <= 0xBF:
            return self._text(mark & 0x1F)
        widths: dict[int, tuple[Callable[[int], Json], int]] = {
            0xC4: (self._bytes, 1), 0xC5: (self._bytes, 2), 0xC6: (self._bytes, 4),
            0xD9: (self._text, 1), 0xDA: (self._text, 2), 0xDB: (self._text, 4),
            0xDC: (lambda n: self._list(n, depth), 2), 0xDD: (lambda n: self._list(n, depth), 4),
            0xDE: (lambda n: self._map(n, depth), 2), 0xDF: (lambda n: self._map(n, depth), 4),
            0xC7: (lambda n: self._ext(n, depth), 1), 0xC8: (lambda n: self._ext(n, depth), 2),
            0xC9: (lambda n: self._ext(n, depth), 4),
        }  # fmt: skip
        if mark in widths:
            read, width = widths[mark]
            return read(self.size(width))
        if 0xD4 <= mark <= 0xD8:
            return self._ext(1 << (mark - 0xD4), depth)
        raise MsgpackFault(f"byte {mark:#x} is not the beginning of a value")

    def _text(self, size: int) -> str:
        return self.take(size).decode("utf-8", "surrogateescape")

    def _bytes(self, size: int) -> Json:
        self.take(size)
        return {CLASS: "bytes", "size": size}

    def _list(self, size: int, depth: int) -> Json:
        return [self.value(depth + 1) for _ in range(size)]

    def _map(self, size: int, depth: int) -> Json:
        found: dict[str, Json] = {}
        for _ in range(size):
            key = self.value(depth + 1)
            found[key if isinstance(key, str) else str(key)] = self.value(depth + 1)
        return found

    def _ext(self, size: int, depth: int) -> Json:
        """Returns an object: its arguments and the name of its class, or its only argument.

        LangGraph's extension types contain [module, class, arguments, …]; others are not decoded.
        """
        kind = self.take(1)[0]
        inner = _Reader(self.take(size))
        if kind > 5 and kind != _SNAPSHOT:
            return {CLASS: f"extension {kind}", "size": size}
        parts = inner.value(depth + 1)
        if kind == _SNAPSHOT:
            return parts
        if not isinstance(parts, list) or len(parts) < 3:
            raise MsgpackFault(f"extension {kind} names no class")
        if kind in (0, 1, 3):  # a constructor or method with one argument, or some by position
            return parts[2]
        arguments = parts[2] if isinstance(parts[2], dict) else {"value": parts[2]}
        return {**arguments, CLASS: str(parts[1])[:80]}
