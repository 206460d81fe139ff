"""Reads Hermes Agent's database, its older session files and its trajectories.

Source: docs/formats/hermes-agent.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Conversation,
    Event,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.datasets import common_rows
from builder.readers.toolkit.chat_messages import as_harness, assistant_parts, content
from builder.readers.toolkit.comparison import CallKeys
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_int,
    as_list,
    as_str,
    command_failed,
    name_of,
    name_or_none,
    tuple_or_none,
)
from builder.readers.toolkit.places import Segments, span
from builder.readers.toolkit.rows import (
    missing_records,
    objects,
    outcome_beside,
    outcome_of_records,
)
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import (
    SESSIONS,
    json_column,
    read_sessions,
    rows,
    session_sizes,
    tables,
)

_STRUCTURED = ("\x00json:", "\x01json:")
"""The prefix of JSON content in a text column."""
_REVIEW = "Review the conversation above and "
_SKILLS, _MEMORY = "update the skill library", "saving to memory"
"""Texts of prompts by which the program makes the model review a conversation beside it."""
_DELEGATED = "[ASYNC DELEGATION BATCH COMPLETE"
"""The beginning of a message in which the program hands over results of sub-agents."""


def _recognise(source: Source) -> str | None:
    """Claims the database by its tables, session files and trajectories by their shape."""
    if source.peek.kind == "sqlite":
        columns = tables(source)
        if {"session_id", "role", "tool_calls", "tool_name", "timestamp"} <= columns.get(
            "messages", frozenset()
        ) and "system_prompt" in columns.get("sessions", frozenset()):
            return "a database of sessions with system_prompt and messages with tool_name"
        return None
    for item in source.peek.objects:
        if _is_export(item):
            return "an archival export (producer hermes, session_revision_hash)"
        if _is_row(item) or _is_dump(item):
            return "rows of the table of messages"
        if _is_trajectory(item):
            return "a trajectory (conversations, timestamp, completed)"
        if (
            isinstance(item.get("messages"), list)
            and {"session_id", "session_start"} <= item.keys()
        ):
            return "a session file (session_id, session_start, messages)"
    return None


def _is_trajectory(item: dict[str, Json]) -> bool:
    return (
        isinstance(item.get("conversations"), list)
        and isinstance(item.get("completed"), bool)
        and "timestamp" in item
    )


def _is_row(item: dict[str, Json]) -> bool:
    columns = {"role", "content", "tool_calls", "tool_call_id", "tool_name", "finish_reason"}
    if columns <= item.keys():
        return isinstance(item["tool_calls"], str | None)
    return {"session_id", "role", "content", "observed", "active"} <= item.keys()


def _is_dump(item: dict[str, Json]) -> bool:
    messages = as_list(item.get("messages"))
    return isinstance(item.get("session"), dict) and any(_is_row(as_dict(one)) for one in messages)


def _is_export(item: dict[str, Json]) -> bool:
    """Returns whether it is an export by another program, with previews of results only."""
    is_hermes = as_str(item.get("producer")).startswith("hermes")
    return is_hermes and "session_revision_hash" in item and "messages" in item


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversations of all sessions, or of all trajectories."""
    document = source.document() if source.peek.kind == "json" else None
    if source.peek.kind == "sqlite":
        yield from read_sessions(source, SESSIONS, _stored)
    elif isinstance(document, dict) and _is_export(document):
        for item in source.counted(as_list(document.get("messages")), "messages[{}]"):
            yield Problem("unverified_format", item.where, "an export with previews only")
    elif isinstance(document, dict) and _is_dump(document):
        dumped = source.counted(as_list(document["messages"]), "messages[{}]")
        yield from _rows(source, dumped, as_dict(document["session"]))
    elif isinstance(document, dict) and not (_is_trajectory(document) or _is_row(document)):
        yield from _session_file(source, document)
    elif any(map(_is_row, source.peek.objects)):
        yield from _rows(source, source.records(), {})
    else:
        yield from common_rows.read(source)


_SIZES = """
SELECT session_id, sum(
    ifnull(length(CAST(content AS BLOB)), 0) + ifnull(length(CAST(tool_calls AS BLOB)), 0)
) FROM messages GROUP BY 1
"""
_MESSAGES = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"


def _stored(source: Source, connection: sqlite3.Connection, session: str) -> Iterator[Event]:
    info: dict[str, Json] = {}
    records = 0
    for row in rows(connection, "SELECT * FROM sessions WHERE id = ?", session):
        source.count_records()
        records += 1
        info = row

    def stored() -> Iterator[Record]:
        for row in rows(connection, _MESSAGES, session):
            source.count_records()
            yield Record(f"message {row.get('id')}", row)

    found = yield from _decoded(stored())
    outcome = outcome_of_records([*found.items, info])
    yield from _session(found, session, info, f"session {session}", records, outcome)


def _rows(
    source: Source, logged: Iterable[Record | Problem], info: dict[str, Json]
) -> Iterator[Event]:
    """Yields the conversations of rows that a program wrote out of the database."""
    found = yield from _decoded(logged)
    items, places = found.items, found.places
    if all(isinstance(item.get("id"), int) for item in items):
        items.sort(key=lambda item: as_int(item["id"]))  # as the database orders them
    name = name_or_none(info.get("id")) or source.name.rpartition("/")[2].partition(".")[0]
    model = next(filter(None, (name_or_none(item.get("_model")) for item in items)), None)
    info = {"model": model, **info}
    place = span(places[0], places[-1]) if places else ""
    outcome = outcome_of_records([*items, info])
    yield from _session(found, name or "session", info, place, 0, outcome)


