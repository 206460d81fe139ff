"""Represents a source: one log file as readers see it, decompressed, read-only and limited."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from builder.brief import brief
from builder.conversation import Json
from builder.jsonio import JsonFault, adjacent_objects, dumps, loads_leniently, loads_text
from builder.problem import Problem
from builder.sources.csv_file import first_rows, json_columns, read_rows
from builder.sources.sniff import BOM, Peek, peek_file, peek_rows, some_lines, without_padding
from builder.sources.store import StoredObject
from builder.sources.stream import (
    STREAM_ERRORS,
    Chunk,
    ItemChunk,
    LineChunk,
    WrappedRecords,
    cut_row,
    decompressed,
    pieces,
    skip_line,
    stream_problem,
    wrapped_records,
)
from builder.sources.table import MAGICS, FileTable, HubTable, Table

MAX_RECORD_BYTES = 256 << 20
"""A longer line or document is rejected (`too_large`)."""

# -- finds files that belong to a source but stand in other places ---------------------------------


def related_path(path: Path, pattern: str) -> Path | None:
    """Returns the file that `pattern` names, relative to the folder of `path`, if there is one.

    Of several matches it is the first by name. A name that cannot be one of a file matches nothing,
    nor does a folder that cannot be listed.
    """
    try:
        if "*" in pattern:
            return min(path.parent.glob(pattern), default=None)
        other = path.parent / pattern
        return other if other.exists() else None
    except (ValueError, OSError):  # a null character, too long a name, a folder that is gone
        return None


def file_version(path: Path | None) -> tuple[int, int] | None:
    """Returns (bytes, modification time in ns) of a file, which change with it; None without."""
    try:
        status = path.stat() if path is not None else None
    except OSError:
        return None
    return None if status is None else (status.st_size, status.st_mtime_ns)


# -- describes what may look at the records of a source while they are decoded ---------------------


class Watch(Protocol):
    """Looks at what a source decodes (`builder.readers.toolkit.unknown_keys`)."""

    def see(self, where: str, value: Json, /) -> None:
        """Looks at a decoded record."""

    def begin_item(self) -> None:
        """Begins an item of the file, whose events do not depend on the items before it."""


HEAD_BYTES = 1 << 16
"""Bytes that recognition examines first."""

_PIECE_BYTES = 1 << 16
"""Bytes read at a time: larger buffers need new pages of memory each time."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a source: its location ("line 12", "[3]") and its decoded value."""

    where: str
    value: Json


