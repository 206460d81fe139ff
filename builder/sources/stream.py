"""Decompresses streams, recognised by their first bytes, and describes faults while reading."""

from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from builder.problem import Problem

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZIP_MAGIC = b"PK\x03\x04"

STREAM_ERRORS: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, zstd.ZstdError)
"""Exceptions from opening or reading a source; gzip.BadGzipFile is an OSError."""


@contextlib.contextmanager
def decompressed(raw: BinaryIO) -> Iterator[BinaryIO]:
    """Yields the stream without its gzip or zstd compression. Raises one of STREAM_ERRORS."""
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(GZIP_MAGIC):
        with gzip.open(raw, "rb") as stream:
            yield cast("BinaryIO", stream)
    elif magic == ZSTD_MAGIC:
        with zstd.ZstdFile(raw, "rb") as stream:
            yield cast("BinaryIO", stream)
    else:
        yield raw


def stream_problem(error: Exception, where: str) -> Problem:
    """Returns the Problem for one of STREAM_ERRORS: `truncated` or `unreadable`."""
    if isinstance(error, EOFError):
        return Problem("truncated", where, "the compressed stream ends before its end marker")
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Problem("unreadable", where, text or type(error).__name__)


def pieces(stream: BinaryIO, size: int, piece_bytes: int) -> Iterator[bytes]:
    """Yields the next `size` bytes of a stream, or those up to its end, in pieces."""
    while size > 0 and (piece := stream.read(min(size, piece_bytes))):
        size -= len(piece)
        yield piece


def skip_line(stream: BinaryIO) -> int:
    """Reads to the end of the line; returns the number of bytes. Raises one of STREAM_ERRORS."""
    size = 0
    while line := stream.readline(1 << 20):
        size += len(line)
        if line.endswith(b"\n"):
            break
    return size


# Describes chunks of a large file: what to read, and the state of the file when it was cut.


@dataclass(frozen=True, slots=True)
class WholeFile:
    """The state of a file when it was cut; `modified` is its modification time in ns."""

    bytes: int
    sha256: str
    modified: int


@dataclass(frozen=True, slots=True)
class LineChunk:
    """A chunk of a JSONL file: whole lines, bytes [start, end), the first of them line `first`."""

    start: int
    end: int
    first: int
    whole: WholeFile

    @property
    def bytes(self) -> int:
        """The number of bytes of the file in this chunk."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class ItemChunk:
    """A chunk of any other file: items [start, end), counted from 0.

    An item is a part that can be read independently: a row group of a Parquet file, a record batch
    of an Arrow file, or what the format's reader defines (`item_sizes` in `builder.readers`).
    `first` is the number of the first row of a table, from 1; `bytes` is the approximate size of
    the chunk.
    """

    start: int
    end: int
    first: int
    bytes: int
    whole: WholeFile


Chunk = LineChunk | ItemChunk
