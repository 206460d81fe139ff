"""logs.db of the command `llm`. Source: docs/formats/llm-logs.md."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from builder.conversation import (
    Context,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolResult,
)
from builder.jsonio import loads_text
from builder.readers import declared
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_str, name_of, name_or_none
from builder.readers.traces.parts import read_call
from builder.sources.source import Source
from builder.sources.sqlite_file import read_sessions, rows, session_sizes, tables

_NAME = "llm-logs"
_COLUMNS = frozenset({"prompt", "system", "response", "conversation_id", "prompt_json"})
_SESSIONS = "SELECT DISTINCT coalesce(conversation_id, id) FROM responses ORDER BY 1"
_SIZES = """
SELECT coalesce(conversation_id, id), sum(length(prompt) + length(response)) FROM responses
GROUP BY 1
"""
_RESPONSES = """
SELECT * FROM responses WHERE coalesce(conversation_id, id) = ? ORDER BY datetime_utc, id
"""
_BESIDE = {
    "tool_calls": "SELECT * FROM tool_calls WHERE response_id = ? ORDER BY id",
    "tool_results": "SELECT * FROM tool_results WHERE response_id = ? ORDER BY id",
    "tool_responses": (
        "SELECT t.* FROM tools t JOIN tool_responses r ON r.tool_id = t.id"
        " WHERE r.response_id = ? ORDER BY t.id"
    ),
    "prompt_attachments": 'SELECT * FROM prompt_attachments WHERE response_id = ? ORDER BY "order"',
    "prompt_fragments": (
        "SELECT f.content FROM fragments f JOIN prompt_fragments p ON p.fragment_id = f.id"
        ' WHERE p.response_id = ? ORDER BY p."order"'
    ),
    "system_fragments": (
        "SELECT f.content FROM fragments f JOIN system_fragments p ON p.fragment_id = f.id"
        ' WHERE p.response_id = ? ORDER BY p."order"'
    ),
}
"""What stands beside a response, by the table without which there is nothing of it."""


def _recognise(source: Source) -> str | None:
    is_own = tables(source).get("responses", frozenset()) >= _COLUMNS
    return "a table of responses (prompt, system, response, prompt_json)" if is_own else None


def _stored(source: Source, connection: sqlite3.Connection, session: str) -> Iterator[Event]:
    history = SessionHistory(_NAME, session, f"{_NAME}/{session}", f"conversation {session} ")
    known = tables(source)
    system: str | None = None
    offered: dict[str, Json] = {}
    records = 0
    for row in rows(connection, _RESPONSES, session):
        source.count_records()
        records += 1
        name = as_str(row.get("id"))
        where = f"response {name}"
        beside = {
            table: list(rows(connection, query, name)) if table in known else []
            for table, query in _BESIDE.items()
        }
        own = _joined(beside["system_fragments"], row.get("system"))
        if own and own != system:
            history.append(Message("system", (Text(own),)), where)
            system = own
        if results := tuple(map(_result, beside["tool_results"])):
            history.append(Message("tool", results), where)
        asked: list[Part] = [Media("file") for _ in beside["prompt_attachments"]]
        if prompt := _joined(beside["prompt_fragments"], row.get("prompt")):
            asked.append(Text(prompt))
        if asked:
            history.append(Message("user", tuple(asked)), where)
        parts: list[Part] = []
        for text, part in ((row.get("reasoning"), Reasoning), (row.get("response"), Text)):
            parts += [part(text)] if isinstance(text, str) and text else []
        parts += map(read_call, beside["tool_calls"])
        own_tools = {as_str(one.get("name")): _definition(one) for one in beside["tool_responses"]}
        offered |= own_tools
        missing = {"system"} if system is None else set()
        missing |= {"tools"} if offered != own_tools or "tools" not in known else set()
        if parts:
            model = name_of(row, "resolved_model", "model")
            message = Message("assistant", tuple(parts), where, context=Context.lacking(missing))
            history.append(message, where, RequestHead(None, tuple(offered.values()), model))
    if history.entries:
        yield from history.conversations(records)
    elif records:
        yield Ignored("no_messages", records)


def _joined(fragments: list[dict[str, Json]], text: Json) -> str:
    texts = [as_str(one.get("content")) for one in fragments]
    return "\n".join(filter(str.strip, [*texts, as_str(text)]))


def _result(row: dict[str, Json]) -> ToolResult:
    call_id, name = (name_or_none(row.get(key)) for key in ("tool_call_id", "name"))
    return ToolResult(
        (Text(as_str(row.get("output"))),), call_id, name, is_error=bool(row.get("exception"))
    )


def _definition(row: dict[str, Json]) -> Json:
    schema = loads_text(as_str(row.get("input_schema")))
    return {
        "name": row.get("name"), "description": row.get("description"), "parameters": schema,
    }  # fmt: skip


READER = declared(
    _NAME,
    recognise=_recognise,
    read=lambda source: read_sessions(source, _SESSIONS, _stored),
    item_sizes=lambda source: session_sizes(source, _SESSIONS, _SIZES),
)
