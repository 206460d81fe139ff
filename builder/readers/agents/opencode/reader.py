"""Reads opencode's store of JSON files, its SQLite database and exported sessions.

Source: docs/formats/opencode.md. All three contain sessions with messages with parts, which `rows`
interprets. System prompt and tools are not recorded, except for a `system` text of the user.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from pathlib import PurePosixPath

from builder.conversation import Conversation, Event, Ignored, Json
from builder.jsonio import a_json_type
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.opencode.rows import StoreRow, conversations
from builder.readers.homes import Home
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import missing_records
from builder.sources.listing import Listing
from builder.sources.source import Source
from builder.sources.sqlite_file import (
    first_column,
    guarded,
    json_column,
    open_sqlite,
    rows,
    session_sizes,
    tables,
)

_OTHER_KINDS = frozenset(
    {"project", "session_diff", "session_share", "share", "todo", "permission", "migration"}
)
"""Kinds of files in a store that belong to no conversation."""


def is_store(folder: Listing) -> bool:
    """Returns whether the folder is opencode's storage (or that of a project, before 0.6)."""
    first = "session" if folder.is_dir("session") else "info"
    return all(map(folder.is_dir, (first, "message", "part")))


def recognise(source: Source) -> str | None:
    """Claims a store of files, an exported session, or a database by its tables."""
    if source.peek.kind == "folder":
        tops = {member.name.partition("/")[0] for member in source.members}
        if "message" in tops and "part" in tops and tops & {"session", "info"}:
            return "a store of session, message and part files"
        return None
    if source.peek.kind == "json" and source.peek.records:
        document = as_dict(source.peek.records[0])
        messages = as_list(document.get("messages"))
        if "id" in as_dict(document.get("info")) and any(map(_is_exported, messages)):
            return "an exported session (info, messages of info and parts)"
        return None
    columns = tables(source)
    if {"id", "session_id", "data"} <= columns.get("message", set()) and (
        {"id", "message_id", "data"} <= columns.get("part", set()) and "session" in columns
    ):
        return "a database with the tables session, message and part"
    return None


