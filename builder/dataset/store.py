"""Reads single rows of a dataset by number, using the byte offset of every sixteenth row.

An address consists of a file and a row in that file, so a row is found without reading other files.
Converting the address to a row number in the whole dataset requires the row counts of the preceding
files. They are counted in meta/, a tenth of the size, if there is one.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from builder.conversation import Json
from builder.credentials import reason
from builder.dataset.files import DataFile
from builder.dataset.rows import DatasetRow, is_parquet, plain_row, reader_of, unindexed_rows
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem, UsageError
from builder.readers.toolkit.narrow import as_dicts, as_str
from builder.sources.source import Source
from builder.sources.stream import GZIP_MAGIC, STREAM_ERRORS, ZSTD_MAGIC

STEP = 16
"""The offset of every STEP-th row is recorded."""
_MAX_ROW = 64 << 20
"""Bytes of the longest line that is shown; a longer one becomes a `Problem`."""
_PIECE = 1 << 20
_SHOWN = 4_000
"""Bytes shown of a row that is not JSON."""

_Line = tuple[int, bytes]


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

    def reach(self, row: int) -> bool:
        """Indexes the file up to the row, or to its end; returns whether the row exists."""
        with self._lock:
            if row >= self.count and not self.whole:
                self._grow(row)
            return row < self.count

    def _grow(self, row: int) -> None:
        with self.path.open("rb") as stream:
            stream.seek(self._at)
            while self.count <= row:
                begin, is_blank, ended, size = self._at, True, False, 0
                while not ended and (piece := stream.readline(_PIECE)):
                    ended = piece.endswith(b"\n")
                    is_blank = is_blank and not piece.strip()
                    size += len(piece)
                self._at += size
                self._number += 1
                if not is_blank:
                    if self.count % STEP == 0:
                        self._offsets.append(begin)
                        self._numbers.append(self._number)
                    self.count += 1
                if not ended:
                    self.whole = True
                    return

    def lines(self, row: int) -> Iterator[_Line]:
        """Yields (number from 1, line) from a known row on; lines are cut at _MAX_ROW + 1 bytes."""
        with self._lock:
            step = min(row // STEP, len(self._offsets) - 1)
            if step < 0:
                return
            offset, number = self._offsets[step], self._numbers[step]
        with self.path.open("rb") as stream:
            stream.seek(offset)
            skip = row - step * STEP
            while line := stream.readline(_MAX_ROW + 1):
                ended = line.endswith(b"\n")
                while not ended and (piece := stream.readline(_PIECE)):
                    ended = piece.endswith(b"\n")
                if line.strip():
                    if not skip:
                        yield number, line
                    skip = max(skip - 1, 0)
                number += 1

    def row_of_line(self, number: int) -> int | None:
        """Returns the row of a line number, counted from 1; None if it is blank or too large."""
        self.reach(number)
        with self._lock:
            step = bisect_right(self._numbers, number) - 1
        if step < 0:
            return None
        for row, (line, _) in enumerate(self.lines(step * STEP), start=step * STEP):
            if line >= number:
                return row if line == number else None
        return None


class ParquetIndex:
    """The rows of a Parquet file, by number from 0; the footer has their count."""

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
        self.count: int = sum(sizes)
        self._group: tuple[int, Any] = (-1, None)

    def reach(self, row: int) -> bool:
        """Returns whether the row exists."""
        return row < self.count

    def values(self, row: int) -> Iterator[tuple[int, Json]]:
        """Yields (row number from 1, decoded row), beginning with `row`, which counts from 0."""
        for at in range(row, self.count):
            group = bisect_right(self._starts, at) - 1
            with self._lock:
                if self._group[0] != group:
                    self._group = (group, self._file.read_row_group(group))
                table = self._group[1]
            yield at + 1, plain_row(table.slice(at - self._starts[group], 1).to_pylist()[0])

    def row_of_line(self, number: int) -> int | None:
        """Returns the row with a number that counts from 1, or None."""
        return number - 1 if 0 < number <= self.count else None


@dataclass(frozen=True, slots=True)
class Address:
    """The location of a row: the number of its file and of its row in that file, both from 0."""

    file: int
    row: int

    @classmethod
    def read(cls, written: str) -> Address | None:
        """Parses `FILE.ROW`; returns None for any other text."""
        file, _, row = written.partition(".")
        if any(not part.isascii() or not part.isdigit() or len(part) > 15 for part in (file, row)):
            return None
        return cls(int(file), int(row))

    def __str__(self) -> str:
        return f"{self.file}.{self.row}"


class _DatasetFile:
    """A file of rows with its meta/, opened on first use.

    `reader` converts the rows of another format; None if none is needed.
    """

    def __init__(self, file: DataFile, scratch: Path) -> None:
        """Recognises the form of the rows. Raises the UsageErrors of `dataset_rows`."""
        self.file = file
        try:
            self.reader = reader_of(file) if file.foreign else None
        except OSError as error:
            raise self._unreadable(error) from None
        self._scratch = scratch
        self._opening = threading.Lock()
        self._opened: LineIndex | ParquetIndex | None = None
        self._are_lines = True

    @property
    def data(self) -> LineIndex | ParquetIndex:
        """Returns the index of the rows.

        Decompresses a compressed file into the scratch folder, and writes the rows of a JSON
        document or an Arrow file there as lines. Raises UsageError if the file cannot be read.
        """
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    @cached_property
    def meta(self) -> LineIndex | None:
        """Returns the index of the file in meta/, if there is one."""
        return LineIndex(self.file.meta) if self.file.meta is not None else None

    def meta_lines(self, row: int) -> Iterator[bytes]:
        """Yields the lines of meta/ from a row on."""
        if self.meta is not None and self.meta.reach(row):
            yield from (line for _, line in self.meta.lines(row))

    @property
    def counted(self) -> LineIndex | ParquetIndex:
        """Returns the cheapest index that has the number of rows."""
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
        with self._scratch_file() as plain:
            # The readable part of a corrupt file is shown.
            with contextlib.suppress(*STREAM_ERRORS), source.open() as packed:
                shutil.copyfileobj(packed, plain)
            return LineIndex(Path(plain.name))

    def _written_lines(self, values: Iterable[Json]) -> Path:
        try:
            with self._scratch_file() as lines:
                for value in values:
                    lines.write(dumps(value).encode("utf-8", "surrogatepass") + b"\n")
                return Path(lines.name)
        except OSError as error:
            raise self._unreadable(error) from None

    def _scratch_file(self) -> IO[bytes]:
        return NamedTemporaryFile(dir=self._scratch, delete=False)

    def _unreadable(self, error: OSError) -> UsageError:
        return UsageError(f"dataset {self.file.name!r}: cannot be read: {reason(error)}")

    def rows(self, row: int) -> Iterator[DatasetRow]:
        """Yields the rows with their meta/, beginning with an existing one."""
        file, index = self.file, self.data
        metas = self.meta_lines(row)
        unread = DatasetRow(file.split, file.name, 0, foreign=file.foreign, reader=self.reader)
        if isinstance(index, ParquetIndex):
            for number, value in index.values(row):
                yield replace(unread, number=number, stored=value, meta_line=next(metas, None))
            return
        for number, line in index.lines(row):
            read = replace(unread, number=number, meta_line=next(metas, None))
            if len(line) > _MAX_ROW:
                fault = Problem("too_large", f"line {number}", f"more than {_MAX_ROW} bytes")
                yield replace(read, line=line[:_SHOWN], fault=fault)
            elif self._are_lines:
                yield replace(read, line=line.removesuffix(b"\n"))
            else:
                yield replace(read, stored=decoded(line))


class Rows:
    """All rows of a dataset, by address."""

    def __init__(self, files: Sequence[DataFile], scratch: Path) -> None:
        """Recognises every file. Raises UsageError for a log, and for rows of an unknown form."""
        self.files = [_DatasetFile(file, scratch) for file in files]

    def locate(self, number: int) -> Address | None:
        """Returns the address of the row with this number in the dataset, or None."""
        for at, opened in enumerate(self.files):
            if opened.counted.reach(number):
                return Address(at, number)
            number -= opened.counted.count
        return None

    def number(self, address: Address) -> int | None:
        """Returns the number of a row in the dataset; None if earlier files are not yet counted."""
        before = self.files[: address.file]
        if not all(opened.counted.whole for opened in before):
            return None
        return sum(opened.counted.count for opened in before) + address.row

    def rows(self, address: Address) -> Iterator[DatasetRow]:
        """Yields the rows of one file with their meta/ from an address on, if it exists."""
        if address.file < len(self.files) and self.files[address.file].data.reach(address.row):
            yield from self.files[address.file].rows(address.row)


def as_stored(row: DatasetRow) -> Json:
    """Returns the value of a row; if it cannot be decoded, the beginning of its text."""
    if isinstance(row.decoded, Problem):
        return (row.line or b"")[:_SHOWN].decode("utf-8", "replace")
    return row.value


def content(row: DatasetRow) -> Json:
    """Returns the converted row; if no conversion was needed, the row as stored."""
    return row.converted or as_stored(row)


def messages(value: Json) -> list[dict[str, Json]]:
    """Returns the messages of a stored row, with {} for one that is not an object."""
    return as_dicts(value, "messages")


def characters(row: DatasetRow) -> int:
    """Returns the number of characters in the messages of a row."""
    return sum(len(as_str(message.get("content"))) for message in messages(content(row)))


def decoded(line: bytes) -> Json:
    """Returns the value of a line; if it is not JSON, the beginning of its text."""
    if len(line) > _MAX_ROW:
        return f"a line of more than {_MAX_ROW} bytes"
    try:
        return loads(line)
    except JsonFault:
        return line[:_SHOWN].decode("utf-8", "replace")
