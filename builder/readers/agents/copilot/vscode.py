"""Reads VS Code's Copilot chat: chat sessions, agent-traces.db, transcripts and replay exports.

Source: docs/formats/vscode-copilot.md. A chat session is a JSON object with `requests`, or the
patch log of that object. `agent-traces.db` has the requests themselves, with system prompt and
tools, as spans. A transcript is a log of events like that of Copilot CLI, without results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Conversation, Event, Json
from builder.jsonio import packed
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.copilot import patch_log
from builder.readers.agents.copilot.chat_session import ChatSession
from builder.readers.agents.copilot.cli import EventLog, is_by_vscode, is_event_log
from builder.readers.agents.copilot.replay import is_replay, read_replay
from builder.readers.homes import APPDATA, Home
from builder.readers.toolkit.history import SessionHistory
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.places import ignored, unique_name
from builder.readers.toolkit.rows import objects
from builder.readers.traces.otel.span_log import read_spans
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, open_sqlite, rows, tables

NAME = "vscode-copilot"

_HELPERS = ("copilotLanguageModelWrapper", "editingSession/", "progressMessages", "title")
"""Beginnings of names of agents that make titles, messages and edits for the interface."""


def recognise(source: Source) -> str | None:
    """Claims chat sessions, databases of spans with chat_session_id, and events of VS Code."""
    if source.peek.kind == "sqlite":
        is_traces = {"span_id", "chat_session_id"} <= tables(source).get("spans", frozenset())
        return "agent traces (spans with chat_session_id)" if is_traces else None
    if is_event_log(source) and is_by_vscode(source):
        return "events with vscodeVersion"
    for value in source.peek.objects:
        if _is_chat(value):
            return "a chat session (requests)"
        if is_replay(value):
            return "an export of the chat debug view (prompts with logs)"
        if value.get("kind") == 0 and _is_chat(as_dict(value.get("v"))):
            return "the patch log of a chat session (kind, v)"
    return None


def _is_chat(value: dict[str, Json]) -> bool:
    own = {"responderUsername", "requesterUsername", "initialLocation", "inputState"}
    requests = value.get("requests")
    if not isinstance(requests, list):
        return False
    if not requests:
        return not value.keys().isdisjoint({*own, "creationDate"})
    first = as_dict(requests[0])
    return "message" in first and ("requestId" in first or not value.keys().isdisjoint(own))


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session, or of each session of a database."""
    name = source.name.rpartition("/")[2].partition(".")[0] or "session"
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_traces(source))
    elif is_event_log(source):
        yield from EventLog(NAME, source.name, name, renders=False).read(source.records())
    elif any("kind" in value and "requests" not in value for value in source.peek.objects):
        yield from _read_patches(source, name)
    else:
        yield from _read_document(source, name)


def _session(source: Source, name: str, value: dict[str, Json]) -> ChatSession:
    session = as_str(value.get("sessionId")) or name
    return ChatSession(SessionHistory(NAME, session, f"{source.name}/{session}"))


def _read_document(source: Source, name: str) -> Iterator[Event]:
    """Reads an object with the requests, each of which is a record."""
    document = source.document()
    if not isinstance(document, dict):
        yield from (
            item if isinstance(item, Problem) else Problem("not_object", item.where, "no session")
            for item in source.records()
        )
        return
    if is_replay(document):
        yield from read_replay(source, document, _HELPERS)
        return
    session = _session(source, name, document)
    records = 0
    requests = source.counted(as_list(document.get("requests")), "requests[{}]")
    for request in objects(requests, "a request that is "):
        if isinstance(request, Problem):
            session.is_damaged = True
            yield request
        else:
            records += 1
            session.add(request[1], request[0])
    yield from session.conversations(records)


def _read_patches(source: Source, name: str) -> Iterator[Event]:
    """Reads the lines of a patch log, each of which is a record."""
    root: Json = None
    is_damaged = False
    records = 0
    for record in objects(source.json_lines(), "an entry that is "):
        if isinstance(record, Problem):
            is_damaged = is_damaged or record.code != "truncated"
            yield record
            continue
        root, applied = patch_log.apply(root, record[1])
        records += applied
        if not applied:
            is_damaged = True
            yield Problem("bad_patch", record[0], "the entry changes nothing in the session")
    value = as_dict(root)
    session = _session(source, name, value)
    session.is_damaged = is_damaged
    for at, request in enumerate(as_list(value.get("requests"))):
        session.add(as_dict(request), f"requests[{at}]")
    yield from session.conversations(records)


_SPANS = """
SELECT span_id, trace_id, parent_span_id, name, start_time_ms, end_time_ms, operation_name,
       agent_name, chat_session_id, conversation_id
FROM spans ORDER BY start_time_ms, end_time_ms, span_id
"""
_ATTRIBUTES = "SELECT key, value FROM span_attributes WHERE span_id = ? ORDER BY key"


def _read_traces(source: Source) -> Iterator[Event]:
    """Reads the requests of the chat among the spans of a database."""
    lines: list[bytes] = []
    counts: Counter[str] = Counter()
    with open_sqlite(source) as connection:
        for span in rows(connection, _SPANS):
            agent, session = as_str(span.get("agent_name")), as_str(span.get("chat_session_id"))
            if span.get("operation_name") != "chat":
                source.count_records()
                counts["no_request"] += 1
            elif not session or agent.startswith(_HELPERS):
                source.count_records()
                counts["helper_request"] += 1
            else:
                span_id = as_str(span.get("span_id"))
                found = rows(connection, _ATTRIBUTES, span_id)
                attributes = {as_str(row.get("key")): row.get("value") for row in found}
                attributes.pop("gen_ai.system_instructions", None)  # repeated in the messages
                attributes["gen_ai.conversation.id"] = session
                lines.append(packed(_as_span(span, attributes)) + b"\n")
    log = Source(source.name, data=b"".join(lines), max_record_bytes=source.max_record_bytes)
    log.watch = source.watch
    source.count_records(len(lines))
    if lines:
        names: Counter[str] = Counter()
        for event in read_spans(log):
            if isinstance(event, Conversation):
                session = unique_name(event.id.partition("/")[0], names)
                place = event.record.replace("line", "request")
                yield replace(event, id=session, record=place)
            else:
                yield event
    yield from ignored(counts)


def _as_span(span: dict[str, Json], attributes: dict[str, Json]) -> dict[str, Json]:
    """Returns a row of the database as an exporter of OpenTelemetry writes it."""
    return {
        "name": span.get("name"),
        "context": {"trace_id": span.get("trace_id"), "span_id": span.get("span_id")},
        "parent_id": span.get("parent_span_id"),
        "start_time": span.get("start_time_ms"),
        "end_time": span.get("end_time_ms"),
        "attributes": attributes,
    }


READER = Reader(
    name=NAME,
    summary=(
        "VS Code's Copilot chat: chat sessions (JSON with requests, or the patch log of it), "
        "agent-traces.db, transcripts, exports of the chat debug view (.chatreplay.json)"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    homes=(
        Home("Copilot chat", f"{APPDATA}/*/User/globalStorage/github.copilot-chat/agent-traces.db"),
        Home("Copilot chat", f"{APPDATA}/*/User/globalStorage/emptyWindowChatSessions"),
        Home("Copilot chat", f"{APPDATA}/*/User/workspaceStorage/*/chatSessions"),
    ),
    is_agent=True,
    read=read,
)