def _is_exported(value: Json) -> bool:
    item = as_dict(value)
    return "role" in as_dict(item.get("info")) and isinstance(item.get("parts"), list)


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of the database's sessions, then 0 for the rows that are in no session."""
    sizes = session_sizes(source, _SESSIONS, _SIZES)
    return [*sizes, 0] if sizes else ()


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of all sessions, in the order of their ids."""
    if source.members:
        yield from _Store(source).events()
    elif source.peek.kind == "sqlite":
        yield from guarded(source, _database(source))
    else:
        yield from _exported(source)


def _or_ignored(events: Iterator[Conversation], records: int) -> Iterator[Event]:
    """Yields the conversations of a session; if there are none, its records are ignored."""
    first = next(events, None)
    if first is not None:
        yield first
        yield from events
    elif records:
        yield Ignored("empty_session", records)


def _exported(source: Source) -> Iterator[Event]:
    document = source.document()
    if isinstance(document, Problem):
        source.count_records()
        yield document
        return
    session = as_dict(document, "info")
    rows: list[StoreRow] = []
    lost: list[Problem] = []
    for record in source.counted(as_list(document, "messages")):
        item = as_dict(record.value)
        info = as_dict(item.get("info"))
        if info:
            parts = tuple(map(as_dict, as_list(item.get("parts"))))
            rows.append(StoreRow(name_or_none(info.get("id")) or record.where, info, parts))
        else:
            lost.append(Problem("not_object", record.where, "a message without info"))
            yield lost[-1]
    name = name_or_none(session.get("id")) or source.name
    yield from _or_ignored(
        conversations(name, session, rows, len(rows), missing_records(lost)), len(rows)
    )


def _orphans(row: StoreRow) -> Iterator[Conversation]:
    """Yields parts without their message, so that their role is unknown."""
    problem = Problem("orphan_part", f"message {row.id}", "the message is missing", records=0)
    return conversations(row.id, {}, [row], len(row.parts), (problem,))


class _Store:
    """The files of a store by the session or message they belong to; read session by session."""

    def __init__(self, source: Source) -> None:
        self.sessions: dict[str, Source] = {}
        self.messages: dict[str, list[Source]] = defaultdict(list)
        self.parts: dict[str, list[Source]] = defaultdict(list)
        self.others: Counter[str] = Counter()
        for member in source.members:
            path = PurePosixPath(member.name)
            kind = path.parts[0]
            match kind if path.suffix == ".json" else None:
                case "session" | "info":
                    self.sessions[path.stem] = member
                case "message":
                    self.messages[path.parent.name].append(member)
                case "part":
                    self.parts[path.parent.name].append(member)
                case _:
                    member.count_records()
                    self.others[kind if kind in _OTHER_KINDS else unknown_code(kind)] += 1

    def events(self) -> Iterator[Event]:
        """Yields the events of the whole store."""
        for session in sorted({*self.sessions, *self.messages}):
            yield from self._session(session)
        for key in sorted(self.parts):  # the remaining parts have no message
            row, problems = self._row(key, {})
            yield from problems
            yield from _or_ignored(_orphans(row), len(row.parts))
        yield from ignored(self.others)

    def _session(self, name: str) -> Iterator[Event]:
        info: dict[str, Json] | Problem = {}
        records = 0
        if name in self.sessions:
            info = _load(self.sessions[name])
            if isinstance(info, Problem):
                yield info
            else:
                records += 1
        rows: list[StoreRow] = []
        lost: list[Problem] = []
        for member in self.messages.get(name, ()):
            message = _load(member)
            row, problems = self._row(PurePosixPath(member.name).stem, message)
            records += len(row.parts) + (not isinstance(message, Problem))
            yield from problems
            lost += problems
            rows.append(row)
        session = {} if isinstance(info, Problem) else info
        yield from _or_ignored(
            conversations(name, session, rows, records, missing_records(lost)), records
        )

    def _row(self, key: str, message: dict[str, Json] | Problem) -> tuple[StoreRow, list[Problem]]:
        """Returns a message with its parts, and the problems of the unreadable ones."""
        problems = [message] if isinstance(message, Problem) else []
        parts: list[dict[str, Json]] = []
        for file in sorted(self.parts.pop(key, []), key=lambda file: file.name):
            part = _load(file)
            if isinstance(part, Problem):
                problems.append(part)
            else:
                parts.append(part)
        info = {} if isinstance(message, Problem) else message
        return StoreRow(key, info, tuple(parts)), problems


def _load(member: Source) -> dict[str, Json] | Problem:
    """Loads and counts a file of the store, through a new Source so that no copy is kept."""
    member.count_records()
    limit = member.max_record_bytes
    fresh = Source(member.name, member.path, max_record_bytes=limit) if member.path else member
    fresh.watch = member.watch
    value = fresh.document()
    if isinstance(value, Problem):
        return Problem(value.code, member.name, value.detail)
    if not isinstance(value, dict):
        return Problem("not_object", member.name, a_json_type(value))
    return value


_SESSIONS = "SELECT id FROM session UNION SELECT session_id FROM message ORDER BY 1"
_SIZES = """
SELECT session_id, sum(bytes) FROM (
    SELECT session_id, length(CAST(data AS BLOB)) AS bytes FROM message
    UNION ALL
    SELECT message.session_id, length(CAST(part.data AS BLOB)) AS bytes
    FROM part JOIN message ON message.id = message_id
) GROUP BY 1
"""
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY id"
_PARTS = """
SELECT part.id, message_id, part.data FROM part JOIN message ON message.id = message_id
WHERE message.session_id = ? ORDER BY part.id
"""
_ORPHANS = """
SELECT id, message_id, data FROM part WHERE message_id NOT IN (SELECT id FROM message) ORDER BY id
"""
_NEXT_GENERATION = """
SELECT count(*) AS n FROM session_message AS m
WHERE NOT EXISTS (SELECT 1 FROM message WHERE message.session_id = m.session_id)
"""


def _database(source: Source) -> Iterator[Event]:
    names = tables(source)
    with open_sqlite(source) as connection:
        for session in source.items_of_chunk([*first_column(connection, _SESSIONS), None]):
            if session is None:
                yield from _no_session(source, connection, names)
            else:
                yield from _stored_session(source, connection, session)


def _no_session(
    source: Source, connection: sqlite3.Connection, names: dict[str, frozenset[str]]
) -> Iterator[Event]:
    """Yields the events of rows that are in no session: orphaned parts, other tables."""
    parts, _ = yield from _parts(source, connection, _ORPHANS)
    for key, items in sorted(parts.items()):
        yield from _or_ignored(_orphans(StoreRow(key, {}, tuple(items))), len(items))
    if "event" in names:  # the history of the same messages and parts
        n = _count(source, connection, "SELECT count(*) AS n FROM event")
        yield Ignored("event_copy", n)
    if "session_message" in names and (n := _count(source, connection, _NEXT_GENERATION)):
        detail = "sessions in the table session_message alone"
        yield Problem("unverified_format", "session_message", detail, records=n)


def _count(source: Source, connection: sqlite3.Connection, query: str) -> int:
    n = next(rows(connection, query)).get("n")
    records = n if isinstance(n, int) else 0
    source.count_records(records)
    return records


def _stored_session(
    source: Source, connection: sqlite3.Connection, session: str
) -> Iterator[Event]:
    info: dict[str, Json] = {}
    records = 0
    for row in rows(connection, "SELECT * FROM session WHERE id = ?", session):
        source.count_records()
        records += 1
        for name in ("revert", "permission"):
            value = json_column(row[name], name) if row.get(name) is not None else None
            info[name] = None if isinstance(value, Problem) else value
    messages: dict[str, dict[str, Json]] = {}
    lost: list[Problem] = []
    for row in rows(connection, _MESSAGES, session):
        source.count_records()
        key = as_str(row.get("id"))
        value = json_column(row.get("data"), f"message {key}")
        messages[key] = as_dict(None if isinstance(value, Problem) else value)
        if isinstance(value, Problem):
            yield value
            lost.append(value)
        else:
            records += 1
    parts, unreadable = yield from _parts(source, connection, _PARTS, session)
    records += sum(map(len, parts.values()))
    found = [StoreRow(key, data, tuple(parts[key])) for key, data in messages.items()]
    gaps = missing_records([*lost, *unreadable])
    yield from _or_ignored(conversations(session, info, found, records, gaps), records)


def _parts(
    source: Source, connection: sqlite3.Connection, query: str, *values: str
) -> Generator[Problem, None, tuple[dict[str, list[dict[str, Json]]], list[Problem]]]:
    """Yields the Problems of unreadable parts; returns parts by message id, and the Problems."""
    parts: dict[str, list[dict[str, Json]]] = defaultdict(list)
    lost: list[Problem] = []
    for row in rows(connection, query, *values):
        source.count_records()
        key = as_str(row.get("id"))
        value = json_column(row.get("data"), f"part {key}")
        if isinstance(value, Problem):
            yield value
            lost.append(value)
        else:
            parts[as_str(row.get("message_id"))].append({**as_dict(value), "id": key})
    return parts, lost


READER = Reader(
    name="opencode",
    summary=(
        "opencode (and its forks): the folder storage/ (session, message, part), opencode.db, "
        "exported sessions (info, messages of info and parts)"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    is_agent=True,
    checked="1.18.33",
    homes=(
        Home("opencode", "${XDG_DATA_HOME:-~/.local/share}/opencode/storage"),
        Home("opencode", "${XDG_DATA_HOME:-~/.local/share}/opencode/opencode*.db"),
    ),
    read=read,
    is_store=is_store,
    item_sizes=item_sizes,
)