class Source:
    """One file, or a folder that is one store.

    `name` is its path relative to the input root, with `/`; it is displayed, never opened. A source
    with `data` and no `path` is in memory (standard input, tests). A store has `members`, the files
    below it, named relative to it and ordered by name; its `peek.kind` is "folder". A source with a
    `chunk` is a chunk of a file, to which `items_of_chunk`, `lines` and the methods built on it
    are limited. A table (Parquet, Arrow, a dataset on the Hub) is read as the JSONL of its rows. A
    `remote` source is an object in an object store: its beginning can be examined, but it must be
    copied to be read (`builder.sources.listing`).
    """

    def __init__(
        self,
        name: str,
        path: Path | None = None,
        *,
        data: bytes | None = None,
        members: Sequence[Source] = (),
        max_record_bytes: int = MAX_RECORD_BYTES,
        chunk: Chunk | None = None,
        table: Table | None = None,
        remote: StoredObject | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.max_record_bytes = max_record_bytes
        self.members = tuple(members)
        self.chunk = chunk
        self.remote = remote
        self.is_exact = True
        """Whether all numbers so far were valid JSON (`builder.jsonio.NotANumber`)."""
        self.siblings: dict[str, tuple[int, int] | None] = {}
        """The files that were asked for (`sibling`): (bytes, modification time in ns), or None."""
        self.watch: Watch | None = None
        self._is_seen = False
        self._records_read = 0
        self._data = data
        self._table = table
        self._decoded: list[tuple[bytes, Json]] = []  # the first lines, for recognition
        self.wrapped: WrappedRecords | None = None
        self.csv_names: tuple[str, ...] = ()
        self._separator = ","
        self._json_columns: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return brief(self, name=self.name, path=self.path and str(self.path))

    @property
    def records_read(self) -> int:
        """Returns the number of records yielded so far, including those of the members."""
        return self._records_read + sum(member.records_read for member in self.members)

    def count_records(self, records: int = 1) -> None:
        """Counts records that a reader obtains by other means (rows of a database)."""
        self._records_read += records

    def unread_copy(self) -> Source:
        """Returns the same source with empty caches and no records counted."""
        return Source(
            self.name,
            self.path,
            data=self._data,
            members=[member.unread_copy() for member in self.members],
            max_record_bytes=self.max_record_bytes,
            chunk=self.chunk,
            table=self._table,
            remote=self.remote,
        )

    def sibling(self, name: str) -> Source | None:
        """Returns another file of this file's folder; None if it does not exist.

        A source in memory or in a store has no siblings. `name` must be a bare file name. A result
        depends on the file, also on one that does not exist: it is noted in `siblings`.
        """
        return self.related(name) if Path(name).name == name else None

    def related(self, pattern: str) -> Source | None:
        """Returns the first file, by name, that matches a pattern relative to this file's folder.

        Like `sibling`, for programs that put related files into other folders ("../*/NAME"). What
        comes from a log may be part of `pattern` only if it is known to be a plain identifier.
        """
        if self.path is None or self.chunk is not None:
            return None
        path = related_path(self.path, pattern)
        if path == self.path:
            return None
        self.siblings[pattern] = file_version(path)
        if path is None or not path.is_file():
            return None
        return Source(path.name, path, max_record_bytes=self.max_record_bytes)

    # -- bytes -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Opens the decompressed bytes. Raises one of STREAM_ERRORS."""
        with self._open() as raw, decompressed(raw) as stream:
            yield stream

    def _open(self) -> contextlib.AbstractContextManager[BinaryIO]:
        if self.remote is not None:
            return self.remote.open()
        return io.BytesIO(self._data or b"") if self.path is None else self.path.open("rb")

    def raw(self) -> Iterator[bytes]:
        """Yields the bytes of the file as stored. Raises OSError.

        For a dataset on the Hub, yields the commit, which identifies its content.
        """
        if isinstance(self._table, HubTable):
            yield f"{self._table.repository}@{self._table.commit}".encode()
            return
        with self._open() as stream:
            if isinstance(self.chunk, LineChunk):
                stream.seek(self.chunk.start)
                yield from pieces(stream, self.chunk.bytes, _PIECE_BYTES)
                return
            while piece := stream.read(_PIECE_BYTES):
                yield piece

    @cached_property
    def head(self) -> bytes:
        """The first HEAD_BYTES bytes, decompressed, or as many as can be read; never raises."""
        return self.first(HEAD_BYTES)

    def first(self, size: int) -> bytes:
        """Returns the first `size` bytes, decompressed, or as many as can be read; never raises."""
        data = bytearray()
        with contextlib.suppress(*STREAM_ERRORS), self.open() as stream:
            for piece in pieces(stream, size, 1 << 14):
                data += piece
        return bytes(data)

    def whole(self) -> bytes:
        """Returns the decompressed bytes, at most one over the limit. Raises as `open`."""
        with self.open() as stream:  # a buffer of the size of the limit may not fit into memory
            return b"".join(pieces(stream, self.max_record_bytes + 1, 1 << 24))

    @cached_property
    def table(self) -> Table | None:
        """The table, if the source is one."""
        if self._table is not None or self.path is None or self.members:
            return self._table
        return FileTable(self.path) if self.head.startswith(MAGICS) else None

    # -- recognition -------------------------------------------------------------------------

    @cached_property
    def peek(self) -> Peek:
        """The contents of the beginning of the file, for recognition."""
        if self.members:
            return Peek("folder")
        if self.table is not None:
            return peek_rows(self.table)
        peek, self._decoded = peek_file(self.head, self._some_lines, self._begun_document)
        if peek.kind == "text":
            self._separator, self.csv_names, rows = first_rows(self.head)
            self._json_columns = json_columns(rows)
            peek = replace(peek, records=tuple(map(self._decoded_row, rows)))
        return peek

    def unwrap(self) -> bool:
        """Takes the list inside a document for its records; returns whether there is one.

        For a document that no reader recognises as a whole; changes `peek` and `records`.
        """
        if self.wrapped is None and self.peek.kind == "json":
            self.wrapped = wrapped_records(self._document)
            if self.wrapped is not None:
                self._document = self.wrapped.records
                for cached in ("peek", "_unpadded_document"):
                    self.__dict__.pop(cached, None)
        return self.wrapped is not None

    def _some_lines(self) -> Generator[bytes]:
        with contextlib.suppress(*STREAM_ERRORS), self.open() as stream:
            yield from some_lines(stream, self.max_record_bytes)

    def _begun_document(self, decoded: list[tuple[bytes, Json]]) -> Json | Problem:
        self._decoded = decoded
        return self._document

    # -- records -----------------------------------------------------------------------------

    def items_of_chunk(self, items: Sequence[T]) -> Iterator[T]:
        """Yields the items of the file that are in this chunk; all if it is no chunk of items."""
        chunk = self.chunk
        for item in items[chunk.start : chunk.end] if isinstance(chunk, ItemChunk) else items:
            if self.watch is not None:
                self.watch.begin_item()
            yield item

    def seen(self, where: str, value: Json) -> Record:
        """Returns the record of a value that was decoded, which the watch looks at."""
        if self.watch is not None:
            self.watch.see(where, value)
        return Record(where, value)

    def counted(self, items: Iterable[Json], where: str = "[{}]") -> Iterator[Record]:
        """Yields the items of a decoded list as records; `where` formats the position."""
        for index, item in enumerate(items):
            self._records_read += 1
            yield Record(where.format(index), item)

    def lines(self) -> Iterator[tuple[int, bytes, bool] | Problem]:
        """Yields (number from 1, bytes without line end, has a newline) of the non-blank lines.

        Counts each as a record. A line beyond the limit is a Problem; so is an interrupted stream,
        which ends the iteration. Rows of a table are yielded as JSON text.
        """
        if self.table is not None:
            yield from self._rows(self.table)
            return
        limit = self.max_record_bytes
        chunk = self.chunk if isinstance(self.chunk, LineChunk) else None
        number = chunk.first - 1 if chunk else 0
        offset = chunk.start if chunk else 0
        try:
            with self.open() as stream:
                if chunk:
                    stream.seek(offset)
                while line := stream.readline(limit + 1):
                    if chunk and offset >= chunk.end:
                        return
                    number += 1
                    offset += len(line)
                    if len(line) > limit:
                        rest = 0 if line.endswith(b"\n") else skip_line(stream)
                        offset += rest
                        self._records_read += 1
                        detail = f"{len(line) + rest} bytes, the limit is {limit}"
                        yield Problem("too_large", f"line {number}", detail)
                        continue
                    ended = line.endswith(b"\n")
                    line = line.rstrip(b"\r\n")
                    if number == 1:
                        line = line.removeprefix(BOM)
                    if line.strip():
                        self._records_read += 1
                        yield number, line, ended
        except STREAM_ERRORS as error:
            self._records_read += 1
            yield stream_problem(error, f"after line {number}")

    def _rows(self, table: Table) -> Iterator[tuple[int, bytes, bool] | Problem]:
        if isinstance(self.chunk, ItemChunk) and isinstance(table, FileTable):
            table = replace(table, chunk=self.chunk)
        for number, row in table.rows():
            self._records_read += 1
            line = b"" if isinstance(row, Problem) else dumps(row).encode("utf-8", "surrogatepass")
            if isinstance(row, Problem):
                yield row
            elif len(line) > self.max_record_bytes:
                detail = f"{len(line)} bytes, the limit is {self.max_record_bytes}"
                yield Problem("too_large", f"row {number}", detail)
            else:
                yield number, line, True

    def json_lines(self) -> Iterator[Record | Problem]:
        """Yields the records of a JSONL file; a line that is not JSON is a Problem.

        A line may be several objects without a separator, which are a record each. A last line
        without a newline that is not JSON is `truncated`. The first values may be those
        of `peek`, so they must not be modified.
        """
        padded = self.peek.padding.columns if self.table is None else ()
        decoded, self._decoded = iter(self._decoded), []
        due = next(decoded, None)
        name = "line" if self.table is None else "row"
        for item in self.lines():
            if isinstance(item, Problem):
                yield item
                continue
            number, line, ended = item
            if due is not None and due[0] == line:
                yield self.seen(f"{name} {number}", due[1])
                due = next(decoded, None)
                continue
            try:
                yield self.seen(f"{name} {number}", without_padding(self._loads(line), padded))
            except JsonFault as fault:
                if adjacent := adjacent_objects(line) if fault.code == "bad_json" else ():
                    self._records_read += len(adjacent) - 1
                    yield from self._adjacent(f"{name} {number}", adjacent)
                    continue
                problem = fault.at(f"{name} {number}")
                if not ended and fault.code in ("bad_json", "bad_utf8"):
                    problem = Problem("truncated", problem.where, problem.detail)
                yield problem

    def _adjacent(self, where: str, objects: Iterable[bytes]) -> Iterator[Record | Problem]:
        """Yields the objects of a line: at "line 3", "line 3.2" …."""
        for at, item in enumerate(objects, start=1):
            place = where if at == 1 else f"{where}.{at}"
            try:
                yield self.seen(place, self._loads(item))
            except JsonFault as fault:
                yield fault.at(place)

    def _decoded_row(self, row: Json) -> Json:
        return {
            name: loads_text(text) if name in self._json_columns else text
            for name, text in (row.items() if isinstance(row, dict) else ())
        }

    @property
    def is_csv(self) -> bool:
        """Whether it is a table of values separated by commas, semicolons or tabs."""
        return self.peek.kind == "text" and self.csv_names != ()

    def csv_rows(self) -> Iterator[Record | Problem]:
        """Yields the rows of a table of comma-separated values, whose fields are texts."""
        with self.open() as stream, contextlib.closing(read_rows(stream, self._separator)) as rows:
            for row in rows:
                self._records_read += 1
                yield row if isinstance(row, Problem) else Record(*row)

    def records(self) -> Iterator[Record | Problem]:
        """Yields the records of a JSONL, JSON or CSV file, and counts them.

        They are the lines of JSONL, the rows of CSV (with JSON in their columns decoded), the
        elements of a JSON list (see `unwrap`), or any other document as a whole (at "file").
        """
        if self.is_csv:
            for row in self.csv_rows():
                if isinstance(row, Record):
                    yield self.seen(row.where, self._decoded_row(row.value))
                else:
                    yield row
            return
        if self.peek.kind != "json":
            yield from self.json_lines()
            return
        value, where = self._unpadded_document, "[{}]"
        if self.wrapped is not None:
            where = self.wrapped.where
            self.seen("file", self.wrapped.beside)
        if isinstance(value, list):
            for record in self.counted(value, where):
                cut = cut_row(record.where, record.value) if self.wrapped else None
                yield cut or (record if self._is_seen else self.seen(record.where, record.value))
            return
        self._records_read += 1
        value = self.document()
        yield value if isinstance(value, Problem) else Record("file", value)

    def document(self, *, exact: bool = False) -> Json | Problem:
        """Returns the whole file as one JSON value. Counts no records, unlike `counted`.

        `exact`: with the nulls of a table.
        """
        value = self._document if exact else self._unpadded_document
        if not isinstance(value, Problem) and self.watch is not None and not self._is_seen:
            self._is_seen = True
            rows = self.wrapped.records if self.wrapped else None
            whole = value if rows is None else [row for row in rows if cut_row("", row) is None]
            self.watch.see("file", whole)
        return value

    @cached_property
    def _unpadded_document(self) -> Json | Problem:
        value = self._document
        return (
            value
            if isinstance(value, Problem)
            else without_padding(value, self.peek.padding.columns)
        )

    @cached_property
    def _document(self) -> Json | Problem:
        try:
            data = self.whole()
        except STREAM_ERRORS as error:
            return stream_problem(error, "file")
        if len(data) > self.max_record_bytes:
            return Problem("too_large", "file", f"more than {self.max_record_bytes} bytes")
        for line, value in self._decoded[:1]:
            if data.startswith(line) and not data[len(line) :].strip(b" \t\r\n"):
                return value
        try:
            return self._loads(data)
        except JsonFault as fault:
            return fault.at("file")

    def _loads(self, data: bytes) -> Json:
        value, exact = loads_leniently(data)
        self.is_exact = self.is_exact and exact
        return value
