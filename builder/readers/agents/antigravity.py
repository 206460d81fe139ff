"""Reads Google Antigravity. Source: docs/formats/antigravity.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

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
    ToolCall,
    ToolResult,
)
from builder.jsonio import loads_text
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit import protobuf
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dicts, as_list, as_str, json_in_text, unknown_code
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.protobuf import ProtoMessage
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.listing import Listing
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, open_sqlite, tables

_NAME = "antigravity"

# -- databases of conversations -------------------------------------------------------------------

_ID = "SELECT cascade_id FROM trajectory_meta LIMIT 1"
_REQUESTS = "SELECT idx, CAST(data AS BLOB) FROM gen_metadata ORDER BY idx"
_STEPS = "SELECT idx, step_type, CAST(step_payload AS BLOB) FROM steps ORDER BY idx"

_ANSWER, _REMINDER = 15, 90
"""Types of steps."""
_USER, _MODEL, _UNKNOWN, _TOOL, _PROMPT = 1, 2, 3, 4, 5
"""Sources of messages. The program names the model's SYSTEM."""
_BEGINNINGS = ("The following is an <EPHEMERAL_MESSAGE>", "The following is a <SYSTEM_MESSAGE>")
_MAX_REBUILT = 16
"""Maximum number of earlier requests to rebuild: their size grows with the square of the number."""


def _read_store(source: Source, session: str, names: Counter[str], prefix: str) -> Iterator[Event]:
    """Yields the conversations of a database. Records are its requests and steps.

    `names`: ids that other conversations of the source have; `prefix` begins their places.
    """
    steps: _Steps = {}
    requests: list[_Request] = []
    problems: list[Problem] = []
    others = 0
    with open_sqlite(source) as connection:
        row = connection.execute(_ID).fetchone()
        session = row[0] if row and isinstance(row[0], str) and row[0] else session
        for idx, data in connection.execute(_REQUESTS):
            source.count_records()
            try:
                requests.append(_Request.of(idx, data))
            except ValueError as error:
                detail = f"no message: {error}"
                problems.append(Problem("unreadable", f"gen_metadata {idx}", detail))
        for idx, kind, payload in connection.execute(_STEPS):
            source.count_records()
            try:
                if kind in (_ANSWER, _REMINDER):
                    steps[idx] = (kind, protobuf.fields(payload))
                others += 1
            except ValueError as error:
                problems.append(Problem("unreadable", f"step {idx}", f"no message: {error}"))
    yield from problems
    last = max((at for at, item in enumerate(requests) if item.messages), default=None)
    history = SessionHistory(_NAME, session, f"{_NAME}/{session}", prefix)
    if last is None:
        detail = "no row of the database holds a request; the transcript is the only log"
        yield Problem("no_request", "gen_metadata", detail, records=len(requests))
    else:
        _replay(history, steps, requests[last], requests[:last])
        if later := requests[last + 1 :]:
            detail = "requests after the last one that the database holds"
            yield Problem("no_request", f"gen_metadata {later[0].idx}", detail, records=len(later))
    if others:
        yield Ignored("repeated_message" if last is not None else "state", others)
    yield from history.conversations(0 if last is None else last + 1, names=names)


@dataclass(frozen=True, slots=True)
class _Request:
    """A row of `gen_metadata`.

    steps     the steps of its answer
    metadata  the request; empty of messages in all rows but the last
    checks    the checksums of its system prompt (-1) and of its messages up to a position
    """

    idx: int
    steps: tuple[int, ...]
    metadata: ProtoMessage
    messages: tuple[ProtoMessage, ...]
    checks: dict[int, str]

    @classmethod
    def of(cls, idx: int, data: object) -> _Request:
        """Returns the request in a row. Raises ValueError."""
        outer = protobuf.fields(data)
        metadata = protobuf.fields(protobuf.last(outer, 1) or b"")
        begin = protobuf.fields(protobuf.last(metadata, 9) or b"")
        checks = {
            protobuf.number(point, 1): protobuf.text(point, 3)
            for point in map(protobuf.fields, begin.get(6, ()))
        }
        prompt = protobuf.fields(protobuf.last(begin, 7) or b"")
        checks[-1] = protobuf.text(prompt, 3)
        steps = tuple(protobuf.varints(protobuf.last(outer, 2) or b""))
        messages = tuple(map(protobuf.fields, metadata.get(2, ())))
        return cls(idx, steps, metadata, messages, checks)

    def missing(self, later: _Request) -> set[str]:
        """Returns what the log lacks of this request, by the checksums of a later one."""
        points = self.checks.keys() & later.checks.keys()
        changed = {point for point in points if self.checks[point] != later.checks[point]}
        names = {"system"} if -1 in changed else set()
        return names | ({"history"} if changed - {-1} else set())


