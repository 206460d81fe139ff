"""Decompresses the bodies of HTTP messages: gzip, zlib, zstd, Brotli.

gzip and zstd are recognised by their first bytes, since recorders keep or drop the header
`content-encoding` independently of what they do to the body. The others need the header.
"""

from __future__ import annotations

import sys
import zlib

from builder.conversation import Json
from builder.distribution import install_line
from builder.jsonio import JsonFault
from builder.readers.toolkit.narrow import as_dict, as_list

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_UNPACKED = 64 << 20
"""Maximum size in bytes of one decompressed body."""

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


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
    if data.startswith(GZIP_MAGIC):
        return _with_zlib(data, zlib.MAX_WBITS | 16, "gzip")
    if data.startswith(ZSTD_MAGIC):
        return _with_zstd(data)
    if encoding in ("deflate", "br") and not _is_text(data):
        return _with_zlib(data, *_deflate(data)) if encoding == "deflate" else _with_brotli(data)
    return data


def _is_text(data: bytes) -> bool:
    """Returns whether a recorder has decompressed the data already."""
    return data.lstrip()[:1] in (b"{", b"[") or data.startswith((b"data:", b"event:"))


def _deflate(data: bytes) -> tuple[int, str]:
    """Returns how to inflate: servers send zlib's format or, against the standard, raw data."""
    has_header = len(data) > 1 and data[0] & 15 == 8 and (data[0] << 8 | data[1]) % 31 == 0
    return (zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS), "deflate"


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
