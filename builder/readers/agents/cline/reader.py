"""Reads logs of Cline (SDK, CLI and VS Code extension), Roo Code and Kilo Code.

Source: docs/formats/cline.md. Layout A: `<id>.messages.json`, with Anthropic's blocks and the
system prompt. Layout B: `api_conversation_history.json`, in two dialects that may change from
message to message: native blocks, or tools written as tags in the text (`text`). Condensed and
truncated histories of B are segments; an answer in several segments is a target in the first. Tools
are not recorded.

In B, three tools talk to the user and become text: `attempt_completion` (the final answer),
`ask_followup_question` and `plan_mode_respond`. Their results are turns of the user.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Context, Conversation, Event, Ignored, Json, Message, Text
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.cline.messages import ClineReading, texts
from builder.readers.agents.cline.sent import no_result
from builder.readers.homes import APPDATA, Home
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none
from builder.readers.toolkit.places import span
from builder.readers.toolkit.repeats import mark_repeats
from builder.readers.toolkit.rows import missing_records, objects
from builder.readers.toolkit.segments import Segments
from builder.readers.toolkit.unanswered import supply_results
from builder.sources.source import Source

_ROO_FIELDS = frozenset(
    {"isSummary", "condenseId", "condenseParent", "truncationId", "truncationParent"}
)

Rows = list[tuple[str, dict[str, Json]]]
"""Messages with their places."""


def recognise(source: Source) -> str | None:
    """Claims a session, a manifest, a log of the interface, or the history of a task."""
    if source.peek.kind != "json" or not source.peek.records:
        return None
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return _list_kind(list(source.peek.objects))
    document = as_dict(source.peek.records[0])
    if isinstance(document.get("messages"), list) and {"sessionId", "agent"} <= document.keys():
        return "a session's messages (sessionId, agent, messages)"
    if {"session_id", "workspace_root", "enable_tools"} <= document.keys():
        return "a session's manifest (session_id, workspace_root, enable_tools)"
    return None


def _list_kind(items: list[dict[str, Json]]) -> str | None:
    if items and all(item.get("type") in ("ask", "say") and "ts" in item for item in items):
        return "a log of the user interface (ts, type say or ask)"
    if not items or not all(_is_message(item) for item in items):
        return None
    if any(_ROO_FIELDS & item.keys() for item in items):
        return "a task's history with condensed or truncated messages"
    for item in items:
        for text in texts(item.get("content")):
            if text.lstrip().startswith("<task>") or "<environment_details>" in text:
                return "a task's history (<task>, <environment_details>)"
    return None


def _is_message(item: dict[str, Json]) -> bool:
    return item.get("role") in ("user", "assistant") or item.get("type") == "reasoning"


def read(source: Source) -> Iterator[Event]:
    """Yields the conversation of a session, or the conversations of a task."""
    document = source.document()
    if isinstance(document, Problem):
        source.count_records()
        yield document
    elif isinstance(document, list):
        if all(as_dict(item).get("type") in ("ask", "say") for item in document):
            yield Ignored("ui_message", sum(1 for _ in source.counted(document)))
        else:
            yield from _task(source, document)
    elif isinstance(as_dict(document).get("messages"), list):
        yield from _session(source, as_dict(document))
    else:
        source.count_records()
        yield Ignored("manifest")


def _session(source: Source, document: dict[str, Json]) -> Iterator[Event]:
    """Yields the conversation of a session (layout A)."""
    items, lost = _objects(source, as_list(document["messages"]))
    yield from lost
    if not items:
        return
    session = as_str(document.get("sessionId")) or source.name
    # A fork copies the messages with their ids to another session.
    reading = ClineReading(CallKeys(name_or_none(items[0][1].get("id")) or session), tags=False)
    system = name_or_none(document.get("system_prompt"))
    # The logged prompt lacks the rules of the project, which requests contain.
    missing = frozenset({"tools", "system_template" if system else "system"})
    reading.missing |= missing
    if system:
        reading.messages.append(Message("system", (Text(system),)))
    for where, item in items:
        reading.take(item, where, name_or_none(item.get("id")))
    reading.messages, reading.changes["result_supplied"] = supply_results(
        reading.messages, no_result
    )
    problems = missing_records(lost)
    if any(_is_compacted(item) for _, item in items):
        detail = "a history rewritten to be shorter: calls were taken out of answers"
        problems += (Problem("compacted", "session", detail, records=0),)
    place = span(items[0][0], items[-1][0])
    version = name_or_none(as_dict(document.get("origin")).get("version"))
    for event in _conversation(reading, session, place, len(items), problems):
        if isinstance(event, Conversation):
            yield replace(event, context=Context.lacking(missing), version=version)
        else:
            yield event


def _is_compacted(item: dict[str, Json]) -> bool:
    return as_str(item, "metadata", "kind").startswith("compaction")


def _objects(source: Source, values: list[Json]) -> tuple[Rows, list[Problem]]:
    """Returns the messages, and a Problem for each element that is not an object."""
    rows: Rows = []
    lost: list[Problem] = []
    for record in objects(source.counted(values)):
        if isinstance(record, Problem):
            lost.append(record)
        else:
            rows.append(record)
    return rows, lost


def _conversation(
    reading: ClineReading, name: str, record: str, records: int, problems: tuple[Problem, ...]
) -> Iterator[Event]:
    if not reading.messages:
        yield from [Ignored("no_turns", records)] if records else []
        return
    yield Conversation(
        id=name,
        record=record,
        messages=tuple(reading.messages),
        model=reading.model,
        records=records,
        problems=problems,
        changes=dict(sorted((+reading.changes).items())),
    )


def _task(source: Source, document: list[Json]) -> Iterator[Event]:
    """Yields the segments of a task (layout B)."""
    rows, lost = _objects(source, document)
    yield from lost
    scope = str(next((row["ts"] for _, row in rows if "ts" in row), source.name))
    seen: set[str] = set()
    targets: set[str] = set()
    segments = Segments("task")
    for segment in _segments(rows):
        reading = ClineReading(CallKeys(scope), tags=True)
        for where, row in segment:
            reading.take(row, where, where)
        fresh = [where for where, _ in segment if where not in seen]
        seen.update(fresh)
        place = span(segment[0][0], segment[-1][0])
        problems = missing_records(lost)
        reading.messages = mark_repeats(reading.messages, targets)
        yield from _conversation(reading, segments.next_name(), place, len(fresh), problems)


def _segments(rows: Rows) -> Iterator[Rows]:
    """Yields the context before each summary or truncation that hid messages, then the last one."""
    visible: Rows = []
    for where, row in rows:
        for own, parent in (("condenseId", "condenseParent"), ("truncationId", "truncationParent")):
            name = name_or_none(row.get(own))
            hidden = [old for old in visible if name and old[1].get(parent) == name]
            if hidden and (row.get("isSummary") is True or row.get("isTruncationMarker") is True):
                yield list(visible)
                visible = [old for old in visible if old not in hidden]
        visible.append((where, row))
    if visible:
        yield visible


READER = Reader(
    name="cline",
    summary=(
        "Cline sessions (.messages.json: sessionId, agent, messages), and the "
        "api_conversation_history.json of Cline, Roo and Kilo (tags or native blocks)"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    checked="3.0.65",
    is_agent=True,
    homes=(
        Home("Cline", "${CLINE_SESSION_DATA_DIR:-~/.cline/data/sessions}"),
        Home("Cline", "${CLINE_DATA_DIR:-~/.cline/data}/sessions"),
        Home("Cline", "${CLINE_DIR:-~/.cline}/data/sessions"),
        Home("Cline", f"{APPDATA}/*/User/globalStorage/saoudrizwan.claude-dev/tasks"),
        Home("Roo Code", f"{APPDATA}/*/User/globalStorage/rooveterinaryinc.roo-cline/tasks"),
        Home("Kilo Code", f"{APPDATA}/*/User/globalStorage/kilocode.kilo-code/tasks"),
    ),
    read=read,
)
