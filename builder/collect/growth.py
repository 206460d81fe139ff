"""Decides whether the newer state of a log still holds everything of the older one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.sources.sqlite_file import is_plain_sqlite

MAX_DOCUMENT_BYTES = 64 << 20
"""A larger file that is not an extension of its older state counts as rewritten."""

_PIECE = 1 << 20
_LABEL_CHARS = 40
"""Values up to this length without a space are labels, ids and times, which programs update."""


def holds_all(newer: Path, older: Path) -> bool:
    """Returns whether a log grew, so that its older state holds nothing that the newer one lacks.

    True if the older file is the beginning of the newer one; if each line of the older JSONL file
    is in the newer one; or if two JSON documents, or two SQLite databases, differ only by what the
    newer one added and by short labels such as times. Raises OSError.
    """
    if _begins_with(newer, older):
        return True
    if max(newer.stat().st_size, older.stat().st_size) > MAX_DOCUMENT_BYTES:
        return False
    if is_plain_sqlite(older):
        return is_plain_sqlite(newer) and _database_grew(newer, older)
    try:
        return document_grew(loads(newer.read_bytes()), loads(older.read_bytes()))
    except JsonFault:
        before, after = _lines(older), _lines(newer)
        return bool(before) and before <= after


def document_grew(newer: Json, older: Json) -> bool:
    """Returns whether a JSON value holds all of an older one, apart from short labels.

    Lists and texts may be longer, and objects may have more keys.
    """
    if isinstance(older, dict):
        return isinstance(newer, dict) and all(
            key in newer and document_grew(newer[key], value) for key, value in older.items()
        )
    if isinstance(older, list):
        if not isinstance(newer, list) or len(newer) < len(older):
            return False
        return all(map(document_grew, newer, older))
    if isinstance(older, str):
        is_label = len(older) <= _LABEL_CHARS and not any(map(str.isspace, older))
        return is_label or (isinstance(newer, str) and newer.startswith(older))
    return True


def _begins_with(newer: Path, older: Path) -> bool:
    if newer.stat().st_size < older.stat().st_size:
        return False
    with newer.open("rb") as after, older.open("rb") as before:
        while piece := before.read(_PIECE):
            if after.read(len(piece)) != piece:
                return False
    return True


def _lines(path: Path) -> Counter[bytes]:
    """Returns how often each line of JSON occurs; nothing if a line is not JSON."""
    lines: Counter[bytes] = Counter()
    for line in path.read_bytes().splitlines():
        if line.strip():
            try:
                loads(line)
            except JsonFault:
                return Counter()
            lines[line] += 1
    return lines


def _database_grew(newer: Path, older: Path) -> bool:
    try:
        with _opened(newer) as after, _opened(older) as before:
            return all(_table_grew(after, before, table) for table in _tables(before))
    except sqlite3.Error:
        return False


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)) as opened:
        opened.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        yield opened


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Returns the ordinary tables, without derived ones (search indexes).

    Raises sqlite3.Error, also if SQLite is older than 3.37.
    """
    query = "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'"
    names = [name for (name,) in connection.execute(f"{query} ORDER BY name")]
    return [name for name in names if not name.startswith("sqlite_")]


def _table_grew(after: sqlite3.Connection, before: sqlite3.Connection, table: str) -> bool:
    """Returns whether each older row is still there, by its primary key, or else its row id.

    Raises sqlite3.Error.
    """
    columns = "SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk"
    keys = [_quoted(name) for (name,) in before.execute(columns, (table,))] or ["rowid"]
    condition = " AND ".join(f"{key} IS ?" for key in keys)
    query = f"SELECT {', '.join(keys)}, * FROM {_quoted(table)}"  # noqa: S608 - names are quoted
    for older in before.execute(query):
        newer = after.execute(f"{query} WHERE {condition}", older[: len(keys)]).fetchone()
        if newer is None or len(newer) < len(older):
            return False
        if not all(map(document_grew, map(_decoded, newer), map(_decoded, older))):
            return False
    return True


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _decoded(cell: object) -> Json:
    """Returns the value of a cell; text that is JSON is decoded, bytes are compared as text."""
    if isinstance(cell, bytes):
        return sha256(cell).hexdigest() + " "
    if isinstance(cell, str) and cell[:1] in ("{", "["):
        try:
            return loads(cell)
        except JsonFault:
            return cell
    return cell if isinstance(cell, str | int | float) else None
