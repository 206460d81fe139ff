"""Reads egirl's `conversations.db`, and ignores its telemetry. Source: docs/formats/egirl.md."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from builder.conversation import (
    Content,
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    ToolResult,
    Unparsed,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.narrow import as_str, name_or_none, one_or_many
from builder.readers.toolkit.rows import missing_records
from builder.readers.toolkit.tags import call_of
from builder.sources.source import Source
from builder.sources.sqlite_file import json_column, read_sessions, rows, session_sizes, tables

_NAMES = "SELECT DISTINCT CAST(ifnull(session_id, '') AS TEXT) FROM messages ORDER BY 1"
_SIZES = """
SELECT CAST(ifnull(session_id, '') AS TEXT), sum(
    ifnull(length(CAST(content AS BLOB)), 0) + ifnull(length(CAST(tool_calls AS BLOB)), 0)
) FROM messages GROUP BY 1
"""
_ROWS = "SELECT * FROM messages WHERE CAST(ifnull(session_id, '') AS TEXT) = ? ORDER BY id"
_SESSIONS = {"id", "channel", "last_active_at"}
_MESSAGES = {"id", "session_id", "role", "content", "tool_calls", "tool_call_id", "created_at"}
_TRANSCRIPT = frozenset({
    "turn_start", "turn_end", "memory_recall", "routing", "inference", "escalation", "tool_call",
    "token_budget",
})  # fmt: skip


def _recognise(source: Source) -> str | None:
    """Claims the database by its tables (a view could compute forever), telemetry by entries."""
    if source.peek.kind == "sqlite":
        columns = tables(source)
        known = columns.get("messages", frozenset()) >= _MESSAGES
        if known and columns.get("sessions", frozenset()) >= _SESSIONS:
            return "tables sessions (channel, last_active_at) and messages (tool_calls)"
        return None
    found = next(filter(None, map(_telemetry, source.peek.objects)), None)
    return f"entries of the {found}" if found else None


def _telemetry(entry: dict[str, Json]) -> str | None:
    """Returns which of egirl's JSONL files an entry is from: transcript, audit log, or None."""
    if isinstance(entry.get("session"), str) and as_str(entry.get("type")) in _TRANSCRIPT:
        return "transcript"
    if entry.keys() >= {"timestamp", "tool", "args", "blocked"}:
        return "audit log"
    action = as_str(entry.get("action"))
    return "audit log" if "timestamp" in entry and action.startswith("memory_") else None


def _read(source: Source) -> Iterator[Event]:
    if source.peek.kind == "sqlite":
        yield from read_sessions(source, _NAMES, _session)
    else:
        for item in source.records():
            yield item if isinstance(item, Problem) else Ignored("telemetry")


def _session(source: Source, connection: sqlite3.Connection, session: str) -> Iterator[Event]:
    """Yields the conversation of a session, which a row that cannot be read rejects."""
    lost: list[Problem] = []
    messages: list[Message] = []
    records = 0
    for row in rows(connection, _ROWS, session):
        source.count_records()
        role, where = as_str(row.get("role")), f"message {row.get('id')}"
        found = json_column(row.get("content") or "null", where)
        parts: list[Part] = []
        if isinstance(found, Problem):
            yield found
            lost.append(found)
        else:
            records += 1
            source.seen(where, found)
            parts += content(found)
        parts += _calls(row.get("tool_calls"), where)
        if role == "tool":
            texts = tuple(part for part in parts if isinstance(part, Content))
            result = ToolResult(texts, name_or_none(row.get("tool_call_id")))
            messages.append(Message("tool", (result,)))
        elif parts or not isinstance(found, Problem):
            messages.append(Message(role, tuple(parts), turn=f"row {row.get('id')}"))
    if messages:
        yield Conversation(
            id=session or "None",
            record=f"session {session}",
            messages=tuple(messages),
            records=records,
            problems=missing_records(lost),
        )


def _calls(text: Json, where: str) -> list[Part]:
    """Returns the calls in JSON text: a list of {id, name, arguments}, not nested."""
    value = json_column(text or "null", where)
    if isinstance(value, Problem):
        return [Unparsed(str(text), "bad_call")]
    items = one_or_many(value) if value is not None else []
    return [call_of(item) or Unparsed(dumps(item), "bad_call") for item in items]


READER = declared(
    "egirl",
    recognise=_recognise,
    read=_read,
    item_sizes=lambda source: session_sizes(source, _NAMES, _SIZES),
)
