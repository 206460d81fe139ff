"""Reads LangGraph's checkpoints in SQLite: the messages of a thread's states.

Source: docs/formats/langchain.md "Checkpoints"; langgraph.checkpoint.sqlite for the tables,
langgraph.channels.delta for states whose messages are only in the table of writes. A state contains
all its messages, so the last state of a thread is its conversation. A state that no other continues
(a fork, or messages that were removed or edited later) is a separate conversation.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder.conversation import Event, Ignored, Json, Used
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers.toolkit.links import upwards
from builder.readers.toolkit.narrow import as_dict, one_or_many
from builder.readers.toolkit.places import unique_name
from builder.readers.traces.langchain.lists import (
    Fields,
    conversations,
    final_messages,
    messages_in,
)
from builder.readers.traces.langchain.messages import as_fields
from builder.readers.traces.langchain.msgpack import CLASS, MsgpackFault, unpack
from builder.sources.source import Source
from builder.sources.sqlite_file import SQLITE_ERRORS, listed, open_sqlite

COLUMNS = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint"})
_WRITES = COLUMNS - {"checkpoint"} | {"channel", "value", "task_id", "idx"}
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


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of the threads, which are independent, and 0 for all other rows."""
    try:
        with open_sqlite(source) as connection:
            return [*(size or 0 for (size,) in listed(connection, _SIZES)), 0]
    except SQLITE_ERRORS:
        return ()


class CheckpointReader:
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
        lists = (messages_in(channels.get(name)) for name in named)
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
    """Deserialises a value."""
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
    return final_messages(messages)[0]


def _is_edited(before: list[Fields], after: list[Fields]) -> bool:
    """Returns whether a message was replaced by another one with its id."""
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