_Steps = dict[int, tuple[int, ProtoMessage]]
"""The answers and reminders among the steps: their type and payload, by number."""


def _replay(
    history: SessionHistory, steps: _Steps, request: _Request, earlier: list[_Request]
) -> None:
    """Adds the last request, and the earlier ones whose reminders it no longer holds."""
    tools = tuple(map(_tool, request.metadata.get(8, ())))
    model = protobuf.text(request.metadata, 21) or protobuf.text(request.metadata, 19)
    head = RequestHead(protobuf.text(request.metadata, 1) or None, tools, model or None)
    lacks = set() if head.system is not None else {"system"}
    rendered = Context.lacking(lacks, "rendered")
    entries: list[HistoryEntry] = []
    for at, value in enumerate(request.messages):
        step = protobuf.number(value, 18)
        message = _message(value, f"step {step}" if step else None)
        entry = HistoryEntry(message, f"message {at}", kind=str(step))
        if message.role == "assistant":
            entry.request, entry.message = head, replace(message, context=rendered)
        entries.append(entry)
    is_answered = bool(entries) and entries[-1].message.role == "assistant"
    for step in () if is_answered else request.steps:  # it holds the answer if the request does not
        kind, payload = steps.get(step, (0, {}))
        value = _inner(payload, 20)
        parts = _answer_parts(value, 3, protobuf.text(value, 1), value.get(7, []))
        if kind == _ANSWER and parts:
            message = Message("assistant", parts, f"step {step}", context=rendered)
            entries.append(HistoryEntry(message, f"step {step}", head, kind=str(step)))
    answers = [at for at, item in enumerate(entries) if item.message.role == "assistant"]
    by_step = {step: item for item in earlier for step in item.steps}
    removed = {at: _removed(steps, entries, at) for at in answers[:-1]}
    rebuilt = sum(map(bool, removed.values())) <= _MAX_REBUILT
    for at in answers[:-1]:
        own = by_step.get(int(entries[at].kind))
        missing = lacks | (own.missing(request) if own is not None else set())
        if removed[at] and not rebuilt:
            missing |= {"reminders"}
        context = Context.lacking(missing, "rendered")
        entries[at].message = replace(entries[at].message, context=context)
        if removed[at] and rebuilt:
            history.replace([*entries[:at], *removed[at], entries[at]])
    history.replace(entries)


def _removed(steps: _Steps, entries: list[HistoryEntry], at: int) -> list[HistoryEntry]:
    """Returns the reminders right before an answer that the last request no longer holds."""
    kept = {int(item.kind) for item in entries}
    first = max((int(item.kind) for item in entries[:at]), default=0)
    return [
        HistoryEntry(Message("user", (Text(text, harness=True),)), f"step {step}")
        for step, (kind, payload) in steps.items()
        if kind == _REMINDER and first < step < int(entries[at].kind) and step not in kept
        if (text := protobuf.text(_inner(payload, 103), 1))
    ]


def _inner(message: ProtoMessage, number: int) -> ProtoMessage:
    return _fields(protobuf.last(message, number) or b"")


def _fields(value: int | bytes) -> ProtoMessage:
    """Returns the fields of a message; {} for bytes that are none."""
    try:
        return protobuf.fields(value)
    except ValueError:
        return {}


def _message(value: ProtoMessage, turn: str | None) -> Message:
    source, text = protobuf.number(value, 2), protobuf.text(value, 3)
    images = tuple(Media("image") for _ in value.get(10, ()))
    if source in (_MODEL, _UNKNOWN):
        return Message("assistant", _answer_parts(value, 11, text, value.get(6, [])), turn)
    if source == _TOOL:
        call_id = protobuf.text(value, 7) or None
        failed = protobuf.number(value, 9) == 1
        return Message("tool", (ToolResult((Text(text), *images), call_id, is_error=failed),))
    if source == _PROMPT:
        return Message("system", (Text(text),))
    harness = source != _USER or text.startswith(_BEGINNINGS)
    return Message("user", (Text(text, harness=harness), *images))


def _answer_parts(
    value: ProtoMessage, thinking: int, text: str, calls: list[int | bytes]
) -> tuple[Part, ...]:
    thought = protobuf.text(value, thinking)
    parts: list[Part] = [Reasoning(thought)] if thought else []
    parts += [Text(text)] if text else []
    for call in calls:
        made = _fields(call)
        name, call_id = protobuf.text(made, 2), protobuf.text(made, 1) or None
        parts.append(ToolCall(name, protobuf.text(made, 3), call_id))
    return tuple(parts)


