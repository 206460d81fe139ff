"""LangChain and LangGraph."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from builder.conversation import Conversation, Event, Ignored, Json, Message, Used, unknown_part
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.comparison import cut_off, with_request_keys
from builder.readers.toolkit.history import upwards
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_of, one_or_many
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import SeparateMessages, collected, not_object
from builder.readers.traces.any_vendor import fault_of, tools_of
from builder.readers.traces.parts import (
    CLASS,
    REMOVE_ALL,
    as_fields,
    decoded,
    is_kind,
    is_message,
    joined_chunks,
    lc_message,
)
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import SQLITE_ERRORS, guarded, listed, open_sqlite, tables

MAX_DEPTH = 100

_SNAPSHOT = 7
"""The extension type of a channel's whole value (langgraph.channels.delta)."""


class MsgpackFault(ValueError):
    """Bytes that are not MessagePack, are nested too deeply, or have no equivalent in JSON."""


def unpack(data: bytes, depth: int = 0) -> Json:
    """Returns the only value in the bytes, which are inside others at a depth.

    Raises MsgpackFault.
    """
    import msgpack  # type: ignore[import-untyped]  # noqa: PLC0415 - only for checkpoints

    def plain(value: Any, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise MsgpackFault(f"nested deeper than {MAX_DEPTH}")
        match value:
            case dict():
                return {str(key): plain(item, depth + 1) for key, item in value.items()}
            case list():
                return [plain(item, depth + 1) for item in value]
            case bytes():
                return {CLASS: "bytes", "size": len(value)}
            case msgpack.ExtType(code=code, data=inner):
                return _extension(code, inner, depth)
            case float() if not math.isfinite(value):
                raise MsgpackFault(f"{value} is not a JSON number")
        return value if isinstance(value, str | int | float | None) else str(value)

    try:
        value = msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, TypeError) as error:  # TypeError: a list as a key
        raise MsgpackFault(str(error) or type(error).__name__) from None
    return plain(value, depth)


def _extension(code: int, data: bytes, depth: int) -> Json:
    """Returns an object: its arguments and the name of its class, or its only argument.

    LangGraph's extension types contain [module, class, arguments, …]; others are not decoded.
    """
    if not 0 <= code <= 5 and code != _SNAPSHOT:
        return {CLASS: f"extension {code}", "size": len(data)}
    parts = unpack(data, depth + 1)
    if code == _SNAPSHOT:
        return parts
    if not isinstance(parts, list) or len(parts) < 3:
        raise MsgpackFault(f"extension {code} names no class")
    if code in (0, 1, 3):  # a constructor or method with one argument, or some by position
        return parts[2]
    arguments = parts[2] if isinstance(parts[2], dict) else {"value": parts[2]}
    return {**arguments, CLASS: str(parts[1])[:80]}


Fields = dict[str, Json]

_LISTS = ("messages", "chat_history", "history")
_CONTAINERS = ("values", "channel_values", "checkpoint", "state", "kwargs", "output", "data")
_NAMES = ("model_name", "model", "model_id")
_FINISH = ("finish_reason", "stop_reason", "finishReason", "done_reason", "status")
_MAX_CONTAINERS = 3


def _messages_in(value: Json, depth: int = 0) -> list[Json] | None:
    """Returns a value's list of messages: itself, or inside a state; None if it has none."""
    value = decoded(value)
    if isinstance(value, list):
        items = [decoded(item) for item in value]
        return items if items and is_message(items[0]) else None
    if not isinstance(value, dict) or depth > _MAX_CONTAINERS or is_message(value):
        return None
    for key in _LISTS:
        if key in value and (messages := _messages_in(value[key], _MAX_CONTAINERS)) is not None:
            return messages
    for key in _CONTAINERS:
        inner = value.get(key)
        if isinstance(inner, dict) and (messages := _messages_in(inner, depth + 1)) is not None:
            return messages
    return None


def _final_messages(items: Sequence[Json]) -> tuple[list[Fields], list[Fields]]:
    """Returns the messages that remain at the end of a list, and those that did not.

    Chunks are joined. A message replaces an earlier one with the same id; a RemoveMessage removes
    it.
    """
    kept: list[Fields] = []
    removed: list[Fields] = []
    for fields in joined_chunks(list(items)):
        name = name_of(fields, "id")
        kind = fields.get("type")
        at = next((n for n, one in enumerate(kept) if name and one.get("id") == name), None)
        if kind in ("remove", "RemoveMessage"):
            if name == REMOVE_ALL:
                removed += kept
                kept = []
            elif at is not None:
                removed.append(kept.pop(at))
        elif at is None:
            kept.append(fields)
        else:
            if kept[at] != fields:
                removed.append(kept[at])
            kept[at] = fields
    return kept, removed


