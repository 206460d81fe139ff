"""Reads Kiro's CLI and IDE, and Amazon Q Developer's CLI, from which they descend.

Source: docs/formats/kiro.md. The CLI writes JSONL lines of version, kind and data; older versions
and Amazon Q keep a database. The IDE writes JSONL events; older versions' files are read on demand.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event, Ignored, Json
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.kiro import chat, database, events, session
from builder.readers.homes import APPDATA, Home
from builder.sources.source import Source

NAME = "kiro"

_KINDS = (
    (session.is_line, "lines with version, kind and data.message_id"),
    (database.is_value, "a conversation with history of user and assistant"),
    (session.is_state, "the state of a session"),
    (events.is_event, "events with id, timestamp and payload"),
    (events.is_description, "the description of a session"),
)
_OLD = (
    (chat.is_chat, "a chat of Kiro's IDE (executionId, chat)"),
    (chat.is_workspace_session, "a session of a workspace of Kiro's IDE (history, executionId)"),
    (chat.is_execution, "executions of Kiro's IDE (actions)"),
)


def recognise(source: Source) -> str | None:
    """Claims lines and events of sessions, their state, databases, and the IDE's older files."""
    if source.peek.kind == "sqlite":
        return database.has_tables(source)
    for value in source.peek.objects:
        for is_kind, found in (*_KINDS, *_OLD):
            if is_kind(value):
                return found
    return None


def unsettled(source: Source) -> str | None:
    """Returns why the meaning of the IDE's older files is not settled."""
    if source.peek.kind == "json" and any(map(_is_old, source.peek.objects)):
        return "Kiro's IDE before 1.0 logs neither the calls of the model nor all its answers"
    return None


def _is_old(value: dict[str, Json]) -> bool:
    return any(is_kind(value) for is_kind, _ in _OLD)


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session or of a database."""
    found = source.peek.objects
    if source.peek.kind == "sqlite":
        yield from database.read_database(source, NAME)
    elif any(map(database.is_value, found)):
        yield from database.read_values(source, NAME)
    elif any(map(_is_old, found)):
        yield from chat.read_chats(source, NAME)
    elif any(map(events.is_description, found)):
        for record in source.records():
            yield record if isinstance(record, Problem) else Ignored("state")
    elif any(map(events.is_event, found)):
        yield from events.read_events(source, NAME)
    else:
        yield from session.read_session(source, NAME)


READER = Reader(
    name=NAME,
    summary=(
        "Kiro: its CLI's sessions (JSONL with version, kind and data), its database and Amazon "
        "Q's (conversations_v2, conversations), its IDE's sessions (JSONL of id, timestamp and "
        "payload); chats of older IDEs on demand"
    ),
    evidence=("files", "parsers"),
    recognise=recognise,
    unsettled=unsettled,
    homes=(
        Home("Kiro", "${KIRO_HOME:-~/.kiro}/sessions"),
        Home("Kiro", "${XDG_DATA_HOME:-~/.local/share}/kiro-cli/data.sqlite3"),
        Home("Kiro", "~/Library/Application Support/kiro-cli/data.sqlite3"),
        Home("Kiro", "${LOCALAPPDATA:-~/AppData/Local}/kiro-cli/data.sqlite3"),
        Home("Kiro IDE", f"{APPDATA}/Kiro/User/globalStorage/kiro.kiroagent/workspace-sessions"),
        Home("Amazon Q", "${XDG_DATA_HOME:-~/.local/share}/amazon-q/data.sqlite3"),
        Home("Amazon Q", "~/Library/Application Support/amazon-q/data.sqlite3"),
    ),
    is_agent=True,
    read=read,
)
