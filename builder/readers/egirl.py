"""egirl's `conversations.db`: sessions and messages in sqlite, content as JSON text.

Reference: egirl.md. The agent keeps the newest messages only: a session may begin with a tool or an
assistant row, which the normaliser cuts. System prompts and tool definitions are not stored. The
rolling summary of what was deleted is in a column of `sessions` and no message of anybody. The
transcripts beside the store are telemetry without contents: recognised, and ignored by design.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from builder.conversation import (
    Conversation,
    Data,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem
from builder.readers._narrow import as_dict, as_list, as_str, name_or_none
from builder.source import STREAM_ERRORS, Source

NAME = "egirl"
SUMMARY = "egirl stores (sqlite): tables sessions and messages with JSON content; its transcripts"

_COLUMNS = {"id", "session_id", "role", "content", "tool_calls", "tool_call_id", "created_at"}
FAULTS: tuple[type[Exception], ...] = (sqlite3.Error, *STREAM_ERRORS)
"""What opening and reading a store may raise."""

_TELEMETRY = frozenset({"turn_start", "turn_end", "routing", "inference", "memory_recall"})


def recognise(source: Source) -> str | None:
    """The store by its columns, the telemetry by its events."""
    if source.peek.kind == "sqlite":
        try:
            with source.sqlite() as store:
                if _columns(store, "messages") >= _COLUMNS and _columns(store, "sessions"):
                    return "tables sessions and messages with session_id, role, tool_calls"
        except FAULTS:
            return None
        return None
    for value in source.peek.objects:
        kind = value.get("type") or value.get("event")
        if kind in _TELEMETRY and "message" not in as_dict(value.get("message")):
            telemetry = {"session", "session_id", "sessionId"} & set(value)
            if telemetry and {"target", "tokens", "confidence", "duration"} & set(value):
                return "telemetry events (routing, inference)"
    return None


def _columns(store: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in store.execute(f"PRAGMA table_info({table})")}


def read(source: Source) -> Iterator[Event]:
    """A conversation for each session, its rows in the order of their ids."""
    if source.peek.kind != "sqlite":
        for item in source.records():
            yield item if isinstance(item, Problem) else Ignored("telemetry")
        return
    try:
        with source.sqlite() as store:
            query = (
                "SELECT id, session_id, role, content, tool_calls, tool_call_id"
                " FROM messages ORDER BY session_id, id"
            )
            rows: list[tuple[Json, ...]] = []
            for row in store.execute(query):
                source.count_records()
                if rows and rows[-1][1] != row[1]:
                    yield from _session(rows)
                    rows = []
                rows.append(tuple(_plain(value) for value in row))
            if rows:
                yield from _session(rows)
    except FAULTS as error:
        source.count_records()
        yield Problem("unreadable", "store", f"{type(error).__name__}: {error}"[:200])


def _plain(value: object) -> Json:
    """A column's value; sqlite may give bytes where text is expected."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str | int | float | None) else str(value)


def _session(rows: list[tuple[Json, ...]]) -> Iterator[Event]:
    """The rows of one session. A row that cannot be read leaves a gap: the session is no sample."""
    messages: list[Message] = []
    faults: list[Problem] = []
    used = 0
    session = str(rows[0][1])
    for number, _, role, content, calls, call_id in rows:
        where = f"message {number}"
        try:
            parts = list(_content(content))
            parts += _calls(calls)
        except JsonFault as fault:
            yield fault.at(where)
            faults.append(Problem(fault.code, where, fault.detail, records=0))
            continue
        used += 1
        if role == "tool":
            texts = tuple(part for part in parts if isinstance(part, Text | Data | Media))
            messages.append(Message("tool", (ToolResult(texts, name_or_none(call_id)),)))
        else:
            messages.append(Message(as_str(role), tuple(parts), turn=f"row {number}"))
    if not messages:
        return
    yield Conversation(
        id=session,
        record=f"session {session}",
        messages=tuple(messages),
        records=used,
        problems=tuple(faults),
    )


def _content(text: Json) -> Iterator[Part]:
    """The content column: JSON of a string or of parts. Raises JsonFault."""
    value = loads(text) if isinstance(text, str) else text
    if isinstance(value, str):
        yield Text(value)
    elif isinstance(value, list):
        for item in value:
            part = as_dict(item)
            if part.get("type") == "text":
                yield Text(as_str(part.get("text")))
            elif part.get("type") == "image_url":
                yield Media("image")
            else:
                yield Data(item)
    elif value is not None:
        yield Data(value)


def _calls(text: Json) -> Iterator[Part]:
    """The tool_calls column: JSON of {id, name, arguments}, not nested. Raises JsonFault."""
    if not isinstance(text, str) or not text.strip():
        return
    for item in as_list(loads(text)):
        call = as_dict(item)
        name = as_str(call.get("name"))
        if name:
            yield ToolCall(name, call.get("arguments"), name_or_none(call.get("id")))
        else:
            yield Unparsed(dumps(item), "bad_call")