def _session_file(source: Source, document: dict[str, Json]) -> Iterator[Event]:
    logged = as_list(document.get("messages"))
    found = yield from _decoded(source.counted(logged))
    session = as_str(document.get("session_id")) or source.name
    place = span("[0]", f"[{len(logged) - 1}]")
    yield from _session(found, session, document, place, 0, outcome_beside(document))


@dataclass(slots=True)
class _Found:
    """The rows of messages that can be read, where they stand, and the others."""

    items: list[dict[str, Json]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    lost: list[Problem] = field(default_factory=list)


def _decoded(logged: Iterable[Record | Problem]) -> Generator[Problem, None, _Found]:
    """Returns the rows with their JSON columns decoded; yields those that cannot be read."""
    found = _Found()
    for record in objects(logged):
        item = record if isinstance(record, Problem) else _decoded_row(*record)
        if isinstance(item, Problem):
            yield item
            found.lost.append(item)
        else:
            found.items.append(item)
            found.places.append(record[0] if isinstance(record, tuple) else "")
    return found


def _decoded_row(where: str, row: dict[str, Json]) -> dict[str, Json] | Problem:
    text, calls = row.get("content"), row.get("tool_calls") or None
    item: dict[str, Json] = {**row, "tool_calls": calls}
    columns = {"tool_calls": calls} if calls and not isinstance(calls, list) else {}
    if isinstance(text, str) and text.startswith(_STRUCTURED):
        columns = {"content": text[len(_STRUCTURED[0]) :], **columns}
    for name, column in columns.items():
        value = json_column(column, where)
        if isinstance(value, Problem):
            return value
        item[name] = value
    return item


def _session(
    found: _Found,
    session: str,
    info: dict[str, Json],
    place: str,
    records: int,
    outcome: dict[str, Json] | None,
) -> Iterator[Event]:
    """Yields the conversations of a session: `info` is its own row or file."""
    segments = Segments(session, records + len(found.items))
    system = name_or_none(info.get("system_prompt"))
    for history, code, detail in _histories(found.items):
        messages = _messages(history, session, system)
        if len(messages) <= bool(system):
            continue
        removed = (Problem(code, place, detail, records=0),) if code else ()
        yield Conversation(
            id=segments.next_name(),
            record=place,
            messages=tuple(messages),
            tools=tuple_or_none(info.get("tools")),
            model=name_or_none(info.get("model")),
            records=segments.take_records(),
            problems=(*missing_records(found.lost), *removed),
            outcome=outcome,
        )
    yield from segments.rest("empty_session")


def _histories(items: list[dict[str, Json]]) -> Iterator[tuple[list[dict[str, Json]], str, str]]:
    """Yields the model's last context, and each abandoned one with the code and its meaning."""
    active = [item for item in items if item.get("active") != 0 and not item.get("compacted")]
    yield active, "", ""
    compacted = [item for item in items if item.get("compacted")]
    if compacted:
        detail = "before a compaction; the number of histories is unknown"
        yield compacted, "compacted", detail
    undone = [item for item in items if item.get("active") == 0 and not item.get("compacted")]
    if any(item.get("role") == "assistant" for item in undone):
        whole = [item for item in items if not item.get("compacted")]
        yield whole, "rewound", "the user took messages back"


def _messages(items: Sequence[dict[str, Json]], session: str, system: str | None) -> list[Message]:
    keys = CallKeys(session)
    answered = {as_str(item.get("tool_call_id")) for item in items}
    found = [Message("system", (Text(system),))] if system else []
    in_review = False  # the program reviews the conversation beside it, with answers of its own
    for item in items:
        role = as_str(item.get("role"))
        text = as_str(item.get("content"))
        if role == "user":
            in_review = text.startswith(_REVIEW) and (_SKILLS in text or _MEMORY in text)
        if in_review:
            continue
        if role == "tool":
            result = ToolResult(
                content(item.get("content")),
                call_id=name_or_none(item.get("tool_call_id")),
                name=name_of(item, "tool_name", "name"),
                is_error=item.get("finish_reason") == "error" or command_failed(text),
            )
            found.append(Message("tool", (result,)))
            continue
        parts: tuple[Part, ...]
        if role == "assistant":
            logged = as_list(item["tool_calls"])
            calls: list[Json] = [_with_id(call, answered) for call in logged]
            parts = tuple(
                replace(part, key=keys.of(part.id)) if isinstance(part, ToolCall) else part
                for part in assistant_parts({**item, "tool_calls": calls})
            )
            if code := cut_code(item):
                parts = (*parts, Unparsed("", code))
        elif role == "system" and system and item.get("content") == system:
            continue  # some sessions also keep it as a message
        else:
            parts = content(item.get("content"))
            parts = as_harness(parts) if text.startswith(_DELEGATED) else parts
        if parts:
            found.append(Message(role, parts))
    return found


def _with_id(call: Json, answered: set[str]) -> Json:
    item = as_dict(call)
    if "function" not in item and "name" in item:
        return {**item, "function": {"name": item["name"], "arguments": item.get("arguments")}}
    if as_str(item.get("id")) in answered or not isinstance(item.get("call_id"), str):
        return call
    return {**item, "id": item["call_id"]}


READER = declared(
    "hermes-agent",
    recognise=_recognise,
    read=_read,
    item_sizes=lambda source: session_sizes(source, SESSIONS, _SIZES),
)
