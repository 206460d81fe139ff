"""Reads SQLite databases without writing to them or creating files next to them."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from builder.conversation import Event, Json
from builder.jsonio import JsonFault, a_json_type, loads
from builder.problem import Problem
from builder.sources.sniff import SQLITE_MAGIC
from builder.sources.source import Source, Watch
from builder.sources.stream import STREAM_ERRORS

# -- caches results that several readers need of a source ------------------------------------------

_T = TypeVar("_T")


def once(compute: Callable[[Source], _T]) -> Callable[[Source], _T]:
    """Caches the result of `compute` for each source; it must not depend on what was read.

    A source whose records are inside a list (`Source.unwrap`) has a result of its own.

    The cache is separate from the sources, so that it is not sent to workers with them.
    """
    results: WeakKeyDictionary[Source, dict[bool, _T]] = WeakKeyDictionary()

    @wraps(compute)
    def cached(source: Source) -> _T:
        known = results.setdefault(source, {})
        is_list = source.wrapped is not None
        if is_list not in known:
            known[is_list] = compute(source)
        return known[is_list]

    return cached


SQLITE_ERRORS: tuple[type[Exception], ...] = (
    sqlite3.Error,
    OverflowError,
    UnicodeError,  # names in a corrupt schema, ids that are not UTF-8
    *STREAM_ERRORS,
)
"""Exceptions from opening or reading a database."""

_MAX_ITEMS = 200_000
"""A database with more sessions is not cut into chunks."""
_MAX_TABLES = 500
"""Tables to examine; databases of conversations have fewer."""
_MAX_TEXTS = 1000
"""Rows in which a column that no reader knows is looked at."""


class _Connection(sqlite3.Connection):
    """A connection whose rows are looked at (`Source.watch`)."""

    watch: Watch | None = None


@contextlib.contextmanager
def open_sqlite(source: Source) -> Iterator[sqlite3.Connection]:
    """Opens a database read-only. Raises one of SQLITE_ERRORS.

    A plain database without a write-ahead log is opened in place. A compressed one is copied first,
    and so is one with a log (another process may be writing), because SQLite would leave an index
    of the log, `-shm`, next to it. A database is only cut into chunks if it has no log, so no log
    is read for a chunk. Text that is not UTF-8 gets lone surrogates, which the normaliser counts.
    """
    log = write_ahead_log(source) if source.chunk is None else None
    path = source.path
    with tempfile.TemporaryDirectory() as scratch:
        if path is None or not is_plain_sqlite(path):
            path = Path(scratch) / "store.db"
            with source.open() as stream, path.open("wb") as out:
                shutil.copyfileobj(stream, out)
        elif log is not None:
            path = Path(shutil.copyfile(path, Path(scratch) / "store.db"))
            shutil.copyfile(log, path.with_name("store.db-wal"))
        mode = "mode=rw" if log is not None else "immutable=1"
        address = f"{path.resolve().as_uri()}?{mode}"
        opened = sqlite3.connect(address, uri=True, factory=_Connection)
        opened.watch = source.watch
        opened.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        used = _used_columns(opened) if source.watch is not None else {}
        try:
            yield opened
            if source.watch is not None:
                opened.set_authorizer(None)
                _show_unused(opened, used, source.watch)
        finally:
            opened.close()


def _used_columns(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Returns {table: its columns that were read}, which the queries from now on fill."""
    used: dict[str, set[str]] = {}

    def note(action: int, table: str | None, column: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table:
            used.setdefault(table, set()).add(column or "")
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    return used


def _show_unused(connection: sqlite3.Connection, used: dict[str, set[str]], watch: Watch) -> None:
    """Has the first texts of the columns looked at that no query used, of tables that one did."""
    for table, columns in used.items():
        info = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        for column in [str(name) for (name,) in info if name not in columns]:
            name, place = (f'"{text.replace(chr(34), chr(34) * 2)}"' for text in (column, table))
            query = f"SELECT {name} FROM (SELECT {name} FROM {place} LIMIT ?)"  # noqa: S608 - quoted
            query += f" WHERE typeof({name}) = 'text' AND length({name}) > 20 LIMIT 1"
            for (text,) in connection.execute(query, (_MAX_TEXTS,)):
                watch.see("database", {column: text})


def write_ahead_log(source: Source) -> Path | None:
    """Returns the write-ahead log next to a database, if it is not empty. Raises OSError."""
    if source.path is None:
        return None
    log = source.path.with_name(source.path.name + "-wal")
    if not log.exists() or not log.stat().st_size:
        return None
    return log if source.peek.kind == "sqlite" else None


def is_plain_sqlite(path: Path) -> bool:
    """Returns whether a file is a database that is not compressed."""
    with path.open("rb") as raw:
        return raw.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


@once
def tables(source: Source) -> dict[str, frozenset[str]]:
    """Returns the columns of each table, by name; {} if the source is not a readable database."""
    if source.peek.kind != "sqlite":
        return {}
    columns: dict[str, frozenset[str]] = {}
    try:
        with open_sqlite(source) as connection:
            query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name LIMIT ?"
            for (name,) in connection.execute(query, (_MAX_TABLES,)).fetchall():
                if isinstance(name, str):
                    info = connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
                    columns[name] = frozenset(str(column) for (column,) in info)
    except SQLITE_ERRORS:
        return {}
    return columns


def rows(
    connection: sqlite3.Connection, query: str, *values: str | int
) -> Iterator[dict[str, Json]]:
    """Yields the rows of a query as objects without their blobs. Raises sqlite3.Error."""
    cursor = connection.execute(query, values)
    names = [item[0] for item in cursor.description]
    watch = connection.watch if isinstance(connection, _Connection) else None
    for row in cursor:
        row_values = {
            name: value
            for name, value in zip(names, row, strict=True)
            if not isinstance(value, bytes)
        }
        if watch is not None:
            watch.see("row", row_values)
        yield row_values


def first_column(connection: sqlite3.Connection, query: str) -> list[str]:
    """Returns the distinct texts in the first column of a query. Raises sqlite3.Error."""
    texts = {row[0]: None for row in connection.execute(query) if isinstance(row[0], str)}
    return list(texts)


def listed(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    """Returns the rows of a query; too many of them, or a fault, raise sqlite3.Error."""
    rows = list(islice(connection.execute(query), _MAX_ITEMS + 1))
    if len(rows) > _MAX_ITEMS:
        raise sqlite3.DataError(f"more than {_MAX_ITEMS} rows")
    return rows


SESSIONS = "SELECT id FROM sessions UNION SELECT session_id FROM messages ORDER BY 1"
"""The query of those programs that keep tables `sessions` and `messages`."""


def session_sizes(source: Source, sessions: str, query: str) -> Sequence[int]:
    """Returns the approximate bytes of each session that the query `sessions` names.

    Implements `item_sizes` of a reader. `query` returns (session, bytes) and reads everything that
    the reader will read of a session: if that is corrupt, the result is (), so that the database is
    not cut.
    """
    if source.peek.kind != "sqlite":
        return ()
    try:
        with open_sqlite(source) as connection:
            listed(connection, sessions)
            size_of = dict(listed(connection, query))
            return [size_of.get(name) or 0 for name in first_column(connection, sessions)]
    except SQLITE_ERRORS:
        return ()


def json_column(value: Json, where: str) -> Json | Problem:
    """Returns the value of a column of JSON text, or the Problem located at `where`."""
    if not isinstance(value, str):
        return Problem("bad_json", where, f"{a_json_type(value)} in place of JSON text")
    try:
        return loads(value)
    except JsonFault as fault:
        return fault.at(where)


def read_sessions(
    source: Source, query: str, read: Callable[[Source, sqlite3.Connection, str], Iterator[Event]]
) -> Iterator[Event]:
    """Yields the events of `read` for each session that the query names, through `guarded`."""

    def events() -> Iterator[Event]:
        with open_sqlite(source) as connection:
            for session in source.items_of_chunk(first_column(connection, query)):
                yield from read(source, connection, session)

    return guarded(source, events())


def guarded(source: Source, events: Iterator[Event]) -> Iterator[Event]:
    """Yields the events read from a database, and a Problem if it cannot be read to its end.

    The Problem counts the rows that were read but are in no event.
    """
    before, reported = source.records_read, 0
    try:
        for event in events:
            reported += event.records
            yield event
    except SQLITE_ERRORS as error:
        source.count_records()
        left = source.records_read - before - reported
        detail = str(error) or type(error).__name__
        yield Problem("unreadable", "database", detail, records=left)
