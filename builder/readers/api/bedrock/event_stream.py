"""Decodes Amazon's binary event streams, in whose frames Bedrock streams answers.

A frame consists of its length, the length of its headers and a checksum of both, the headers, the
payload, and a checksum of everything before. Lengths and checksums have 4 bytes, big endian.
Recorders store the bytes as hex (nock) or base64 (VCR, HAR).
Source: AWS documentation "Event stream encoding" (`application/vnd.amazon.eventstream`).
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.readers.toolkit.narrow import as_dict, as_str

_PRELUDE = 12  # two lengths and their checksum
_LEAST = 16  # a frame without headers and payload
_STRING = 7  # the type of headers with text
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes in bytes of header values by type; values of types 6 and 7 begin with their length."""
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}\s*)+")


def events_in_text(text: str) -> tuple[Json, ...] | None:
    """Returns the events of a stream given as hex or base64 lines; None for other text."""
    if text.startswith("0000") and _HEX.fullmatch(text):
        return events(bytes.fromhex(text))
    if not text.startswith("AAA"):
        return None
    try:
        return events(b"".join(base64.b64decode(line, validate=True) for line in text.split()))
    except (binascii.Error, ValueError):
        return None


def events(data: bytes) -> tuple[Json, ...] | None:
    """Returns the events of the frames, each as `{type: payload}`; None for other data.

    A payload with an event of the model's own API (InvokeModel) is returned as that event. The
    events end at the first invalid frame.
    """
    return tuple(_events(data)) if _is_frame(data, 0) else None


def _is_frame(data: bytes, at: int) -> bool:
    prelude = data[at : at + _PRELUDE]
    return len(prelude) == _PRELUDE and zlib.crc32(prelude[:8]) == _number(prelude[8:])


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _events(data: bytes) -> Iterator[Json]:
    at = 0
    while _is_frame(data, at):
        size, head = _number(data[at : at + 4]), _number(data[at + 4 : at + 8])
        frame = data[at : at + size]
        whole = len(frame) == size and size >= _LEAST + head
        if not whole or zlib.crc32(frame[:-4]) != _number(frame[-4:]):
            return
        names = _headers(frame[_PRELUDE : _PRELUDE + head])
        try:
            payload = loads(frame[_PRELUDE + head : -4] or b"{}")
        except JsonFault:
            return
        yield _event(names, payload)
        at += size


def _headers(data: bytes) -> dict[str, str]:
    """Returns the headers whose values are strings."""
    headers: dict[str, str] = {}
    at = 0
    while at < len(data):
        name = data[at + 1 : at + 1 + data[at]].decode("utf-8", "replace")
        at += 1 + data[at]
        kind = data[at] if at < len(data) else -1
        at += 1
        if kind in (6, _STRING):
            size = _number(data[at : at + 2])
            if kind == _STRING:
                headers[name] = data[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
        elif kind in _SIZES:
            at += _SIZES[kind]
        else:
            break
    return headers


def _event(names: dict[str, str], payload: Json) -> Json:
    body = {key: value for key, value in as_dict(payload).items() if key != "p"}  # padding
    if names.get(":message-type", "event") != "event":
        kind = names.get(":exception-type") or names.get(":error-code", "error")
        return {"error": {"type": kind, **body}}
    if names.get(":event-type") == "chunk" and isinstance(body.get("bytes"), str):
        try:
            return loads(base64.b64decode(as_str(body["bytes"])))
        except (JsonFault, ValueError):
            return body
    return {names.get(":event-type", "event"): body}
