"""Decompresses streams, recognised by their first bytes, and describes faults while reading."""

from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from builder.conversation import Json
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


# -- describes chunks of a large file --------------------------------------------------------------


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


# -- finds the records of a JSON document that is one object with a list of them inside ------------

_MAX_DEPTH = 2
_SPEAKER = frozenset({"role", "from", "sender", "author", "speaker"})
"""Keys of a message: a list of messages is one conversation, not one record for each of them."""
_ROWS_OF_HUB = frozenset({"row", "row_idx"})
"""Keys of a row in an answer of the Hub's dataset viewer (`/rows`, `/first-rows`)."""


@dataclass(frozen=True, slots=True)
class WrappedRecords:
    """The records of a document.

    where    their places, to be formatted with the position, such as "data.items[{}]"
    beside   what else the document contains
    """

    where: str
    records: list[Json]
    beside: dict[str, Json]


def wrapped_records(document: object) -> WrappedRecords | None:
    """Returns the records of an object in which one list alone consists of objects; else None.

    Of several lists of objects, it is the only one whose objects contain messages.
    """
    if not isinstance(document, dict):
        return None
    is_hub = isinstance(document.get("features"), list) and isinstance(document.get("rows"), list)
    body = {key: item for key, item in document.items() if not (is_hub and key == "features")}
    found = list(_lists(body, 1, ()))
    if len(found) > 1:
        found = [(path, items) for path, items in found if any(map(_holds_messages, items))]
    if len(found) != 1:
        return None
    ((path, items),) = found
    if any(not _SPEAKER.isdisjoint(item) for item in items):
        return None
    where = ".".join(path) + "[{}]"
    return WrappedRecords(where, [_row(item) for item in items], _without(body, path))


def _holds_messages(item: dict[str, Json]) -> bool:
    """Returns whether an object has a list of messages, which may be wrapped once more each."""
    return any(
        isinstance(one, dict)
        and any(
            not _SPEAKER.isdisjoint(message)
            for message in (one, *one.values())
            if isinstance(message, dict)
        )
        for value in item.values()
        if isinstance(value, list)
        for one in value
    )


def _lists(
    value: dict[str, Json], depth: int, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[dict[str, Json]]]]:
    """Yields (path of keys, list) of each list of objects in an object."""
    for key, item in value.items():
        path = (*above, key)
        if isinstance(item, list):
            objects = [one for one in item if isinstance(one, dict)]
            if objects and len(objects) == len(item):
                yield path, objects
        elif isinstance(item, dict) and depth < _MAX_DEPTH:
            yield from _lists(item, depth + 1, path)


def _without(value: dict[str, Json], path: tuple[str, ...]) -> dict[str, Json]:
    """Returns the object without what is at the path."""
    first, *rest = path
    inner = value[first]
    kept = {key: item for key, item in value.items() if key != first}
    return kept | {first: _without(inner, tuple(rest))} if isinstance(inner, dict) else kept


def cut_row(where: str, item: Json) -> Problem | None:
    """Returns the problem of a row of which the Hub's viewer shows only a part; None of others."""
    cut = item.get("truncated_cells") if isinstance(item, dict) else None
    if not cut or not isinstance(cut, list) or not _is_row_of_hub(item):
        return None
    names = ", ".join(str(name)[:40] for name in cut[:5])
    return Problem("truncated", where, f"the viewer cut {names}")


def _is_row_of_hub(item: Json) -> bool:
    return isinstance(item, dict) and item.keys() >= _ROWS_OF_HUB


def _row(item: dict[str, Json]) -> Json:
    return item["row"] if _is_row_of_hub(item) and cut_row("", item) is None else item
