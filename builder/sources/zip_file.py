"""Reads members of a zip archive, including zstd, one at a time and with limits.

`zipfile` reads only the directory: its zstd takes one frame of a member and trusts its stated size.
"""

from __future__ import annotations

import io
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from builder.problem import Problem
from builder.sources.source import Source
from builder.sources.stream import STREAM_ERRORS, stream_problem

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_MEMBERS = 200_000
MAX_DIRECTORY_BYTES = 32 << 20
"""An archive with a longer directory is not cut into chunks."""
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_ENCRYPTED = 0x1
_LOCAL_HEADER = 30
"""Bytes of a member's local header before its name (APPNOTE 4.3.7)."""
_LOCATOR, _END = 20, 22
"""Bytes of zip64's locator (APPNOTE 4.3.15) and of an end record without a comment (4.3.16)."""

_ARCHIVE_ERRORS: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, struct.error, ValueError, OverflowError),
    NotImplementedError,  # from zipfile: a member needs a later version of the format
    *STREAM_ERRORS,
)
_UNPACK_ERRORS: tuple[type[Exception], ...] = (*STREAM_ERRORS, ValueError)


def first_name(source: Source) -> str:
    """Returns the name of the first member of an archive, if its first bytes contain it."""
    head = source.head
    length = int.from_bytes(head[26:28], "little")
    return head[_LOCAL_HEADER : _LOCAL_HEADER + length].decode("utf-8", "replace")


def sizes(source: Source) -> Sequence[int]:
    """Returns the bytes of each member as stated in the directory, for a reader's `item_sizes`.

    () if there are too many members, the directory is too long, or the archive cannot be read.
    """
    try:
        with source.open() as stream:
            if _directory_bytes(stream) > MAX_DIRECTORY_BYTES:
                return ()
            with zipfile.ZipFile(stream) as archive:
                infos = archive.infolist()
    except _ARCHIVE_ERRORS:
        return ()
    return [info.file_size for info in _files(infos)] if len(infos) <= MAX_MEMBERS else ()


def member(source: Source, name: str) -> bytes | Problem | None:
    """Returns the first member of this name; None if there is none, or no readable directory."""
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            member = next((info for info in archive.infolist() if info.filename == name), None)
            return _unpack(stream, member, source.max_record_bytes) if member is not None else None
    except _ARCHIVE_ERRORS:
        return None


def first_fault(source: Source) -> str:
    """Describes the first part of an archive (directory or member) that cannot be read, or ""."""
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            for info in _files(archive.infolist()):
                data = _unpack(stream, info, source.max_record_bytes)
                if isinstance(data, Problem):
                    return f"its member {info.filename!r} cannot be read: {data.detail}"
    except _ARCHIVE_ERRORS as error:
        return f"its directory cannot be read: {str(error) or type(error).__name__}"
    return ""


def members(source: Source) -> Iterator[tuple[str, bytes | Problem]]:
    """Yields (name, bytes) of each member in the order of the archive; counts each as a record.

    For a member that cannot be read, yields a Problem instead of the bytes: `too_large` (beyond the
    source's limit), `truncated` or `unreadable`. If the directory cannot be read, yields one
    Problem, with the name "".
    """
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()
            for info in source.items_of_chunk(_files(infos)):
                source.count_records()
                yield info.filename, _unpack(stream, info, source.max_record_bytes)
            if len(infos) > MAX_MEMBERS:
                source.count_records()
                detail = f"{len(infos)} members, {MAX_MEMBERS} are read"
                yield "", Problem("too_large", "archive", detail)
    except _ARCHIVE_ERRORS as error:
        source.count_records()
        yield "", stream_problem(error, "archive")


def _directory_bytes(stream: BinaryIO) -> int:
    """Returns the stated size of the directory of an archive without a comment.

    Raises BadZipFile if there is a comment, OSError.
    """
    stream.seek(-(_LOCATOR + _END), io.SEEK_END)
    end = stream.read(_LOCATOR + _END)
    if end[_LOCATOR : _LOCATOR + 4] != b"PK\x05\x06":
        raise zipfile.BadZipFile("a comment at its end, or none")
    (size,) = struct.unpack_from("<I", end, _LOCATOR + 12)
    if not end.startswith(b"PK\x06\x07"):
        return int(size)
    (offset,) = struct.unpack_from("<Q", end, 8)
    stream.seek(offset + 40)
    (size,) = struct.unpack("<Q", stream.read(8))
    return int(size)


def _files(infos: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    return [info for info in infos[:MAX_MEMBERS] if not info.is_dir()]


def _unpack(stream: BinaryIO, info: zipfile.ZipInfo, limit: int) -> bytes | Problem:
    """Returns the unpacked bytes of a member; does not trust the size in the directory."""
    name = info.filename
    if info.flag_bits & _ENCRYPTED:
        return Problem("unreadable", name, "encrypted")
    if info.compress_size > limit:
        return Problem("too_large", name, f"{info.compress_size} bytes, the limit is {limit}")
    try:
        stream.seek(info.header_offset)
        header = stream.read(_LOCAL_HEADER)
        skip = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        stream.seek(skip, 1)
        packed = stream.read(info.compress_size)
        if len(packed) < info.compress_size:
            return Problem("truncated", name, "the archive ends inside it")
        data = _decompress(packed, info.compress_type, limit)
    except _UNPACK_ERRORS as error:
        return stream_problem(error, name)
    if data is None:
        return Problem("unreadable", name, f"compression method {info.compress_type}")
    if len(data) > limit:
        return Problem("too_large", name, f"more than {limit} bytes")
    if zlib.crc32(data) != info.CRC:
        return Problem("unreadable", name, "its checksum is wrong")
    return data


def _decompress(packed: bytes, method: int, limit: int) -> bytes | None:
    """Returns at most `limit` + 1 bytes; None for an unknown method. Raises STREAM_ERRORS."""
    if method == _STORED:
        return packed
    if method == _DEFLATED:
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        data = inflate.decompress(packed, limit + 1)
        if not inflate.eof and len(data) <= limit:
            raise EOFError
        return data
    if method != _ZSTD:
        return None
    pieces: list[bytes] = []
    size = 0
    while packed and size <= limit:  # a member may have several frames
        frame = zstd.ZstdDecompressor()
        pieces.append(frame.decompress(packed, limit + 1 - size))
        size += len(pieces[-1])
        if not frame.eof and size <= limit:
            raise EOFError
        packed = frame.unused_data if frame.eof else b""
    return b"".join(pieces)