def _tool(value: int | bytes) -> Json:
    if not (tool := _fields(value)):
        return {}
    parameters = json_in_text(protobuf.text(tool, 3))
    name, description = protobuf.text(tool, 1), protobuf.text(tool, 2)
    return {"name": name, "description": description, "parameters": parameters}


# -- transcripts ----------------------------------------------------------------------------------

_SOURCES = frozenset({"USER_EXPLICIT", "USER_IMPLICIT", "SYSTEM", "MODEL"})
_INSERTED = frozenset({"EPHEMERAL_MESSAGE", "SYSTEM_MESSAGE", "ERROR_MESSAGE"})
_MODEL_NAME = re.compile(r"`Model Selection` from .{1,80}? to (.{1,80}?)\.(?=\s|$)")
_INTERRUPTED = frozenset({"CANCELED", "CANCELLED", "INTERRUPTED"})


def _is_step(value: dict[str, Json]) -> bool:
    return isinstance(value.get("step_index"), int) and as_str(value.get("source")) in _SOURCES


def _read_transcript(
    source: Source, history: SessionHistory, names: Counter[str]
) -> Iterator[Event]:
    """Yields the conversations of a transcript, several in a file that was joined from some.

    A step that is logged twice counts as the last.
    """
    counts: Counter[str] = Counter()
    found: dict[tuple[int, str], tuple[str, dict[str, Json]]] = {}
    missing: set[str] = set()
    for record in objects(source.json_lines(), "a step that is "):
        if isinstance(record, Problem):
            missing |= {"history"}
            yield record
            continue
        where, value = record
        index = value.get("step_index")
        if not isinstance(index, int) or not _is_step(value):
            counts[unknown_code(value.get("type"))] += 1
            continue
        key = (index, as_str(value.get("type")))
        if value.get("type") == "USER_INPUT" and index == 0 and _is_another(found, value):
            yield from _conversation(history, found, missing, counts, names)
            history = SessionHistory(
                history.format_name, history.name, f"{history.scope}/{where}", history.prefix
            )
            found, missing = {}, set()
        counts["superseded"] += key in found
        found[key] = (where, value)
    yield from _conversation(history, found, missing, counts, names)
    yield from ignored(+counts)


def _is_another(
    found: dict[tuple[int, str], tuple[str, dict[str, Json]]], step: dict[str, Json]
) -> bool:
    """Returns whether a first step begins another conversation than that of the steps found."""
    times = {key: as_str(value.get("created_at")) for key, (_, value) in found.items()}
    first, time = times.get((0, "USER_INPUT")), as_str(step.get("created_at"))
    return first != time if first is not None else bool(times) and max(times.values()) < time


def _conversation(
    history: SessionHistory,
    found: dict[tuple[int, str], tuple[str, dict[str, Json]]],
    missing: set[str],
    counts: Counter[str],
    names: Counter[str],
) -> Iterator[Event]:
    steps = _Transcript(history, counts, {"system", "tools", *missing})
    for _, (where, value) in sorted(found.items(), key=lambda item: item[0][0]):
        steps.add(where, value)
    yield from history.conversations(steps.records, names=names)


@dataclass(slots=True)
class _Transcript:
    """The steps so far. `pending` is the number of calls of the last answer without a result."""

    history: SessionHistory
    counts: Counter[str]
    missing: set[str]
    records: int = 0
    pending: int = 0
    model: str | None = None
    reminded: bool = False

    def add(self, where: str, step: dict[str, Json]) -> None:
        kind, text = as_str(step.get("type")), as_str(step.get("content"))
        self.records += 1
        if kind == "PLANNER_RESPONSE":
            self._answer(where, step, text)
        elif kind == "USER_INPUT":
            if model := _MODEL_NAME.search(text):
                self.model = model[1]
            by_program = step.get("source") != "USER_EXPLICIT"
            self.history.put(where, "user", [Text(text, by_program)] if text else [])
        elif kind in _INSERTED:
            self.reminded = self.reminded or kind == "EPHEMERAL_MESSAGE"
            self.history.put(where, "user", [Text(text, harness=True)] if text else [])
        elif kind == "CHECKPOINT":  # a summary that may replace what precedes it
            self.missing |= {"history"}
            self._ignore("checkpoint")
        elif kind == "CONVERSATION_HISTORY" and not text:
            self._ignore("marker")
        elif step.get("source") == "MODEL":
            self._result(where, kind, text, step)
        else:
            self._ignore(unknown_code(kind))
            if carries_content(step):
                self.history.append(unknown_message(kind), where)

    def _ignore(self, code: str) -> None:
        self.counts[code] += 1
        self.records -= 1

    def _answer(self, where: str, step: dict[str, Json], text: str) -> None:
        calls = as_dicts(step.get("tool_calls"))
        if not text and not calls:  # the program asks again (ERROR_MESSAGE)
            self._ignore("empty_answer")
            return
        thought = as_str(step.get("thinking"))
        parts: list[Part] = [Reasoning(thought)] if thought else []
        parts += [Text(text)] if text else []
        for call in calls:
            arguments = call.get("args")
            if isinstance(arguments, dict):
                arguments = {name: loads_text(item) for name, item in arguments.items()}
            parts.append(ToolCall(as_str(call.get("name")), arguments))
        untrained = None if step.get("status") == "DONE" else "aborted"
        untrained = "truncated" if as_list(step.get("truncated_fields")) else untrained
        self.history.answer(where, parts, self.missing, self.model, untrained)
        self.pending = len(calls)
        # A reminder is sent once: later requests no longer hold it.
        self.missing |= {"history"} if self.reminded else set()

    def _result(self, where: str, kind: str, text: str, step: dict[str, Json]) -> None:
        """Adds the result of the next call: the log has no ids, and its order is that of calls."""
        if not self.pending:
            self.missing |= {"history"}
            self._ignore("orphan_result")
            return
        self.pending -= 1
        if as_list(step.get("truncated_fields")):
            self.missing |= {"history"}
        status = as_str(step.get("status"))
        interrupted = status in _INTERRUPTED
        result = ToolResult(
            (Text(text),) if text else (), is_error=status == "ERROR", is_interrupted=interrupted
        )
        self.history.put(where, "tool", [result])


