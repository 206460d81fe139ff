"""Decodes the MessagePack of LangGraph's checkpoints into plain values.

Source: the MessagePack specification; langgraph.checkpoint.serde.jsonplus for the extension types,
which name a Python class and its arguments. Nothing that they name is imported or called.
"""

from __future__ import annotations

import math
import struct

from builder.conversation import Json

MAX_DEPTH = 100
CLASS = "__class__"
"""The key of an object's class among its arguments."""

_FIXED: dict[int, tuple[str, int]] = {
    0xCA: (">f", 4), 0xCB: (">d", 8), 0xCC: (">B", 1), 0xCD: (">H", 2), 0xCE: (">I", 4),
    0xCF: (">Q", 8), 0xD0: (">b", 1), 0xD1: (">h", 2), 0xD2: (">i", 4), 0xD3: (">q", 8),
}  # fmt: skip
_SIZED: dict[int, tuple[str, int]] = {
    0xC4: ("bytes", 1), 0xC5: ("bytes", 2), 0xC6: ("bytes", 4),
    0xC7: ("extension", 1), 0xC8: ("extension", 2), 0xC9: ("extension", 4),
    0xD9: ("text", 1), 0xDA: ("text", 2), 0xDB: ("text", 4),
    0xDC: ("list", 2), 0xDD: ("list", 4), 0xDE: ("map", 2), 0xDF: ("map", 4),
}  # fmt: skip
"""The kind of value and the width of its size in bytes, by the first byte."""
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
        match self._kind_and_size(mark):
            case "text", size:
                return self.take(size).decode("utf-8", "surrogateescape")
            case "bytes", size:
                self.take(size)
                return {CLASS: "bytes", "size": size}
            case "list", size:
                return [self.value(depth + 1) for _ in range(size)]
            case "map", size:
                return self._map(size, depth)
            case _, size:
                return self._extension(size, depth)

    def _kind_and_size(self, mark: int) -> tuple[str, int]:
        if 0x80 <= mark <= 0x8F:
            return "map", mark & 0x0F
        if 0x90 <= mark <= 0x9F:
            return "list", mark & 0x0F
        if 0xA0 <= mark <= 0xBF:
            return "text", mark & 0x1F
        if 0xD4 <= mark <= 0xD8:
            return "extension", 1 << (mark - 0xD4)
        if mark not in _SIZED:
            raise MsgpackFault(f"byte {mark:#x} is not the beginning of a value")
        kind, width = _SIZED[mark]
        return kind, int.from_bytes(self.take(width), "big")

    def _map(self, size: int, depth: int) -> Json:
        items: dict[str, Json] = {}
        for _ in range(size):
            key = self.value(depth + 1)
            items[key if isinstance(key, str) else str(key)] = self.value(depth + 1)
        return items

    def _extension(self, size: int, depth: int) -> Json:
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
