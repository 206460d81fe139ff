"""Reads Goose's database of sessions, its exports, and its JSONL files from before 1.10.

Source: docs/formats/goose.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import content_block
from builder.readers.toolkit.comparison import CallKeys, mark_repeats
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.places import Segments, span
from builder.readers.toolkit.rows import missing_records, objects
from builder.readers.toolkit.unknown_keys import carries_content
from builder.readers.traces.parts import read_part
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import (
    SESSIONS,
    json_column,
    read_sessions,
    rows,
    session_sizes,
    tables,
)

_SILENT = frozenset(
    {
        "actionRequired", "contextLengthExceeded", "conversationCompacted", "redactedThinking",
        "summarizationRequested", "systemNotification", "toolConfirmationRequest",
    }
)  # fmt: skip
"""Parts for the user interface, and encrypted thoughts."""
_KNOWN = _SILENT | {
    "text", "image", "toolRequest", "toolResponse", "frontendToolRequest", "thinking",
}  # fmt: skip


def _recognise(source: Source) -> str | None:
    """Claims session metadata, messages with tagged content, or the tables of the database."""
    if source.peek.kind in ("jsonl", "json"):
        for item in source.peek.objects:
            if "working_dir" in item and _is_export(item):
                return "an exported session (working_dir, conversation)"
            if "working_dir" in item and {"description", "message_count"} & item.keys():
                return "a session's metadata (working_dir, message_count)"
            if _is_message(item):
                return "a message with created and tagged content"
        return None
    columns = tables(source)
    if "content_json" in columns.get("messages", ()) and "sessions" in columns:
        return "a database with messages.content_json and sessions"
    return None


def _is_message(item: dict[str, Json]) -> bool:
    content = as_list(item.get("content"))
    return (
        item.get("role") in ("user", "assistant")
        and isinstance(item.get("created"), int)
        and bool(content)
        and all(as_str(part, "type") in _KNOWN for part in content)
    )


def _is_export(item: dict[str, Json]) -> bool:
    messages = as_list(item.get("conversation"))
    return bool(messages) and all("role" in as_dict(message) for message in messages)


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of all sessions."""
    if source.peek.kind == "sqlite":
        yield from read_sessions(source, SESSIONS, _stored)
        return
    document = source.document() if source.peek.kind == "json" else None
    if isinstance(document, dict) and _is_export(document):
        model = as_dict(document.get("model_config")).get("model_name")
        messages = source.counted(as_list(document["conversation"]))
        name = name_or_none(document.get("id")) or source.name
        yield from _lines(messages, name, name_or_none(model))
    else:
        yield from _lines(source.records(), source.name)


@dataclass(frozen=True, slots=True)
class _Row:
    """A message. `agent`, `user`: whether the model and the user see it now; `cut`: its fault."""

    where: str
    role: str
    content: list[Json]
    id: str | None
    agent: bool
    user: bool
    cut: str | None


def _row(where: str, item: dict[str, Json], content: Json, metadata: Json) -> _Row:
    seen = as_dict(metadata)
    return _Row(
        where,
        as_str(item.get("role")),
        [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content),
        name_or_none(item.get("message_id") or item.get("id")),
        seen.get("agentVisible") is not False,
        seen.get("userVisible") is not False,
        cut_code(item),
    )


def _lines(
    records: Iterable[Record | Problem], session: str, model: str | None = None
) -> Iterator[Event]:
    rows: list[_Row] = []
    lost: list[Problem] = []
    fault: Problem | None = None
    for record in objects(records):
        if isinstance(record, Problem):
            fault = record
            yield record
            continue
        where, item = record
        if isinstance(item.get("content"), str | list) and "role" in item:
            if fault is not None and rows:  # the lost record may have been a message
                lost.append(fault)
                fault = None
            rows.append(_row(where, item, item["content"], item.get("metadata")))
        elif "working_dir" not in item and carries_content(item):
            kind = as_str(item.get("type")) or "record"
            rows.append(_row(where, {"role": "user"}, [{"type": f"{kind} record"}], None))
        else:
            yield Ignored("metadata")
    yield from _conversations(session, rows, len(rows), model, missing_records(lost))


_SIZES = "SELECT session_id, sum(length(CAST(content_json AS BLOB))) FROM messages GROUP BY 1"


def _stored(source: Source, connection: sqlite3.Connection, session: str) -> Iterator[Event]:
    model: str | None = None
    records = 0
    for row in rows(connection, "SELECT * FROM sessions WHERE id = ?", session):
        source.count_records()
        records += 1
        config = json_column(row.get("model_config_json") or "{}", session)
        model = name_or_none(as_dict(_value_or_none(config)).get("model_name"))
    found: list[_Row] = []
    lost: list[Problem] = []
    query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
    for row in rows(connection, query, session):
        source.count_records()
        where = f"message {row.get('id')}"
        content = json_column(row.get("content_json"), where)
        if isinstance(content, Problem):
            yield content
            lost.append(content)
            continue
        metadata = json_column(row.get("metadata_json") or "{}", where)
        if isinstance(metadata, Problem):  # it is unknown who sees the message
            lost.append(metadata)
        records += 1
        found.append(_row(where, {**row, "id": None}, content, _value_or_none(metadata)))
    yield from _conversations(session, found, records, model, missing_records(lost))


