"""Reads Crush's database (charmbracelet/crush). Source: docs/formats/crush.md.

A message has typed parts. System prompt and tools are built into the program and not logged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from builder.conversation import (
    Content,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolResult,
)
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers import declared
from builder.readers.homes import Home
from builder.readers.toolkit.chat_messages import as_harness, media_of, results_apart
from builder.readers.toolkit.history import SessionHistory
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_or_none
from builder.readers.traces.parts import read_part
from builder.sources.source import Source
from builder.sources.sqlite_file import (
    SESSIONS,
    json_column,
    read_sessions,
    rows,
    session_sizes,
    tables,
)

_NAME = "crush"

_SIZES = "SELECT session_id, sum(length(CAST(parts AS BLOB))) FROM messages GROUP BY 1"
_SESSION = "SELECT * FROM sessions WHERE id = ?"
_MESSAGES = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid"
_TITLE = "title-"
_ABORTED = frozenset({"canceled", "error"})


def _recognise(source: Source) -> str | None:
    """Claims the tables sessions, and messages with parts and a role."""
    found = tables(source)
    columns = found.get("messages", frozenset())
    known = {"session_id", "role", "parts", "created_at"} <= columns
    if known and "parent_session_id" in found.get("sessions", frozenset()):
        return "a database of sessions, and messages with parts"
    return None


def _session(source: Source, connection: sqlite3.Connection, session: str) -> Iterator[Event]:
    records = 0
    summary: str | None = None
    for row in rows(connection, _SESSION, session):
        source.count_records()
        records += 1
        summary = name_or_none(row.get("summary_message_id"))
    history = SessionHistory(_NAME, session, f"{_NAME}/{session}", f"session {session} ")
    missing = {"system", "tools"}
    for row in rows(connection, _MESSAGES, session):
        source.count_records()
        where = f"message {row.get('id')}"[:200]
        parts = json_column(row.get("parts"), where)
        if isinstance(parts, Problem):
            missing |= {"history"}
            yield parts
            continue
        records += 1
        if session.startswith(_TITLE):
            continue
        is_summary = bool(row.get("is_summary_message")) or row.get("id") == summary
        for message in _messages(row, as_dicts(parts)):
            if is_summary:  # what the model sees begins here, in the role of the user
                history.replace()
                history.put(where, "user", as_harness(message.parts))
            elif message.role == "assistant":
                model = name_or_none(row.get("model"))
                history.answer(where, message.parts, missing, model, message.untrained)
            else:
                history.append(message, where)
                # Attached texts are put behind the user's when the message is sent.
                attached = any(isinstance(part, Media) for part in message.parts)
                missing |= {"reminders"} if message.role == "user" and attached else set()
    if session.startswith(_TITLE):
        yield Ignored("title", records)
        return
    yield from history.conversations(records)


def _databases(projects: Path) -> Iterator[Path]:
    try:
        listed = loads(projects.read_bytes())
    except (OSError, JsonFault):
        return
    for project in as_dicts(listed, "projects"):
        root = as_str(project.get("path"))
        if root and "\0" not in f"{root}{project.get('data_dir')}":
            yield Path(root, as_str(project.get("data_dir")) or ".crush", "crush.db")


def _messages(row: dict[str, Json], items: list[dict[str, Json]]) -> Iterator[Message]:
    role = as_str(row.get("role"))
    parts: list[Part] = []
    reason = ""
    for item in items:
        kind, data = as_str(item.get("type")), as_dict(item.get("data"))
        if kind == "finish":
            reason = as_str(data.get("reason"))
        else:
            parts += _parts(kind, data)
    results, rest = results_apart(parts)
    if results:
        yield Message("tool", results)
    if not rest:
        return
    untrained = None
    if role == "assistant":
        untrained = "aborted" if reason in _ABORTED else finish_fault(reason)
    yield Message(role[:40], rest, untrained=untrained)


def _parts(kind: str, data: dict[str, Json]) -> list[Part]:
    if kind == "tool_result":
        return [_result(data)]
    if kind == "binary":
        return [media_of(as_str(data.get("MIMEType")))]
    return read_part(
        {**data, "type": kind or "part"}
    )  # shell_command: it is not known how it is sent


def _result(data: dict[str, Json]) -> ToolResult:
    text = as_str(data.get("content"))
    content: list[Content] = [Text(text)] if text else []
    content += [media_of(as_str(data.get("mime_type")))] if data.get("data") else []
    call_id, name = name_or_none(data.get("tool_call_id")), name_or_none(data.get("name"))
    return ToolResult(tuple(content), call_id, name, is_error=data.get("is_error") is True)


READER = declared(
    _NAME,
    recognise=_recognise,
    homes=(
        Home("Crush", "${XDG_DATA_HOME:-~/.local/share}/crush/projects.json", _databases),
        Home("Crush", "${LOCALAPPDATA:-~/AppData/Local}/crush/projects.json", _databases),
        Home("Crush", "${CRUSH_GLOBAL_DATA:-~/.local/share/crush}/projects.json", _databases),
        Home("Crush", "~/.crush/crush.db"),
        Home("Crush", "~/*/.crush/crush.db"),
        Home("Crush", "~/*/*/.crush/crush.db"),
    ),
    read=lambda source: read_sessions(source, SESSIONS, _session),
    item_sizes=lambda source: session_sizes(source, SESSIONS, _SIZES),
)
