"""Decodes bodies of HTTP exchanges in every recorder's form (docs/formats/http-captures.md).

They are JSON, text, base64, hex, compressed bytes, or streams: events, lines or binary frames.
"""

from __future__ import annotations

import base64
import binascii
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from builder.conversation import Json
from builder.distribution import install_line
from builder.jsonio import JsonFault, loads
from builder.readers.toolkit.narrow import as_dict, as_list, as_str

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_UNPACKED = 64 << 20
"""Maximum size in bytes of one decompressed body."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def content_encoding(headers: Json) -> str:
    """Returns the last coding in the header `content-encoding`, in lower case, or "".

    Headers may be an object, with a text or a list for each name, a list of {name, value}, of
    pairs, or of names and values in turn. No other header is read, since they contain keys.
    """
    pairs: list[tuple[Json, Json]] = list(as_dict(headers).items())
    items = as_list(headers)
    if items and all(isinstance(item, str) for item in items):
        pairs += zip(items[::2], items[1::2], strict=False)
    for item in items:
        if isinstance(item, dict):
            pairs.append((item.get("name"), item.get("value")))
        elif isinstance(item, list) and len(item) == 2:
            pairs.append((item[0], item[1]))
    for name, value in pairs:
        if isinstance(name, str) and name.lower() == "content-encoding":
            value = value[-1] if isinstance(value, list) and value else value  # noqa: PLW2901 - narrowed
            return value.split(",")[-1].strip().lower() if isinstance(value, str) else ""
    return ""


def decompressed(data: bytes, encoding: str) -> bytes:
    """Returns the decompressed bytes; bytes that are not compressed unchanged.

    `encoding` is that of the header. Raises JsonFault if the data is corrupt, cut, or too large.
    """
    if data.startswith(_GZIP_MAGIC):
        return _with_zlib(data, zlib.MAX_WBITS | 16, "gzip")
    if data.startswith(_ZSTD_MAGIC):
        return _with_zstd(data)
    if encoding in ("deflate", "br") and not _is_text(data):
        if encoding == "br":
            return _with_brotli(data)
        # Servers send zlib's format or, against the standard, raw data.
        has_header = len(data) > 1 and data[0] & 15 == 8 and (data[0] << 8 | data[1]) % 31 == 0
        return _with_zlib(data, zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS, "deflate")
    return data


def _is_text(data: bytes) -> bool:
    return data.lstrip()[:1] in (b"{", b"[") or data.startswith((b"data:", b"event:"))


def _with_zlib(data: bytes, bits: int, name: str) -> bytes:
    unpack = zlib.decompressobj(bits)
    try:
        unpacked = unpack.decompress(data, MAX_UNPACKED)
    except zlib.error as error:
        raise JsonFault("bad_body", f"{name}: {error}") from None
    return _whole(unpacked, name, ended=unpack.eof, is_more=bool(unpack.unconsumed_tail))


def _with_zstd(data: bytes) -> bytes:
    unpack = zstd.ZstdDecompressor()
    try:
        unpacked = unpack.decompress(data, MAX_UNPACKED + 1)
    except zstd.ZstdError as error:
        raise JsonFault("bad_body", f"zstd: {error}") from None
    is_more = len(unpacked) > MAX_UNPACKED
    return _whole(unpacked, "zstd", ended=unpack.eof, is_more=is_more)


def _with_brotli(data: bytes) -> bytes:
    try:
        import brotli  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415 - optional
    except ImportError:
        detail = f"br: needs `{install_line('brotli')}`"
        raise JsonFault("bad_body", detail) from None
    unpack = brotli.Decompressor()
    try:
        unpacked = bytes(unpack.process(data, output_buffer_limit=MAX_UNPACKED))
    except brotli.error as error:
        raise JsonFault("bad_body", f"br: {error}") from None
    is_more = not unpack.is_finished() and not unpack.can_accept_more_data()
    return _whole(unpacked, "br", ended=unpack.is_finished(), is_more=is_more)


def _whole(unpacked: bytes, name: str, *, ended: bool, is_more: bool) -> bytes:
    if is_more:
        raise JsonFault("too_large", f"unpacks to more than {MAX_UNPACKED} bytes")
    if not ended:
        raise JsonFault("bad_body", f"{name}: the stream ends before its end marker")
    return unpacked


_PRELUDE = 12  # two lengths and their checksum
_LEAST = 16  # a frame without headers and payload
_STRING = 7  # the type of headers with text
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes in bytes of header values by type; values of types 6 and 7 begin with their length."""
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}\s*)+")


def frames_in_text(text: str) -> tuple[Json, ...] | None:
    """Returns the events of a stream given as hex or base64 lines; None for other text."""
    if text.startswith("0000") and _HEX.fullmatch(text):
        return frame_events(bytes.fromhex(text))
    if not text.startswith("AAA"):
        return None
    try:
        return frame_events(
            b"".join(base64.b64decode(line, validate=True) for line in text.split())
        )
    except (binascii.Error, ValueError):
        return None


def frame_events(data: bytes) -> tuple[Json, ...] | None:
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


_BASE64_STARTS = ("H4sI", "eyJ", "W3si")
"""How gzip and JSON begin in Base64; no JSON text and no stream begins so."""
_CODINGS = frozenset({"gzip", "deflate", "br", "zstd"})
_LINE_END = re.compile(r"\r\n|\n|\r")  # str.splitlines would also cut at U+2028 inside JSON strings
_FIELD = re.compile(r"(?:\A|[\r\n])(?:data|event|id|retry)?:")
_TEXT_KEYS = ("string", "text", "base64_string")
_WRAPPER_KEYS = frozenset(
    {"encoding", "mimeType", "size", "compression", "params", "comment", "_isBinary"}
)
_HEX_BYTES = re.compile(r"(?:[0-9a-fA-F]{2})+")


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
        if (frames := frame_events(logged)) is not None:
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
    if all(map(_HEX_BYTES.fullmatch, pieces)):
        return bytes.fromhex("".join(pieces))
    try:
        data = b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    except (binascii.Error, ValueError):
        return None
    return None if frames_in_text("\n".join(pieces)) is not None else data


def _packed_text(text: str, encoding: str) -> bytes | None:
    """Returns the bytes that a text contains one for one, in hex or Base64; None for clear text."""
    if text.startswith(_GZIP_MAGIC.decode("latin-1")):
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:  # bytes were replaced: nothing can restore them
            return None
    is_packed = text.startswith(_GZIP_MAGIC.hex()) or encoding in _CODINGS
    if is_packed and _HEX_BYTES.fullmatch(text):
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
    if (frames := frames_in_text(body)) is not None:
        return Body(events=frames)
    if is_stream(body):
        return Body(events=stream_events(body))
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


def stream_events(text: str) -> tuple[Json, ...]:
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
