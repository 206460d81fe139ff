"""Decodes bodies of HTTP exchanges: JSON, text, base64, hex, compressed bytes, event streams.

Each recorder has its own form: the decoded JSON, its text, `{"string": …}` (VCR),
`{"text": …, "encoding": "base64"}` (HAR), `{"base64_string": …}` (VCR for Ruby, Betamax), a list of
pieces in clear text, hex (nock) or Base64 (Polly), or a pickled `BytesIO` (vcrpy)
(docs/formats/http-captures.md). A streamed answer consists of server-sent events, JSON lines or
binary frames (Bedrock).
"""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import suppress
from dataclasses import dataclass

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.readers.api.bedrock import event_stream
from builder.readers.api.capture.compression import GZIP_MAGIC, decompressed
from builder.readers.toolkit.narrow import as_list

_BASE64_STARTS = ("H4sI", "eyJ", "W3si")
"""How gzip and JSON begin in Base64; no JSON text and no stream begins so."""
_CODINGS = frozenset({"gzip", "deflate", "br", "zstd"})
_LINE_END = re.compile(r"\r\n|\n|\r")  # str.splitlines would also cut at U+2028 inside JSON strings
_FIELD = re.compile(r"(?:\A|[\r\n])(?:data|event|id|retry)?:")
_TEXT_KEYS = ("string", "text", "base64_string")
_WRAPPER_KEYS = frozenset(
    {"encoding", "mimeType", "size", "compression", "params", "comment", "_isBinary"}
)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body.

    value   the JSON value; None if the body is `null` or not JSON
    events  the JSON values of a stream in order; None if it is not a stream
    text    any other body (an error page, a binary stream in hex), else ""
    is_empty  whether there is a body and it is empty
    """

    value: Json = None
    events: tuple[Json, ...] | None = None
    text: str = ""
    is_empty: bool = False


def read_body(body: Json, encoding: str = "") -> Body:
    """Returns the body in any recorder's form. Raises JsonFault if it cannot be decoded.

    `encoding` is the coding in the header `content-encoding`, or "".
    """
    logged = _unwrapped(body)
    if isinstance(logged, list) and logged and all(isinstance(piece, str) for piece in logged):
        pieces = [piece for piece in logged if isinstance(piece, str)]
        packed = _packed_pieces(pieces)
        logged = packed if packed is not None else "\n".join(pieces)
    elif isinstance(logged, str) and (packed := _packed_text(logged, encoding)) is not None:
        logged = packed
    if isinstance(logged, bytes):
        logged = decompressed(logged, encoding)
        if (frames := event_stream.events(logged)) is not None:
            return Body(events=frames)
        logged = _decoded(logged)
    if not isinstance(logged, str):
        return Body(value=logged, is_empty=logged is not None and not logged)
    return _read_text(logged)


def _unwrapped(body: Json) -> Json | bytes:
    """Returns the value, text or bytes in the object that wraps a body, or the body itself."""
    if isinstance(body, dict) and len(body) == 1 and as_list(body.get("state")):
        body = as_list(body["state"])[0]  # vcrpy pickles a BytesIO
    if isinstance(body, dict) and "string" in body and body.keys() <= {"string", "encoding"}:
        body = body if isinstance(body["string"], str) else body["string"]  # a tag !!binary
    if not isinstance(body, dict):
        return body
    if body and body.keys() <= _WRAPPER_KEYS and ("mimeType" in body or "size" in body):
        return None if body.get("size") else ""  # a HAR file without this body
    inner = _wrapped(body)
    return body if inner is None else inner


def _packed_pieces(pieces: list[str]) -> bytes | None:
    """Returns the bytes of pieces in hex (nock) or Base64 (Polly); None for clear text."""
    if all(map(_HEX.fullmatch, pieces)):
        return bytes.fromhex("".join(pieces))
    try:
        data = b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    except (binascii.Error, ValueError):
        return None
    return None if event_stream.events_in_text("\n".join(pieces)) is not None else data


def _packed_text(text: str, encoding: str) -> bytes | None:
    """Returns the bytes that a text contains one for one, in hex or Base64; None for clear text."""
    if text.startswith(GZIP_MAGIC.decode("latin-1")):
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:  # bytes were replaced: nothing can restore them
            return None
    is_packed = text.startswith(GZIP_MAGIC.hex()) or encoding in _CODINGS
    if is_packed and _HEX.fullmatch(text):
        return bytes.fromhex(text)
    if text.startswith(_BASE64_STARTS):
        with suppress(binascii.Error, ValueError):
            return base64.b64decode("".join(text.split()), validate=True)
    return None


def _read_text(body: str) -> Body:
    if not body.strip():
        return Body(is_empty=True)
    try:
        value = loads(body)
        return Body(value=value, is_empty=value is None)
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
    is_binary = body.get("_isBinary") is True and text.lstrip().startswith("[")
    if key != "base64_string" and body.get("encoding") != "base64" and not is_binary:
        return text
    if text.lstrip().startswith("["):  # Polly: the chunks of the body as a JSON text
        with suppress(JsonFault):
            chunks = [piece for piece in as_list(loads(text)) if isinstance(piece, str)]
            if (data := _packed_pieces(chunks)) is not None:
                return data
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        raise JsonFault("bad_body", "invalid base64") from None


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
    values: list[Json] = []
    data: list[str] = []
    fields = _FIELD.match(text.lstrip()) is not None
    for line in (*_LINE_END.split(text), ""):
        name, colon, value = line.partition(":")
        if not fields:
            values += _values([line])
        elif name == "data" and colon:
            data.append(value.removeprefix(" "))
        elif not line and data:
            values += _values(data)
            data = []
    return tuple(values)


def _values(lines: list[str]) -> list[Json]:
    """Returns the JSON value of all lines together, else the value of each line that has one."""
    try:
        return [loads("\n".join(lines))]
    except JsonFault:
        return [value for line in lines for value in _values([line])] if len(lines) > 1 else []
