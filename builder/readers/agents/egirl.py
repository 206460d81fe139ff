"""Reads egirl's `conversations.db`: sessions and messages in SQLite, content as JSON text.

Source: docs/formats/egirl.md; Schneewolf-Labs/egirl src/conversation/store.ts,
src/tracking/transcript.ts and src/safety/audit-log.ts (MIT). The agent keeps only the newest
messages: a session may begin with a tool or assistant row, which the normaliser cuts. System
prompts and tool definitions are not stored. The column `summary` of `sessions` is the program's
text about deleted messages, not a message, and is not read. Transcripts and the audit log in the
same folder are telemetry without conversation text: they are recognised and ignored.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from builder.conversation import (
    Content,
    Conversation,
    Data,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Text,
    ToolResult,
    Unparsed,
)
from builder.jsonio import JsonFault, dumps, loads, loads_text
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.chat_messages import content_block
from builder.readers.toolkit.narrow import as_str, name_or_none
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.tags import call_of
from builder.sources.source import Source
from builder.sources.sqlite_file import SQLITE_ERRORS, guarded, listed, open_sqlite, tables

_SESSIONS = {"id", "channel", "last_active_at"}
_MESSAGES = ("id", "session_id", "role", "content", "tool_calls", "tool_call_id")
_SIZE = " + ".join(
    f"ifnull(length(CAST({name} AS BLOB)), 0)" for name in ("role", "content", "tool_calls")
)
_NAMES = "SELECT DISTINCT session_id FROM messages ORDER BY session_id"
_SIZES = "SELECT session_id, sum({size}) FROM messages GROUP BY session_id ORDER BY session_id"
_TRANSCRIPT = frozenset({
    "turn_start", "turn_end", "memory_recall", "routing", "inference", "escalation", "tool_call",
    "token_budget",
})  # fmt: skip


def recognise(source: Source) -> str | None:
    """Claims the database by its tables, transcripts and audit log by their entries."""
    if source.peek.kind == "sqlite":
        # Only tables count: a view could compute forever.
        columns = tables(source)
        known = columns.get("messages", frozenset()) >= {*_MESSAGES, "created_at"}
        if known and columns.get("sessions", frozenset()) >= _SESSIONS:
            return "tables sessions (channel, last_active_at) and messages (tool_calls)"
        return None
    kinds = [_telemetry(value) for value in source.peek.objects]
    found = next((kind for kind in kinds if kind), None)
    return f"entries of the {found}" if found else None


def _telemetry(entry: dict[str, Json]) -> str | None:
    """Returns which of egirl's JSONL files an entry is from: transcript, audit log, or None."""
    if isinstance(entry.get("session"), str) and as_str(entry.get("type")) in _TRANSCRIPT:
        return "transcript"
    if set(entry) >= {"timestamp", "tool", "args", "blocked"}:
        return "audit log"
    action = as_str(entry.get("action"))
    return "audit log" if "timestamp" in entry and action.startswith("memory_") else None


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of the database's sessions; () if one has no name."""
    if source.peek.kind != "sqlite":
        return ()
    try:
        with open_sqlite(source) as store:
            sizes = listed(store, _SIZES.format(size=_SIZE))
    except SQLITE_ERRORS:
        return ()
    named = all(isinstance(session, str) for session, _ in sizes)
    return [size for _, size in sizes] if named else ()


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each session, its rows in the order of their ids."""
    if source.peek.kind == "sqlite":
        yield from guarded(source, _sessions(source))
        return
    for item in source.records():
        yield item if isinstance(item, Problem) else Ignored("telemetry")


_Row = tuple[Json, Json, Json, Json, Json, Json, int]
"""The columns of `_MESSAGES`, and the size in bytes of text that is too long to be read, else 0."""


def _sessions(source: Source) -> Iterator[Event]:
    texts = ", ".join(
        f"CASE WHEN {_SIZE} > :limit THEN NULL ELSE {name} END" for name in _MESSAGES[2:]
    )
    query = (
        f"SELECT id, session_id, {texts}, CASE WHEN {_SIZE} > :limit THEN {_SIZE} ELSE 0 END"  # noqa: S608 - names of columns
        " FROM messages WHERE :whole OR session_id BETWEEN :first AND :last ORDER BY session_id, id"
    )
    names: Counter[str] = Counter()
    rows: list[_Row] = []
    with open_sqlite(source) as store:
        try:
            for values in store.execute(query, _values(source, store)):
                source.count_records()
                if rows and rows[-1][1] != _plain(values[1]):
                    yield from _session(rows, names, ())
                    rows = []
                plain = [_plain(value) for value in values[:6]]
                for text in (plain[3], plain[4]):
                    source.seen("row", loads_text(text))
                rows.append((*plain, values[6]))
        except SQLITE_ERRORS:
            if rows:  # the calls read so far are known, the text is incomplete
                detail = "the database cannot be read to its end"
                broken = Problem("unreadable", f"session {rows[0][1]}", detail, records=0)
                yield from _session(rows, names, (broken,))
            raise
        if rows:
            yield from _session(rows, names, ())


def _values(source: Source, store: sqlite3.Connection) -> dict[str, str | int | None]:
    """Returns the query's parameters: all sessions, or the first and last one of a chunk."""
    values: dict[str, str | int | None] = {"limit": source.max_record_bytes, "whole": 1}
    if source.window is not None:
        own = [*source.items_of_chunk([name for (name,) in store.execute(_NAMES)] or [None])]
        values.update(whole=0, first=own[0], last=own[-1])
    return {"first": None, "last": None, **values}