# -- files ----------------------------------------------------------------------------------------

_FULL, _CUT = "transcript_full.jsonl", "transcript.jsonl"
_LOGS = ".system_generated"


def _is_store(folder: Listing) -> bool:
    if not (folder.is_dir("conversations") and folder.is_dir("brain")):
        return False
    return any(name.endswith((".db", ".pb")) for name in folder.folder("conversations").names())


def _holds(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    if folder in ("conversations", "implicit"):
        return file.endswith((".db", ".pb"))
    return folder.startswith("brain/") and _LOGS in folder and file in (_FULL, _CUT)


def _recognise(source: Source) -> str | None:
    """Claims a database with steps and gen_metadata, and lines with step_index and source."""
    if source.peek.kind == "folder":
        found = (_recognise(item) for item in source.members)
        if reason := next((reason for reason in found if reason), None):
            return reason
        only = all(member.name.endswith(".pb") for member in source.members)
        return "encrypted conversations" if only else None
    if source.peek.kind == "sqlite":
        found_tables = tables(source)
        has_steps = {"idx", "step_payload"} <= found_tables.get("steps", frozenset())
        if has_steps and {"idx", "data"} <= found_tables.get("gen_metadata", frozenset()):
            return "a database with steps and gen_metadata"
        return None
    if any(_is_step(value) and "type" in value for value in source.peek.objects):
        return "steps with step_index, source and type"
    return None


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a database, of a transcript, or of all in a folder."""
    names: Counter[str] = Counter()
    if source.peek.kind != "folder":
        yield from _read_file(source, _session(source), names, "")
        return
    known = set()
    for member in source.members:
        if member.name.endswith(".pb"):
            member.count_records()
            detail = "a conversation that Antigravity encrypted (before 2026)"
            yield Problem("unreadable", member.name, detail)
        elif member.name.endswith(".db"):
            session = _session(member)
            for event in _read_file(member, session, names, f"{member.name} "):
                known |= {session} if not isinstance(event, Problem | Ignored) else set()
                yield event
    full = {item.name.rpartition("/")[0] for item in source.members if item.name.endswith(_FULL)}
    for member in source.members:
        folder = member.name.rpartition("/")[0]
        if not member.name.endswith(".jsonl"):
            continue
        if _session(member) in known or (folder in full and member.name.endswith(_CUT)):
            yield Ignored("repeated_message", sum(1 for _ in member.lines()))
        else:
            yield from _read_file(member, _session(member), names, f"{member.name} ")


def _session(source: Source) -> str:
    """Returns the id in a name: conversations/ID.db, brain/ID/.system_generated/logs/…."""
    parts = source.name.split("/")
    if _LOGS in parts[1:]:
        return parts[parts.index(_LOGS) - 1]
    return parts[-1].partition(".")[0] or "session"


def _read_file(source: Source, session: str, names: Counter[str], prefix: str) -> Iterator[Event]:
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_store(source, session, names, prefix))
    else:
        history = SessionHistory(_NAME, session, f"{_NAME}/{session}", prefix)
        yield from _read_transcript(source, history, names)


READER = declared(_NAME, recognise=_recognise, read=_read, is_store=_is_store, holds=_holds)
