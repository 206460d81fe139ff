"""Reads rows of a dataset by number without reading it whole, using sampled byte offsets.

A row is addressed by its file and its row in that file, so any file can be opened at once. Only its
number in the whole dataset needs the row counts of the files before it. They are taken from meta/,
a tenth of the size, if there is one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from builder.conversation import Json
from builder.credentials import reason
from builder.dataset.files import DataFile
from builder.dataset.rows import DatasetRow, is_parquet, plain_row, reader_of, unindexed_rows
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem, UsageError
from builder.report.conversions import Conversions
from builder.report.facts import as_object
from builder.sources.source import Source
from builder.sources.stream import GZIP_MAGIC, STREAM_ERRORS, ZSTD_MAGIC

STEP = 16
"""Interval of the rows whose offset is recorded."""
MAX_ROW = 64 << 20
"""Bytes; a longer line is named instead of shown."""
_PIECE = 1 << 20
_SHOWN = 4_000
"""Bytes that are shown of a row that is not JSON."""

Line = tuple[int, bytes]


class LineIndex:
    """The non-blank lines of an uncompressed file, by number from 0."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.whole = False
        self._offsets = array("Q")
        self._numbers = array("Q")
        self._at = 0
        self._number = 0
        self._lock = threading.Lock()

    def reach(self, row: int, budget: int) -> bool:
        """Reads on until the row or `budget` bytes are reached; returns whether it is known."""
        with self._lock:
            if row >= self.count and not self.whole:
                self._grow(row, budget)
            return row < self.count

    def _grow(self, row: int, budget: int) -> None:
        with self.path.open("rb") as stream:
            stream.seek(self._at)
            while budget > 0 and self.count <= row:
                begin, is_blank, ended, size = self._at, True, False, 0
                while not ended and (piece := stream.readline(_PIECE)):
                    ended = piece.endswith(b"\n")
                    is_blank = is_blank and not piece.strip()
                    size += len(piece)
                self._at += size
                budget -= size
                self._number += 1
                if not is_blank:
                    if self.count % STEP == 0:
                        self._offsets.append(begin)
                        self._numbers.append(self._number)
                    self.count += 1
                if not ended:
                    self.whole = True
                    return

    def lines(self, row: int) -> Iterator[Line]:
        """Yields (number from 1, line) from a known row on; a line is cut at MAX_ROW bytes."""
        with self._lock:
            step = min(row // STEP, len(self._offsets) - 1)
            if step < 0:
                return
            offset, number = self._offsets[step], self._numbers[step]
        with self.path.open("rb") as stream:
            stream.seek(offset)
            skip = row - step * STEP
            while line := stream.readline(MAX_ROW + 1):
                ended = line.endswith(b"\n")
                while not ended and (piece := stream.readline(_PIECE)):
                    ended = piece.endswith(b"\n")
                if line.strip():
                    if not skip:
                        yield number, line
                    skip = max(skip - 1, 0)
                number += 1

    def row_of_line(self, number: int, budget: int) -> int | None:
        """Returns the row at a line, counted from 1; None if it is blank or beyond `budget`."""
        self.reach(number, budget)
        with self._lock:
            step = bisect_right(self._numbers, number) - 1
        if step < 0:
            return None
        for row, (found, _) in enumerate(self.lines(step * STEP), start=step * STEP):
            if found >= number:
                return row if found == number else None
        return None


class ParquetIndex:
    """The rows of a Parquet file, by number from 0; their count is known at once."""

    whole = True

    def __init__(self, path: Path) -> None:
        import pyarrow  # noqa: PLC0415 - only for such files
        import pyarrow.parquet  # noqa: PLC0415 - as above

        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except (OSError, pyarrow.ArrowException) as error:
            raise UsageError(f"{path.name}: no readable Parquet: {error}"[:300]) from None
        self._lock = threading.Lock()
        groups = self._file.metadata
        sizes = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
        self._starts = [sum(sizes[:at]) for at in range(len(sizes))]
        self.count = sum(sizes)
        self._group: tuple[int, Any] = (-1, None)

    def reach(self, row: int, budget: int) -> bool:
        """Returns whether there is such a row."""
        del budget
        return row < int(self.count)

    def values(self, row: int) -> Iterator[tuple[int, Json]]:
        """Yields (number from 1, decoded row) from a row on."""
        for at in range(row, self.count):
            group = bisect_right(self._starts, at) - 1
            with self._lock:
                if self._group[0] != group:
                    self._group = (group, self._file.read_row_group(group))
                table = self._group[1]
            yield at + 1, plain_row(table.slice(at - self._starts[group], 1).to_pylist()[0])

    def row_of_line(self, number: int, budget: int) -> int | None:
        """Returns the row with that number, counted from 1."""
        del budget
        return number - 1 if 0 < number <= self.count else None


@dataclass(frozen=True, slots=True)
class Address:
    """The location of a row: the number of its file, and its row in it, both from 0."""

    file: int
    row: int

    @classmethod
    def read(cls, written: str) -> Address | None:
        """Returns the row named by `FILE.ROW`; None if that is not such an address."""
        file, _, row = written.partition(".")
        if any(not part.isascii() or not part.isdigit() or len(part) > 15 for part in (file, row)):
            return None
        return cls(int(file), int(row))

    def __str__(self) -> str:
        return f"{self.file}.{self.row}"


class Opened:
    """A file of rows with its meta/, opened on first use.

    file       the file; `reader` is the one that converts its rows, if they need one
    converted  those of its rows that were converted; the index adds them
    """

    def __init__(self, file: DataFile, scratch: Path) -> None:
        """Recognises the form of the rows. Raises UsageError as `dataset_rows` does."""
        self.file = file
        try:
            self.reader = reader_of(file) if file.foreign else None
        except OSError as error:
            fault = f"dataset {file.name!r}: cannot be read: {reason(error)}"
            raise UsageError(fault) from None
        self._scratch = scratch
        self._opening = threading.Lock()
        self._opened: LineIndex | ParquetIndex | None = None
        self._are_lines = True
        descriptor, name = tempfile.mkstemp(dir=scratch)
        os.close(descriptor)
        self.converted = Conversions(Path(name))

    @property
    def data(self) -> LineIndex | ParquetIndex:
        """Returns the index of its rows.

        A compressed file is unpacked into the scratch folder, and the rows of a JSON document or an
        Arrow file are written there as lines. Raises UsageError if the file cannot be read.
        """
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    @cached_property
    def meta(self) -> LineIndex | None:
        """Returns the index of its lines of meta/."""
        return LineIndex(self.file.meta) if self.file.meta is not None else None

    def meta_lines(self, row: int, budget: int) -> Iterator[bytes]:
        """Yields its lines of meta/ from a row on, if that is within the budget."""
        if self.meta is not None and self.meta.reach(row, budget):
            yield from (line for _, line in self.meta.lines(row))

    @property
    def counted(self) -> LineIndex | ParquetIndex:
        """Returns the smaller file that has the same number of rows."""
        return self.meta or self.data

    def _open(self) -> LineIndex | ParquetIndex:
        source = Source(self.file.name, self.file.path)
        if is_parquet(source):
            return ParquetIndex(self.file.path)
        values = unindexed_rows(self.file)
        if values is not None:
            self._are_lines = False
            return LineIndex(self._written_lines(values))
        with self.file.path.open("rb") as stream:
            magic = stream.read(4)
        if not magic.startswith(GZIP_MAGIC) and magic != ZSTD_MAGIC:
            return LineIndex(self.file.path)
        descriptor, name = tempfile.mkstemp(dir=self._scratch)
        try:
            with source.open() as packed, open(descriptor, "wb") as plain:  # noqa: PTH123 - a number
                shutil.copyfileobj(packed, plain)
        except STREAM_ERRORS:
            pass  # the readable part of a corrupt file is shown
        return LineIndex(Path(name))

    def _written_lines(self, values: Iterable[Json]) -> Path:
        descriptor, name = tempfile.mkstemp(dir=self._scratch)
        try:
            with open(descriptor, "wb") as lines:  # noqa: PTH123 - a number
                for value in values:
                    lines.write(dumps(value).encode("utf-8", "surrogatepass") + b"\n")
        except OSError as error:
            fault = f"dataset {self.file.name!r}: cannot be read: {reason(error)}"
            raise UsageError(fault) from None
        return Path(name)

    def rows(self, row: int, budget: int) -> Iterator[DatasetRow]:
        """Yields its rows with their meta/ from an existing one on."""
        file, index = self.file, self.data
        metas = self.meta_lines(row, budget)
        unread = DatasetRow(file.split, file.name, 0, foreign=file.foreign, reader=self.reader)
        if isinstance(index, ParquetIndex):
            for number, value in index.values(row):
                yield replace(unread, number=number, stored=value, meta_line=next(metas, None))
            return
        for number, line in index.lines(row):
            read = replace(unread, number=number, meta_line=next(metas, None))
            if len(line) > MAX_ROW:
                fault = Problem("too_large", f"line {number}", f"more than {MAX_ROW} bytes")
                yield replace(read, line=line[:_SHOWN], fault=fault)
            elif self._are_lines:
                yield replace(read, line=line.removesuffix(b"\n"))
            else:
                yield replace(read, stored=decoded(line))


class Rows:
    """All rows of a dataset, by address."""

    def __init__(self, files: Sequence[DataFile], scratch: Path) -> None:
        """Raises UsageError if a file is a log, or its rows have no known form."""
        self.files = [Opened(file, scratch) for file in files]

    def locate(self, number: int, budget: int) -> Address | None:
        """Returns the address of a row by its number; None: no such row, or not reached."""
        for at, opened in enumerate(self.files):
            index = opened.counted
            if index.reach(number, budget):
                return Address(at, number)
            if not index.whole:
                return None
            number -= index.count
        return None

    def number(self, address: Address) -> int | None:
        """Returns the number of a row, as far as the rows of the files before it are counted."""
        before = self.files[: address.file]
        if not all(opened.counted.whole for opened in before):
            return None
        return sum(opened.counted.count for opened in before) + address.row

    def exists(self, address: Address, budget: int) -> bool:
        """Returns whether there is such a row within the budget."""
        return (
            0 <= address.file < len(self.files)
            and address.row >= 0
            and self.files[address.file].data.reach(address.row, budget)
        )

    def rows(self, address: Address, budget: int) -> Iterator[DatasetRow]:
        """Yields the rows with their meta/ of one file from an address on.

        At most `budget` bytes are read to reach the first.
        """
        if self.exists(address, budget):
            yield from self.files[address.file].rows(address.row, budget)

    def metas(
        self, address: Address, budget: int, holds: bytes = b""
    ) -> Iterator[tuple[Address, dict[str, Json]]]:
        """Yields the lines of meta/ of one file from an address on; {} for those without `holds`.

        Those are not decoded, so millions of them can be skipped in a second.
        """
        lines = self.files[address.file].meta_lines(address.row, budget)
        for at, line in enumerate(lines):
            meta = as_object(decoded(line)) if holds in line else {}
            yield Address(address.file, address.row + at), meta


def as_stored(row: DatasetRow) -> Json:
    """Returns the value of a row; if it cannot be decoded, its beginning as text."""
    if isinstance(row.decoded, Problem):
        return (row.line or b"")[:_SHOWN].decode("utf-8", "replace")
    return row.value


def content(row: DatasetRow) -> Json:
    """Returns a row in the form of `build`; one that was not converted as it is stored."""
    return row.converted or as_stored(row)


def decoded(line: bytes) -> Json:
    """Returns the value of a line; if it is not JSON, its beginning as text."""
    if len(line) > MAX_ROW:
        return f"a line of more than {MAX_ROW} bytes"
    try:
        return loads(line)
    except JsonFault:
        return line[:_SHOWN].decode("utf-8", "replace")
