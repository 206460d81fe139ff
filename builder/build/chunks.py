"""Cuts large files into chunks of lines or items that are converted independently."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from pathlib import Path

from builder.build.task import Task, sole_reader
from builder.sources.source import Source
from builder.sources.sqlite_file import write_ahead_log
from builder.sources.stream import (
    GZIP_MAGIC,
    ZIP_MAGIC,
    ZSTD_MAGIC,
    Chunk,
    ItemChunk,
    LineChunk,
    WholeFile,
)
from builder.sources.table import ARROW_MAGIC, PARQUET_MAGIC, FileTable

CHUNK_BYTES = 64 << 20
"""Approximate size of a chunk; a file that would yield fewer than two is not cut."""
UNPACKED = 16
"""A table or an archive is assumed to expand to at most this multiple of its size on disk."""


def cut(task: Task) -> Iterator[Task]:
    """Yields the task itself, or a task per chunk of a large file whose format allows it."""
    source = task.source
    chunks = _chunks(task)
    if len(chunks) < 2:
        yield task
        return
    limit = source.max_record_bytes
    for chunk in chunks:
        part = Source(source.name, source.path, max_record_bytes=limit, chunk=chunk)
        yield replace(task, source=part)


def _chunks(task: Task) -> Sequence[Chunk]:
    """Returns the chunks of a task's source; fewer than two mean that it is not cut."""
    source, path = task.source, task.source.path
    if path is None or source.members:
        return ()
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
        status = path.stat()  # before the file is read, so that a change is noticed
        if magic.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
            return ()  # reading can only start at the beginning
        is_packed = magic in (PARQUET_MAGIC, ARROW_MAGIC[:4], ZIP_MAGIC)
        if status.st_size * (UNPACKED if is_packed else 1) < 2 * CHUNK_BYTES:
            return ()
        reader = sole_reader(task)
        if source.peek.kind != "jsonl":
            if reader is None or reader.item_sizes is None or write_ahead_log(source) is not None:
                return ()  # a write-ahead log may change while its database does not
            sizes = reader.item_sizes(source)
            return _runs(path, status, sizes, [0] * len(sizes))
        if reader is None or reader.splits is None or not reader.splits(source):
            return ()
        if isinstance(source.table, FileTable):
            groups = source.table.groups()
            return _runs(path, status, [item.bytes for item in groups], [i.rows for i in groups])
        return _lines(path, status)
    except OSError:
        return ()  # reading the whole file reports the error


def _lines(path: Path, status: os.stat_result) -> list[LineChunk]:
    """Returns chunks that end at the first line end after each CHUNK_BYTES.

    Raises OSError if the file cannot be read.
    """
    starts = [(0, 1)]
    offset, line = 0, 1
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
            while (due := starts[-1][0] + CHUNK_BYTES - offset) < len(piece):
                end = piece.find(b"\n", max(due, 0))
                if end < 0:
                    break
                starts.append((offset + end + 1, line + piece.count(b"\n", 0, end + 1)))
            line += piece.count(b"\n")
            offset += len(piece)
    if starts[-1][0] == offset:
        starts.pop()
    whole = WholeFile(offset, digest.hexdigest(), status.st_mtime_ns)
    ends = [start for start, _ in starts[1:]] + [offset]
    return [
        LineChunk(start, end, first, whole)
        for (start, first), end in zip(starts, ends, strict=True)
    ]


def _runs(
    path: Path, status: os.stat_result, sizes: Sequence[int], rows: Sequence[int]
) -> list[ItemChunk]:
    """Returns chunks of consecutive items, of about CHUNK_BYTES each. Raises OSError.

    `sizes` are the unpacked sizes of the items in bytes, `rows` their numbers of rows. Both come
    from the file and may be false, so its size on disk limits the number of chunks.
    """
    before = [0, *accumulate(max(item, 0) for item in sizes)]
    total = before[-1]
    number = min(total, UNPACKED * status.st_size) // CHUNK_BYTES
    if number < 2:
        return []

    def chunk_of(index: int) -> int:
        return min(before[index] * number // total, number - 1)  # the last item may be empty

    starts = [next(items) for _, items in groupby(range(len(sizes)), chunk_of)]
    if len(starts) < 2:
        return []
    firsts = list(accumulate(rows, initial=1))
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        whole = WholeFile(stream.tell(), digest.hexdigest(), status.st_mtime_ns)
    return [
        ItemChunk(
            start,
            end,
            firsts[start],
            whole.bytes * before[end] // total - whole.bytes * before[start] // total,
            whole,
        )
        for start, end in zip(starts, [*starts[1:], len(sizes)], strict=True)
    ]
