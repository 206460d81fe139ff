"""LangGraph's checkpoints in sqlite: the messages of a thread's states.

Source: langchain-dumps.md "LangGraph checkpoints"; langgraph.checkpoint.sqlite for the tables. A
state holds all its messages, so the last one of a thread is its conversation; a state that none
goes on from (a fork, messages taken out or edited since) is a conversation of its own.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from builder.conversation import Event, Ignored, Json
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers._lc_lists import conversations, messages_in
from builder.readers._lc_messages import as_fields
from builder.readers._messages import unique
from builder.readers._msgpack import MsgpackFault, unpack
from builder.readers._narrow import as_dict
from builder.source import Source

COLUMNS = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint"})
_STATE = (
    "SELECT type, checkpoint FROM checkpoints"
    " WHERE thread_id IS ? AND checkpoint_ns IS ? AND checkpoint_id IS ?"
)


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A checkpoint without its state: its key in the table, and its parent's id."""

    key: tuple[object, object, object]
    parent: object

    @property
    def thread(self) -> str:
        thread, space, _ = map(_shown, self.key)
        return f"thread {thread} {space}".rstrip()

    @property
    def where(self) -> str:
        return f"{self.thread} checkpoint {_shown(self.key[2])}"


def _shown(value: object) -> str:
    return "".join(char for char in str(value) if char.isprintable())[:200]


def read_store(source: Source, connection: sqlite3.Connection) -> Iterator[Event]:
    """The conversations of all threads. Raises sqlite3.Error."""
    threads = connection.execute(
        "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints"
        " ORDER BY thread_id, checkpoint_ns"
    ).fetchall()
    names: Counter[str] = Counter()
    for thread in threads:
        rows = [
            _Checkpoint((*thread, name), parent)
            for name, parent in connection.execute(
                "SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints"
                " WHERE thread_id IS ? AND checkpoint_ns IS ? ORDER BY checkpoint_id",
                thread,
            )
        ]
        yield from _thread(source, connection, rows, names)
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'writes'").fetchone()
    if found:  # what steps wrote: the next state holds it
        (count,) = connection.execute("SELECT count(*) FROM writes").fetchone()
        source.count_records(count)
        yield Ignored("write", count)


def _thread(
    source: Source,
    connection: sqlite3.Connection,
    rows: list[_Checkpoint],
    names: Counter[str],
) -> Iterator[Event]:
    """The conversations of one thread: the path to each state that no other names as its parent."""
    by_id = {row.key[2]: row for row in rows}
    parents = {row.parent for row in rows}
    seen: set[object] = set()
    # The last first: what a fork shares with it is the thread's own. The rest are parents in a
    # circle.
    for leaf in [*(row for row in reversed(rows) if row.key[2] not in parents), *reversed(rows)]:
        path: list[_Checkpoint] = []
        node: _Checkpoint | None = leaf
        while node is not None and node.key[2] not in seen:
            seen.add(node.key[2])
            path.append(node)
            node = by_id.get(node.parent)
        if path:
            yield from _path(source, connection, path[::-1], names, leaf is rows[-1])


def _path(
    source: Source,
    connection: sqlite3.Connection,
    path: list[_Checkpoint],
    names: Counter[str],
    last: bool,
) -> Iterator[Event]:
    """The conversations of a path: of its last state, and of each that lost messages after."""
    before: list[Json] = []
    owner: _Checkpoint | None = None
    held = 0
    for row in path:
        state = _messages(source, connection, row)
        if isinstance(state, Problem):
            yield state
            continue
        if owner is not None and state[: len(before)] != before:
            name = unique(owner.where, names)
            yield from _ended(before, owner, name, held, rewound=_is_edited(before, state))
            held = 0
        before, owner = state, row
        held += 1
    if owner is not None:
        name = unique(owner.thread if last else owner.where, names)
        yield from _ended(before, owner, name, held, rewound=not last)


def _messages(
    source: Source, connection: sqlite3.Connection, row: _Checkpoint
) -> list[Json] | Problem:
    """The messages of a state; [] if it has none."""
    kind, blob = connection.execute(_STATE, row.key).fetchone()
    source.count_records()
    try:
        if kind == "msgpack" and isinstance(blob, bytes):
            state = unpack(blob)
        elif kind in ("json", None) and isinstance(blob, bytes | str):
            state = loads(blob)
        else:
            return Problem("unreadable", row.where, f"serialised as {_shown(kind)}")
    except MsgpackFault as fault:
        return Problem("bad_msgpack", row.where, str(fault))
    except JsonFault as fault:
        return fault.at(row.where)
    channels = as_dict(as_dict(state).get("channel_values"))
    named = ["messages", "__root__", *sorted(key for key in channels if key[:2] != "__")]
    return next((found for name in named if (found := messages_in(channels.get(name)))), [])


def _is_edited(before: list[Json], after: list[Json]) -> bool:
    """Whether a message was replaced by another of its id, so that it was taken back."""
    now = {name: one for one in map(as_fields, after) if isinstance(name := one.get("id"), str)}
    old = (one for one in map(as_fields, before) if isinstance(one.get("id"), str))
    return any(now.get(str(one["id"]), one) != one for one in old)


def _ended(
    messages: list[Json], row: _Checkpoint, name: str, held: int, *, rewound: bool
) -> Iterator[Event]:
    """The conversation of a state that no other goes on from."""
    if not messages:
        yield Ignored("no_messages", held)
        return
    detail = "a later state of the thread took this back"
    problems = (Problem("rewound", row.where, detail, records=0),) if rewound else ()
    yield from conversations(messages, name, row.where, held, problems=problems)