def _plain(value: object) -> Json:
    """Returns a column's value; SQLite may return bytes where text is expected."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str | int | float | None) else str(value)


def _session(rows: list[_Row], names: Counter[str], broken: tuple[Problem, ...]) -> Iterator[Event]:
    """Yields the conversation of one session.

    An unreadable row leaves a gap, and the session is rejected. The row's readable calls are kept
    for the ledger.
    """
    session = str(rows[0][1])
    problems = list(broken)
    messages: list[Message] = []
    used = 0
    for number, _, role, content, calls, call_id, too_large in rows:
        where = f"message {number}"
        fault: Problem | None = None
        parts: list[Part] = []
        if too_large:
            fault = Problem("too_large", where, f"{too_large} bytes of text")
        try:
            parts += _content(content)
        except JsonFault as bad:
            fault = fault or bad.at(where)
        parts += _calls(calls)
        if fault is None:
            used += 1
        else:
            yield fault
            problems.append(Problem(fault.code, where, fault.detail, records=0))
        if role == "tool":
            texts = tuple(part for part in parts if isinstance(part, Content))
            messages.append(Message("tool", (ToolResult(texts, name_or_none(call_id)),)))
        elif fault is None or parts:
            messages.append(Message(as_str(role), tuple(parts), turn=f"row {number}"))
    if messages:
        yield Conversation(
            id=unique_name(session, names),
            record=f"session {session}",
            messages=tuple(messages),
            records=used,
            problems=tuple(problems),
        )


def _content(text: Json) -> list[Part]:
    """Decodes the content column: JSON of a string or of parts. Raises JsonFault."""
    value = loads(text) if isinstance(text, str) else text
    if isinstance(value, str):
        return [Text(value)] if value else []
    if not isinstance(value, list):
        return [] if value is None else [Data(value)]
    return [content_block(item) for item in value]


def _calls(text: Json) -> list[Part]:
    """Decodes the tool_calls column: JSON of a list of {id, name, arguments}, not nested."""
    if text is None or text == "":
        return []
    try:
        value = loads(text) if isinstance(text, str) else text
    except JsonFault:
        return [Unparsed(str(text), "bad_call")]
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [call_of(item) or Unparsed(dumps(item), "bad_call") for item in items]


READER = Reader(
    name="egirl",
    summary=(
        "egirl stores (sqlite): tables sessions and messages with JSON content; its transcripts "
        "and audit log"
    ),
    evidence=("source",),
    recognise=recognise,
    is_agent=True,
    read=read,
    item_sizes=item_sizes,
)
