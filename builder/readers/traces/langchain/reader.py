"""Reads LangChain messages in all their serialisations, and LangGraph's states and checkpoints.

Source: docs/formats/langchain.md. A record is an element of a list, a line, a document, or a row of
a database. Single messages form one conversation, or one for each session that they name.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from builder.conversation import Event, Json
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.narrow import as_str, name_of
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import SeparateMessages, collected, not_object
from builder.readers.traces.any_vendor.parts import decoded
from builder.readers.traces.any_vendor.requests import tools_of
from builder.readers.traces.langchain import langgraph_store
from builder.readers.traces.langchain.langgraph_store import COLUMNS, CheckpointReader
from builder.readers.traces.langchain.lists import conversations, messages_in
from builder.readers.traces.langchain.messages import is_message
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import guarded, open_sqlite, tables

_HISTORY_COLUMNS = frozenset({"id", "session_id", "message"})
_SESSIONS = ("session_id", "SessionId", "sessionId", "thread_id")
_NAMES = (*_SESSIONS, "id", "name")
_MESSAGES = ("message", "History", "history", "messages")
_PEEKED = 20
_OTHERS = frozenset({"user", "assistant", "tool_result"})
"""Types of the rows of agents, which LangChain's messages do not have; both have "system"."""


def recognise(source: Source) -> str | None:
    """Claims LangChain messages, single or in lists, states or databases."""
    columns = tables(source)
    if columns.get("checkpoints", frozenset()) >= COLUMNS:
        return "table checkpoints of LangGraph"
    if columns.get("message_store", frozenset()) >= _HISTORY_COLUMNS:
        return "table message_store of a LangChain chat history"
    kinds = {as_str(value.get("type")) for value in source.peek.objects}
    for value in source.peek.records[:_PEEKED]:
        item = decoded(value)
        if is_message(item) and kinds.isdisjoint(_OTHERS):
            return "LangChain messages"
        if messages_in(item) is not None:
            return "lists of LangChain messages"
        if isinstance(item, dict) and _of_session(item) is not None:
            return "LangChain messages by session"
    return None


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of a checkpoint database's threads.

    A chat history stays whole, since the rows of its sessions are interleaved.
    """
    return langgraph_store.item_sizes(source) if "checkpoints" in tables(source) else ()


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of the source, and the outcome of its other records."""
    columns = tables(source)
    if source.peek.kind == "sqlite":
        yield from guarded(source, _database(source, columns))
        return
    yield from collected(source.records(), _Collector(), (dict, list, str))


def _database(source: Source, columns: dict[str, frozenset[str]]) -> Iterator[Event]:
    with open_sqlite(source) as connection:
        if "checkpoints" in columns:
            yield from CheckpointReader(source, connection, columns).read()
        else:
            yield from _histories(source, connection)


def _histories(source: Source, connection: sqlite3.Connection) -> Iterator[Event]:
    """Yields the sessions of SQLChatMessageHistory, with the JSON text of a message in each row."""
    collector = _Collector()
    query = "SELECT id, session_id, message FROM message_store ORDER BY id"
    for row, session, text in connection.execute(query):
        source.count_records()
        where = f"message_store {row}"
        try:
            value = loads(text) if isinstance(text, str | bytes) else None
        except JsonFault as fault:
            yield fault.at(where)
            continue
        record = source.seen(where, {"session_id": session, "message": value})
        yield from collector.take(record)
    yield from collector.rest()


def _of_session(row: dict[str, Json]) -> tuple[str, list[Json]] | None:
    """Returns the session and the messages of a chat history's row; None for any other value."""
    session = next((row[key] for key in _SESSIONS if isinstance(row.get(key), str | int)), None)
    if session is None:
        return None
    for key in _MESSAGES:
        value = decoded(row.get(key))
        if is_message(value):
            return str(session), [value]
        if (listed := messages_in(value)) is not None:
            return str(session), listed
    return None


class _Collector:
    """Collects single messages into conversations; a list of messages is a conversation already."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.sessions: dict[str, SeparateMessages] = {}

    def take(self, record: Record) -> Iterator[Event]:
        """Reads one record."""
        value = decoded(record.value)
        if is_message(value):
            self._collect("messages", record.where, [value])
        elif (listed := messages_in(value)) is not None:
            row = value if isinstance(value, dict) else {}
            name = unique_name((name_of(row, *_NAMES) or record.where)[:200], self.names)
            yield from conversations(listed, name, record.where, 1, tools=tools_of(row))
        elif isinstance(value, dict) and (session := _of_session(value)) is not None:
            self._collect(f"session {session[0][:200]}", record.where, session[1])
        elif isinstance(value, dict):
            yield Problem("unknown_shape", record.where, "an object without LangChain messages")
        else:
            yield not_object(record, "a record is ")

    def _collect(self, name: str, where: str, items: list[Json]) -> None:
        self.sessions.setdefault(name, SeparateMessages(where)).add(where, items)

    def rest(self) -> Iterator[Event]:
        """Yields the conversations of messages that are separate records."""
        for name, session in self.sessions.items():
            unique = unique_name(name, self.names)
            yield from conversations(session.items, unique, session.place, session.records)


READER = Reader(
    name="langchain",
    summary=(
        "LangChain messages (messages_to_dict, dumpd, model_dump, pairs), chat histories, "
        "LangGraph states and sqlite checkpoints"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    read=read,
    item_sizes=item_sizes,
)