def _value_or_none(value: Json | Problem) -> Json:
    return None if isinstance(value, Problem) else value


def _conversations(
    session: str,
    rows: Sequence[_Row],
    records: int,
    model: str | None,
    problems: tuple[Problem, ...],
) -> Iterator[Event]:
    numbered = Segments(session, records)
    targets: set[str] = set()
    for segment, hidden in _segments(rows, is_whole=not problems):
        messages = _messages(segment, CallKeys(session))
        if not messages:
            continue
        place = span(segment[0].where, segment[-1].where)
        rewound = Problem("rewound", place, "hidden from the model later on", records=0)
        yield Conversation(
            id=numbered.next_name(),
            record=place,
            messages=tuple(mark_repeats(messages, targets)),
            model=model,
            records=numbered.take_records(),
            problems=(*problems, rewound) if hidden else problems,
        )
    yield from numbered.rest("no_turns" if rows else "empty_session")


def _segments(rows: Sequence[_Row], *, is_whole: bool) -> Iterator[tuple[list[_Row], bool]]:
    """Yields the rows between summaries, and whether they were hidden from the model later.

    After the last summary, rows that the model does not see were only for the user. Before it, all
    rows are hidden by the summary, so these rows cannot be distinguished.
    """
    segments: list[list[_Row]] = [[]]
    for before, row in zip([None, *rows], rows, strict=False):
        if not row.user and (before is None or before.user) and row.role == "user":
            segments.append([])
        segments[-1].append(row)
    *earlier, last = segments
    for segment in earlier:
        yield segment, False
    if not is_whole:  # a summary may be lost
        yield last, False
        return
    yield [row for row in last if row.agent], False
    hidden = (part for row in last if not row.agent for part in as_dicts(row.content))
    if any(part.get("type") == "toolRequest" for part in hidden):
        yield last, True


def _messages(rows: Iterable[_Row], keys: CallKeys) -> list[Message]:
    """Returns the messages of a segment; tool results are in messages of the user."""
    found: list[Message] = []
    for row in rows:
        parts: list[Part] = []
        results: list[ToolResult] = []
        for item in _for_model(row.content):
            part = _part(item, keys)
            if isinstance(part, ToolResult):
                results.append(part)
            elif isinstance(part, Text) and not row.user:
                parts.append(replace(part, harness=True))  # a summary, or the reply added after it
            elif part is not None:
                parts.append(part)
        if results:
            found.append(Message("tool", tuple(results)))
        if not parts:
            continue
        at = max((at for at, one in enumerate(found) if one.role != "tool"), default=-1)
        last = found[at] if at >= 0 else None
        is_answer = row.role == "assistant" and row.id is not None
        if is_answer and last and (last.role, last.turn) == (row.role, row.id):
            # Streaming wrote one message in several rows.
            found[at] = replace(last, parts=(*last.parts, *parts))
        else:
            untrained = row.cut if row.role == "assistant" else None
            found.append(Message(row.role, tuple(parts), row.id, untrained))
    return found


def _part(item: dict[str, Json], keys: CallKeys) -> Part | None:
    kind, call_id = as_str(item.get("type")), name_or_none(item.get("id"))
    match kind:
        case "image":
            return Media("image", as_str(item.get("mimeType")))
        case "toolRequest" | "frontendToolRequest":
            call = as_dict(item.get("toolCall"))
            value = as_dict(call.get("value"))
            if call.get("status") == "error" or "name" not in value:
                error = call.get("error", call)
                return Unparsed(error if isinstance(error, str) else dumps(error), "bad_call")
            name, arguments = as_str(value.get("name")), value.get("arguments")
            return ToolCall(name, arguments, call_id, keys.of(call_id))
        case "toolResponse":
            result = as_dict(item.get("toolResult"))
            output, failure = result.get("value"), result.get("error")
            if result.get("status") == "error":
                shown = Text(failure) if isinstance(failure, str) else Data(failure)
                return ToolResult((shown,), call_id, is_error=True)
            listed = output if isinstance(output, list) else as_list(output, "content")
            contents = tuple(map(content_block, _for_model(listed)))
            return ToolResult(contents, call_id, is_error=as_dict(output).get("isError") is True)
        case _ if kind in _SILENT:
            return None
    return next(iter(read_part({**item, "type": kind or "nothing"})), None)


def _for_model(items: list[Json]) -> list[dict[str, Json]]:
    """Returns the blocks that the model saw: a tool may return separate blocks for the user."""
    blocks = [as_dict(item) for item in items]
    audiences = [as_list(block, "annotations", "audience") for block in blocks]
    if not any("assistant" in audience for audience in audiences):
        return blocks
    listed = zip(blocks, audiences, strict=True)
    return [block for block, audience in listed if audience != ["user"]]


READER = declared(
    "goose",
    recognise=_recognise,
    read=read,
    item_sizes=lambda source: session_sizes(source, SESSIONS, _SIZES),
)
