"""Databases of sqlite as sources: what recognition and reading share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from builder.conversation import Event, Json
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.sources.once import once
from builder.sources.source import STREAM_ERRORS, Source

SQLITE_ERRORS: tuple[type[Exception], ...] = (
    sqlite3.Error,
    OverflowError,
    UnicodeError,  # names in a damaged schema, ids that are no UTF-8
    *STREAM_ERRORS,
)
"""What opening or reading a database may raise."""

MAX_ITEMS = 200_000
"""A database of more sessions is not read in pieces."""
MAX_TABLES = 500
"""Tables that are looked at; a store of conversations has fewer."""


@once
def tables(source: Source) -> dict[str, frozenset[str]]:
    """The columns of each table, by name; {} if the source is no database that can be read."""
    if source.peek.kind != "sqlite":
        return {}
    found: dict[str, frozenset[str]] = {}
    try:
        with source.sqlite() as connection:
            query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name LIMIT ?"
            for (name,) in connection.execute(query, (MAX_TABLES,)).fetchall():
                if isinstance(name, str):
                    info = connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
                    found[name] = frozenset(str(column) for (column,) in info)
    except SQLITE_ERRORS:
        return {}
    return found


def rows(
    connection: sqlite3.Connection, query: str, *values: str | int
) -> Iterator[dict[str, Json]]:
    """The rows of a query as objects; blobs are left out. Raises sqlite3.Error."""
    cursor = connection.execute(query, values)
    names = [item[0] for item in cursor.description]
    for row in cursor:
        yield {
            name: value
            for name, value in zip(names, row, strict=True)
            if not isinstance(value, bytes)
        }


def first_column(connection: sqlite3.Connection, query: str) -> list[str]:
    """The texts in the first column of a query's rows, each once. Raises sqlite3.Error."""
    found = {row[0]: None for row in connection.execute(query) if isinstance(row[0], str)}
    return list(found)


def listed(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query for `item_sizes`. Raises sqlite3.Error, also if they are too many."""
    found = list(islice(connection.execute(query), MAX_ITEMS + 1))
    if len(found) > MAX_ITEMS:
        raise sqlite3.DataError(f"more than {MAX_ITEMS} rows")
    return found


def session_sizes(source: Source, sessions: str, query: str) -> Sequence[int]:
    """For `item_sizes`: about how many bytes each session has that the query `sessions` names.

    `query` gives rows of (session, bytes) and looks at all that is read of a session: a database
    that is damaged there is not to be read in pieces, which gives ().
    """
    if source.peek.kind != "sqlite":
        return ()
    try:
        with source.sqlite() as connection:
            listed(connection, sessions)
            found = dict(listed(connection, query))
            return [found.get(name) or 0 for name in first_column(connection, sessions)]
    except SQLITE_ERRORS:
        return ()


def json_column(value: Json, where: str) -> Json | Problem:
    """A column that holds JSON text: decoded, or the Problem located at `where`."""
    if not isinstance(value, str):
        return Problem("bad_json", where, f"a {type(value).__name__} in place of JSON text")
    try:
        return loads(value)
    except JsonFault as fault:
        return fault.at(where)


def guarded(source: Source, events: Iterator[Event]) -> Iterator[Event]:
    """The events read from a database, and the Problem if it cannot be read to its end.

    Rows that were read by then and are in no event are counted under the Problem.
    """
    before, told = source.records_read, 0
    try:
        for event in events:
            told += event.records
            yield event
    except SQLITE_ERRORS as error:
        source.count_records()
        left = source.records_read - before - told
        detail = str(error) or type(error).__name__
        yield Problem("unreadable", "database", detail, records=left)