def conversations(
    items: Sequence[Json],
    name: str,
    where: str,
    records: int,
    *,
    tools: tuple[Json, ...] | None = None,
    problems: tuple[Problem, ...] = (),
) -> Iterator[Conversation | Problem]:
    """Yields the conversation of a list, and one of the messages with calls removed from it."""
    kept, removed = _final_messages(items)
    messages = [message for fields in kept if (message := _message(fields))]
    if not messages:
        yield Problem("no_messages", where, "no message has any content", records)
        return
    yield Conversation(
        id=name,
        record=where,
        messages=with_request_keys(messages),
        tools=tools,
        model=_model(kept),
        records=records,
        problems=problems,
    )
    remaining = {name for fields in kept for name in _call_ids(fields)}
    lost = [fields for fields in removed if set(_call_ids(fields)) - remaining]
    if lost_messages := [message for fields in lost if (message := _message(fields))]:
        detail = "messages with calls were removed or replaced later"
        yield Conversation(
            id=f"{name}~removed",
            record=where,
            messages=with_request_keys(lost_messages),
            tools=tools,
            problems=(Problem("rewound", where, detail, records=0),),
        )


def _message(fields: Fields) -> Message | None:
    if not is_kind(fields):
        return Message("user", (unknown_part(as_str(fields.get("type")) or "message"),))
    message = lc_message(fields)
    if message is None or not message.parts:
        return None
    meta = as_dict(fields.get("response_metadata"))
    if message.role == "assistant":
        # Messages with ids of their own are answers of their own, also one after the other.
        message = replace(message, turn=name_of(fields, "id"), model=name_of(meta, *_NAMES))
    fault = next((code for key in _FINISH if (code := fault_of(meta.get(key)))), None)
    return cut_off(message, fault) if fault and message.role == "assistant" else message


def _call_ids(fields: Fields) -> list[str]:
    listed = as_list(as_fields(fields).get("tool_calls"))
    return [name for item in listed if (name := name_of(as_dict(item), "id"))]


def _model(kept: Sequence[Fields]) -> str | None:
    for fields in reversed(kept):
        meta = as_dict(fields.get("response_metadata"))
        if name := name_of(meta, *_NAMES):
            return name
    return None


_COLUMNS = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint"})
_WRITES = _COLUMNS - {"checkpoint"} | {"channel", "value", "task_id", "idx"}
_MESSAGES = "messages"
_SIZES = (
    "SELECT sum(length(CAST(checkpoint AS BLOB))) FROM checkpoints"
    " GROUP BY thread_id, checkpoint_ns ORDER BY thread_id, checkpoint_ns"
)
_ROWS = (
    "SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints"
    " WHERE thread_id IS ? AND checkpoint_ns IS ? ORDER BY checkpoint_id"
)
_STATE = (
    "SELECT type, checkpoint FROM checkpoints"
    " WHERE thread_id IS ? AND checkpoint_ns IS ? AND checkpoint_id IS ?"
)
_WRITTEN = (
    "SELECT type, value FROM writes WHERE thread_id IS ? AND checkpoint_ns IS ?"
    " AND checkpoint_id IS ? AND channel = 'messages' ORDER BY"
)
_THREADS = (
    "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints ORDER BY thread_id, checkpoint_ns"
)
_OWN_WRITES = "SELECT count(*) FROM writes WHERE thread_id IS ? AND checkpoint_ns IS ?"
_OTHER_WRITES = (
    "SELECT count(*) FROM writes AS w WHERE NOT EXISTS (SELECT 1 FROM checkpoints AS c"
    " WHERE c.thread_id IS w.thread_id AND c.checkpoint_ns IS w.checkpoint_ns)"
)


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A checkpoint without its state: the key of its thread, its id and its parent's id."""

    thread: tuple[object, object]
    id: object
    parent: object

    @property
    def name(self) -> str:
        """Returns the name of the thread."""
        return f"thread {_display_text(self.thread[0])} {_display_text(self.thread[1])}".rstrip()

    @property
    def where(self) -> str:
        return f"{self.name} checkpoint {_display_text(self.id)}"


def _display_text(value: object) -> str:
    return "".join(char for char in str(value) if char.isprintable())[:200]


