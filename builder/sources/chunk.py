"""Pieces of a large file: which of it a source reads, and what the whole was when it was cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file as it was when it was cut; `modified` is in ns."""

    bytes: int
    sha256: str
    modified: int


@dataclass(frozen=True, slots=True)
class LineChunk:
    """A piece of a JSONL file: whole lines, bytes [start, end), the first of them line `first`."""

    start: int
    end: int
    first: int
    whole: WholeFile

    @property
    def bytes(self) -> int:
        """How much of the file it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class ItemChunk:
    """A piece of any other file: items [start, end), counted from 0.

    An item is what can be read apart: a row group of a Parquet file, a record batch of an Arrow
    file, or what the format's reader says (`item_sizes` in `builder.readers`). Of a table `first`
    is the number of the first row, from 1. `bytes` is about how much of the file it is.
    """

    start: int
    end: int
    first: int
    bytes: int
    whole: WholeFile


Chunk = LineChunk | ItemChunk
