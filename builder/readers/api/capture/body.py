"""Decodes bodies of HTTP exchanges: JSON, text, base64, gzip, event streams.

Each recorder has its own form: the decoded JSON, its text, `{"string": …}` (VCR),
`{"text": …, "encoding": "base64"}` (HAR), `{"base64_string": …}` (VCR for Ruby) or a list of
pieces (http-captures.md). A streamed answer consists of server-sent events, JSON lines or binary
frames (Bedrock).
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from dataclasses import dataclass

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.readers.api.bedrock import event_stream

MAX_UNPACKED = 64 << 20
"""Maximum size in bytes of one decompressed body."""

GZIP_MAGIC = b"\x1f\x8b"

_LINE_END = re.compile(r"\r\n|\n|\r")  # str.splitlines would also cut at U+2028 inside JSON strings
_FIELD = re.compile(r"(?:\A|[\r\n])(?:data|event|id|retry)?:")
_TEXT_KEYS = ("string", "text", "base64_string")
_WRAPPER_KEYS = frozenset({"encoding", "mimeType", "size", "compression", "params", "comment"})


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body.

    value   the JSON value; None if the body is `null` or not JSON
    events  the JSON values of a stream in order; None if it is not a stream
    text    any other body (an error page, a binary stream in hex), else ""
    """

    value: Json = None
    events: tuple[Json, ...] | None = None
    text: str = ""


def read_body(body: Json) -> Body:
    """Returns the body in any recorder's form. Raises JsonFault if it cannot be decoded."""
    if isinstance(body, list) and body and all(isinstance(piece, str) for piece in body):
        body = "\n".join(piece for piece in body if isinstance(piece, str))
    if isinstance(body, dict) and len(body) == 1 and isinstance(body.get("string"), dict):
        body = body["string"]  # VCR wraps the bytes of a tag !!binary
    if isinstance(body, dict) and (wrapped := _wrapped(body)) is not None:
        if isinstance(wrapped, bytes):
            if (frames := event_stream.events(wrapped)) is not None:
                return Body(events=frames)
            wrapped = _decoded(wrapped)
        body = wrapped
    if not isinstance(body, str):
        return Body(value=body)
    try:
        return Body(value=loads(body))
    except JsonFault as fault:
        if fault.code in ("number", "too_deep"):
            raise
    if (frames := event_stream.events_in_text(body)) is not None:
        return Body(events=frames)
    if is_stream(body):
        return Body(events=events(body))
    return Body(text=body)


def _wrapped(body: dict[str, Json]) -> str | bytes | None:
    """Returns the text or bytes in an object that wraps a body; None if the object is the body."""
    key = next((key for key in _TEXT_KEYS if isinstance(body.get(key), str)), None)
    if key is None or not set(body) - {key} <= _WRAPPER_KEYS:
        return None
    text = body[key]
    assert isinstance(text, str)
    if key != "base64_string" and body.get("encoding") != "base64":
        return text
    try:
        data = base64.b64decode(text)
    except (binascii.Error, ValueError):
        raise JsonFault("bad_body", "invalid base64") from None
    return _unpacked(data)


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(GZIP_MAGIC):
        return data
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        data = unpack.decompress(data, MAX_UNPACKED)
    except zlib.error as error:
        raise JsonFault("bad_body", f"gzip: {error}") from None
    if unpack.unconsumed_tail:
        raise JsonFault("too_large", f"unpacks to more than {MAX_UNPACKED} bytes")
    if not unpack.eof:
        raise JsonFault("bad_body", "gzip: the stream ends before its end marker")
    return data


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonFault("bad_utf8", f"invalid UTF-8 at byte {error.start}") from None


def is_stream(text: str) -> bool:
    """Returns whether the text consists of server-sent events or JSON lines."""
    head = text[:4096].lstrip()
    if _FIELD.match(head):
        return True
    first = _LINE_END.split(head, maxsplit=1)[0]
    return first.startswith("{") and first.rstrip().endswith("}") and first != head.rstrip()


def events(text: str) -> tuple[Json, ...]:
    """Returns the JSON values of a stream in order: of its `data:` fields, or of its lines.

    Skips anything but JSON ([DONE], comments, a truncated last line), since the events themselves
    show whether the answer is complete. A recorder may have dropped the blank lines between events.
    Source: the server-sent events section of the HTML standard.
    """
    found: list[Json] = []
    data: list[str] = []
    fields = _FIELD.match(text.lstrip()) is not None
    for line in (*_LINE_END.split(text), ""):
        name, colon, value = line.partition(":")
        if not fields:
            found += _values([line])
        elif name == "data" and colon:
            data.append(value.removeprefix(" "))
        elif not line and data:
            found += _values(data)
            data = []
    return tuple(found)


def _values(lines: list[str]) -> list[Json]:
    """Returns the JSON value of all lines together, else the value of each line that has one."""
    try:
        return [loads("\n".join(lines))]
    except JsonFault:
        return [value for line in lines for value in _values([line])] if len(lines) > 1 else []