class _CheckpointReader:
    """Reads a database of checkpoints; `tables` are its columns by table."""

    def __init__(
        self, source: Source, connection: sqlite3.Connection, tables: dict[str, frozenset[str]]
    ) -> None:
        self.source = source
        self.connection = connection
        self.writes = tables.get("writes", frozenset())
        self.has_writes_of_threads = self.writes >= _WRITES
        path = "task_path, " if "task_path" in self.writes else ""  # not in older versions
        self.written = f"{_WRITTEN} {path}task_id, idx"
        self.replayed: dict[tuple[object, ...], int] = {}  # writes that made a state
        self.names: Counter[str] = Counter()
        self.parents: set[object] = set()  # ids of checkpoints that others continue

    def read(self) -> Iterator[Event]:
        """Yields the conversations of all threads. Raises sqlite3.Error."""
        threads = self.connection.execute(_THREADS).fetchall()
        written = 0
        for thread in self.source.items_of_chunk([*threads, None]):
            written += self._written_by(thread)
            if thread is not None:
                rows = self.connection.execute(_ROWS, thread)
                yield from self._thread([_Checkpoint(thread, *row) for row in rows])
        if self.writes:  # the next state contains what a step wrote
            self.source.count_records(written)
            used = sum(self.replayed.values())
            if written > used:
                yield Ignored("write", written - used)
            if used:
                yield Used(used)

    def _written_by(self, thread: tuple[object, object] | None) -> int:
        """Returns the number of writes of a thread; None: of all threads without checkpoints."""
        if not self.writes or (thread is not None and not self.has_writes_of_threads):
            return 0
        if thread is not None:
            writes = self.connection.execute(_OWN_WRITES, thread)
        else:
            query = _OTHER_WRITES if self.has_writes_of_threads else "SELECT count(*) FROM writes"
            writes = self.connection.execute(query)
        (count,) = writes.fetchone()
        return int(count)

    def _thread(self, rows: list[_Checkpoint]) -> Iterator[Event]:
        """Yields the conversations of a thread: one path to each state without children."""
        by_id = {row.id: row for row in rows}
        self.parents = {row.parent for row in rows}
        children = Counter(row.parent for row in rows)
        # The messages of states with several children, since a fork may contain only new ones.
        forks: dict[object, list[Fields]] = {row.id: [] for row in rows if children[row.id] > 1}
        seen: set[_Checkpoint] = set()
        # The last state comes first and owns the states that it shares with forks. Going through
        # all rows afterwards adds those whose parents form a cycle.
        for leaf in [*(row for row in reversed(rows) if not children[row.id]), *reversed(rows)]:
            path = [*upwards(leaf, lambda row: by_id.get(row.parent), until=seen)]
            seen.update(path)
            if path:
                yield from self._path(path[::-1], forks, leaf is rows[-1])

    def _path(
        self, path: list[_Checkpoint], forks: dict[object, list[Fields]], last: bool
    ) -> Iterator[Event]:
        """Yields the conversations of a path: its last state, and states that lost messages."""
        before: list[Fields] = forks.get(path[0].parent, [])
        owner: _Checkpoint | None = None
        records = 0
        for row in path:
            state = self._state(row, before)
            if isinstance(state, Problem):
                yield state
                continue
            if owner is not None and state[: len(before)] != before:
                name = unique_name(owner.where, self.names)
                yield from _ended(before, owner, name, records, rewound=_is_edited(before, state))
                records = 0
            before, owner = state, row
            records += 1
            if row.id in forks:
                forks[row.id] = state
        pending = self._pending(path[-1], before)
        if isinstance(pending, Problem):
            yield pending
        elif owner is not None and pending is not None:
            if pending[: len(before)] != before:
                name = unique_name(f"{owner.where} before", self.names)
                yield from _ended(before, owner, name, records, rewound=_is_edited(before, pending))
                records = 0
            before = pending
        if owner is not None:
            name = unique_name(owner.name if last else owner.where, self.names)
            yield from _ended(before, owner, name, records, rewound=not last)

    def _state(self, row: _Checkpoint, before: list[Fields]) -> list[Fields] | Problem:
        """Returns the messages of a state; [] if it has none.

        If a state has only a version of the channel, the messages that the previous step wrote into
        it are added to those of the previous state, `before`.
        """
        stored = self.connection.execute(_STATE, (*row.thread, row.id)).fetchone()
        self.source.count_records()
        if stored is None:  # a corrupt index
            return Problem("unreadable", row.where, "the row of the checkpoint was not found")
        kind, blob = stored
        state = _unpacked(kind, blob, row.where)
        if isinstance(state, Problem):
            return state
        channels = as_dict(state, "channel_values")
        versions = as_dict(state, "channel_versions")
        if _MESSAGES in versions and _MESSAGES not in channels:
            written = self._written(row, row.parent)
            return written if isinstance(written, Problem) else _applied(before, written)
        named = [_MESSAGES, "__root__", *sorted(key for key in channels if key[:2] != "__")]
        lists = (_messages_in(channels.get(name)) for name in named)
        return [as_fields(item) for item in next((listed for listed in lists if listed), [])]

    def _pending(self, row: _Checkpoint, before: list[Fields]) -> list[Fields] | Problem | None:
        """Returns the messages after the last checkpoint of a path, whose step wrote some more.

        None if it wrote none. The writes of a checkpoint that others continue are in those.
        """
        if not self.has_writes_of_threads or row.id in self.parents:
            return None
        written = self._written(row, row.id)
        if isinstance(written, Problem):
            return replace(written, records=0)
        return _applied(before, written) if written else None

    def _written(self, row: _Checkpoint, step: object) -> list[Fields] | Problem:
        """Returns the messages that the step of a checkpoint wrote, in order of its tasks."""
        if not self.has_writes_of_threads:
            return []
        key = (*row.thread, step)
        messages: list[Fields] = []
        rows = self.connection.execute(self.written, key).fetchall()
        for kind, value in rows:
            written = _unpacked(kind, value, f"{row.where} writes")
            if isinstance(written, Problem):
                return written
            items = written if isinstance(written, list) else [written]
            messages += [as_fields(item) for item in items]
        self.replayed[key] = len(rows)
        return messages


