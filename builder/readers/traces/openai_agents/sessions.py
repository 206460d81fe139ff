"""Reads the sessions that the OpenAI Agents SDK keeps in SQLite: a row for each item.

Source: docs/formats/openai-agents.md, "Sessions". Items are those of the Responses API, also with
other models. Instructions and tools are not stored.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from builder.conversation import Conversation, Event, Ignored, Json, Message
from builder.problem import Problem
from builder.readers.api.openai_responses.items import ItemReading
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none
from builder.readers.toolkit.places import span, unique_name
from builder.readers.toolkit.repeats import mark_repeats
from builder.readers.toolkit.rows import missing_records
from builder.sources.source import Source
from builder.sources.sqlite_file import json_column, read_sessions, rows, session_sizes, tables

_COLUMNS = frozenset({"id", "session_id", "message_data"})
_BRANCHES = frozenset({"session_id", "message_id", "branch_id", "sequence_number"})
_ENCRYPTED = "__enc__"
_LOCAL_ID = "__fake_id__"
"""The id of items that the SDK made of a Chat Completions message."""

_Row = tuple[str, dict[str, Json]]


def session_table(source: Source) -> str | None:
    """Returns the name of the table with a row for each item; users may choose it."""
    return next((name for name, columns in tables(source).items() if columns >= _COLUMNS), None)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _ids(source: Source) -> str:
    table = _quoted(session_table(source) or "")
    return f"SELECT DISTINCT session_id FROM {table} ORDER BY 1"  # noqa: S608 - a quoted name


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of the sessions, which are read independently."""
    table = session_table(source)
    if table is None:
        return ()
    size = "sum(length(CAST(message_data AS BLOB)))"
    query = f"SELECT session_id, {size} FROM {_quoted(table)} GROUP BY 1"  # noqa: S608 - quoted
    return session_sizes(source, _ids(source), query)


def read_sessions_of(source: Source) -> Iterator[Event]:
    """Yields the conversations of all sessions of a database."""
    yield from read_sessions(source, _ids(source), _session)


def _session(source: Source, connection: sqlite3.Connection, session: str) -> Iterator[Event]:
    """Yields the conversations of a session: one, or one for each of its branches."""
    table = _quoted(session_table(source) or "")
    query = f"SELECT id, message_data FROM {table}"  # noqa: S608 - a quoted name
    rows_by_id: dict[Json, _Row] = {}
    lost: list[Problem] = []
    hidden = 0
    for row in rows(connection, f"{query} WHERE session_id = ? ORDER BY id", session):
        source.count_records()
        where = f"session {session[:200]} item {row.get('id')}"
        item = json_column(row.get("message_data"), where)
        if isinstance(item, dict) and _ENCRYPTED in item:
            hidden += 1
        elif isinstance(item, dict):
            source.seen(where, item)
            rows_by_id[row.get("id")] = where, item
        else:
            detail = "an item that is not an object"
            lost.append(item if isinstance(item, Problem) else Problem("not_object", where, detail))
    yield from lost
    if hidden:
        detail = "items that the application encrypted"
        lost.append(Problem("encrypted_context", f"session {session[:200]}", detail, hidden))
        yield lost[-1]
    branches = _branches(source, connection, session, rows_by_id)
    counted: set[Json] = set()
    targets: set[str] = set()
    names: Counter[str] = Counter()
    for name, ids in branches:
        items = [rows_by_id[one] for one in ids if one in rows_by_id]
        new = {one for one in ids if one in rows_by_id} - counted
        counted |= new
        messages = tuple(mark_repeats(_messages(items), targets))
        if not messages:
            if new:
                yield Ignored("no_messages", len(new))
            continue
        keyed = with_session_keys("openai-agents", messages, f"{source.name}/{session}")
        yield Conversation(
            id=unique_name(f"{session}/{name}" if name else session, names),
            record=span(items[0][0], items[-1][0]),
            messages=tuple(keyed),
            model=next((one.model for one in reversed(messages) if one.model), None),
            records=len(new),
            problems=missing_records(lost),
        )
    if left := len(rows_by_id) - len(counted):
        yield Ignored("not_in_conversation", left)


def _branches(
    source: Source, connection: sqlite3.Connection, session: str, rows_by_id: dict[Json, _Row]
) -> list[tuple[str, list[Json]]]:
    """Returns (name, ids of items in order) of each branch, the latest first."""
    table = next((name for name, has in tables(source).items() if has >= _BRANCHES), None)
    if table is None:
        return [("", list(rows_by_id))]
    query = (
        f"SELECT branch_id, message_id FROM {_quoted(table)} WHERE session_id = ?"  # noqa: S608
        " ORDER BY branch_id, sequence_number"
    )
    branches: dict[str, list[Json]] = {}
    for row in rows(connection, query, session):
        branches.setdefault(str(row.get("branch_id")), []).append(row.get("message_id"))
    order = {one: at for at, one in enumerate(rows_by_id)}
    latest = sorted(branches, key=lambda name: -max(order.get(one, -1) for one in branches[name]))
    several = len(branches) > 1
    return [(name if several else "", branches[name]) for name in latest] or [
        ("", list(rows_by_id))
    ]


def _messages(items: Sequence[_Row]) -> Iterator[Message]:
    """Yields the messages; items of one response are one answer."""
    for (response, answered), group in groupby(items, lambda one: _response(one[1])):
        listed = list(group)
        messages = ItemReading().read([_with_thought(item) for _, item in listed]).messages
        provider = as_dict(listed[0][1].get("provider_data"))
        model = name_or_none(provider.get("model"))
        for message in messages:
            is_answer = answered and message.role == "assistant"
            turn = (response or listed[0][0]) if is_answer else None
            yield replace(message, turn=turn, model=model) if is_answer else message


def _response(item: dict[str, Json]) -> tuple[str | None, bool]:
    """Returns the id of an item's response, and whether the model wrote the item."""
    kind, role = as_str(item.get("type")), item.get("role", "assistant")
    response = name_or_none(as_dict(item.get("provider_data")).get("response_id"))
    return response, role == "assistant" and not kind.endswith("_output")


def _with_thought(item: dict[str, Json]) -> dict[str, Json]:
    """Returns the item; the thought of a Chat Completions model stands in its summary."""
    is_local = item.get("type") == "reasoning" and item.get("id") == _LOCAL_ID
    if not is_local or as_list(item.get("content")):
        return item
    return {**item, "content": item.get("summary"), "summary": []}
