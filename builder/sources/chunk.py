"""Describes chunks of a large file: what to read, and the state of the file when it was cut."""

from __future__ import annotations

from dataclasses import dataclass


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