def _unpacked(kind: object, blob: object, where: str) -> Json | Problem:
    try:
        if kind == "msgpack" and isinstance(blob, bytes):
            return unpack(blob)
        if kind in ("json", None) and isinstance(blob, bytes | str):
            return loads(blob)
    except MsgpackFault as fault:
        return Problem("bad_msgpack", where, str(fault))
    except JsonFault as fault:
        return fault.at(where)
    return Problem("unreadable", where, f"serialised as {_display_text(kind)}")


def _applied(before: list[Fields], written: Sequence[Fields]) -> list[Fields]:
    """Returns the messages after those that a step wrote; an Overwrite replaces all of them."""
    messages: list[Json] = list(before)
    for item in written:
        if item.get(CLASS) == "Overwrite":
            messages = [as_fields(one) for one in one_or_many(item.get("value"))]
        else:
            messages.append(item)
    return _final_messages(messages)[0]


def _is_edited(before: list[Fields], after: list[Fields]) -> bool:
    now = {name: one for one in after if isinstance(name := one.get("id"), str)}
    old = (one for one in before if isinstance(one.get("id"), str))
    return any(now.get(str(one["id"]), one) != one for one in old)


def _ended(
    messages: list[Fields], row: _Checkpoint, name: str, records: int, *, rewound: bool
) -> Iterator[Event]:
    """Yields the conversation of a state that no other state continues."""
    if not messages:
        yield Ignored("no_messages", records)
        return
    detail = "a later state of the thread took this back"
    problems = (Problem("rewound", row.where, detail, records=0),) if rewound else ()
    yield from conversations(list(messages), name, row.where, records, problems=problems)


_HISTORY_COLUMNS = frozenset({"id", "session_id", "message"})
_SESSIONS = ("session_id", "SessionId", "sessionId", "thread_id")
_ROW_NAMES = (*_SESSIONS, "id", "name")
_ROW_MESSAGES = ("message", "History", "history", "messages")
_PEEKED = 20
_OTHERS = frozenset({"user", "assistant", "tool_result"})
"""Types of the rows of agents, which LangChain's messages do not have; both have "system"."""


def _recognise(source: Source) -> str | None:
    """Claims LangChain messages, single or in lists, states or databases."""
    columns = tables(source)
    if columns.get("checkpoints", frozenset()) >= _COLUMNS:
        return "table checkpoints of LangGraph"
    if columns.get("message_store", frozenset()) >= _HISTORY_COLUMNS:
        return "table message_store of a LangChain chat history"
    kinds = {as_str(value.get("type")) for value in source.peek.objects}
    for value in source.peek.records[:_PEEKED]:
        item = decoded(value)
        if is_message(item) and kinds.isdisjoint(_OTHERS):
            return "LangChain messages"
        if _messages_in(item) is not None:
            return "lists of LangChain messages"
        if isinstance(item, dict) and _of_session(item) is not None:
            return "LangChain messages by session"
    return None


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of a checkpoint database's independent threads, and 0 for all other rows.

    A chat history stays whole, since the rows of its sessions are interleaved.
    """
    with suppress(*SQLITE_ERRORS):
        if "checkpoints" in tables(source):
            with open_sqlite(source) as connection:
                return [*(size or 0 for (size,) in listed(connection, _SIZES)), 0]
    return ()


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
            yield from _CheckpointReader(source, connection, columns).read()
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
    session = next((row[key] for key in _SESSIONS if isinstance(row.get(key), str | int)), None)
    if session is None:
        return None
    for key in _ROW_MESSAGES:
        value = decoded(row.get(key))
        if is_message(value):
            return str(session), [value]
        if (listed := _messages_in(value)) is not None:
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
        elif (listed := _messages_in(value)) is not None:
            row = value if isinstance(value, dict) else {}
            name = unique_name((name_of(row, *_ROW_NAMES) or record.where)[:200], self.names)
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


READER = declared("langchain", recognise=_recognise, read=read, item_sizes=item_sizes)
