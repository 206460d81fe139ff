"""Reads a conversation's database of Antigravity. Source: docs/formats/antigravity.md.

The last row of `gen_metadata` holds the last request: system prompt, tools and messages. Requests
before it are built from its messages and from the reminders among the steps, which the program
removes again from later requests.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

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
from builder.problem import Problem
from builder.readers.toolkit import protobuf
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.protobuf import ProtoMessage
from builder.sources.source import Source

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


def read_store(
    source: Source, connection: sqlite3.Connection, name: str, names: Counter[str], prefix: str
) -> Iterator[Event]:
    """Yields the conversations of a database. Records are its requests and steps.

    `names`: ids that other conversations of the source have; `prefix` begins their places.
    """
    row = connection.execute(_ID).fetchone()
    session = row[0] if row and isinstance(row[0], str) and row[0] else name
    replay = _Replay(SessionHistory("antigravity", session, f"antigravity/{session}", prefix))
    problems: list[Problem] = []
    requests: list[_Request] = []
    for idx, data in connection.execute(_REQUESTS):
        source.count_records()
        try:
            requests.append(_Request.of(idx, data))
        except ValueError as error:
            problems.append(Problem("unreadable", f"gen_metadata {idx}", f"no message: {error}"))
    steps = 0
    for idx, kind, payload in connection.execute(_STEPS):
        source.count_records()
        steps += 1
        if kind in (_ANSWER, _REMINDER):
            try:
                replay.steps[idx] = (kind, protobuf.fields(payload))
            except ValueError as error:
                steps -= 1
                problems.append(Problem("unreadable", f"step {idx}", f"no message: {error}"))
    yield from problems
    whole = next((item for item in reversed(requests) if item.messages), None)
    if whole is None:
        detail = "no row of the database holds a request; the transcript is the only log"
        yield Problem("no_request", "gen_metadata", detail, records=len(requests))
        requests = []
    else:
        replay.add(whole, requests[: requests.index(whole)])
        if later := requests[requests.index(whole) + 1 :]:
            detail = "requests after the last one that the database holds"
            yield Problem("no_request", f"gen_metadata {later[0].idx}", detail, records=len(later))
            requests = requests[: requests.index(whole) + 1]
    if steps:
        yield Ignored("repeated_message" if whole is not None else "state", steps)
    yield from replay.history.conversations(len(requests), names=names)


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

    def head(self) -> RequestHead:
        """Returns what the request holds besides its messages."""
        tools = tuple(map(_tool, self.metadata.get(8, ())))
        model = protobuf.text(self.metadata, 21) or protobuf.text(self.metadata, 19)
        return RequestHead(protobuf.text(self.metadata, 1) or None, tools, model or None)

    def missing(self, later: _Request) -> set[str]:
        """Returns what the log lacks of this request, by the checksums of a later one."""
        points = self.checks.keys() & later.checks.keys()
        changed = {point for point in points if self.checks[point] != later.checks[point]}
        names = {"system"} if -1 in changed else set()
        return names | ({"history"} if changed - {-1} else set())


@dataclass(slots=True)
class _Replay:
    """The history of the requests; `steps` are the answers and reminders among the steps."""

    history: SessionHistory
    steps: dict[int, tuple[int, ProtoMessage]] = field(default_factory=dict)

    def add(self, request: _Request, earlier: list[_Request]) -> None:
        """Adds the last request, and the earlier ones whose reminders it no longer holds."""
        head = request.head()
        lacks = set() if head.system is not None else {"system"}
        entries: list[HistoryEntry] = []
        for at, value in enumerate(request.messages):
            step = protobuf.number(value, 18)
            message = _message(value, f"step {step}" if step else None)
            entry = HistoryEntry(message, f"message {at}", kind=str(step))
            if message.role == "assistant":
                entry.request = head
                entry.message = replace(message, context=Context.lacking(lacks, "rendered"))
            entries.append(entry)
        if not entries or entries[-1].message.role != "assistant":
            entries += self._answer(request, head, Context.lacking(lacks, "rendered"))
        answers = [at for at, item in enumerate(entries) if item.message.role == "assistant"]
        by_step = {step: item for item in earlier for step in item.steps}
        removed = {at: self._removed(entries, at) for at in answers[:-1]}
        rebuilt = sum(map(bool, removed.values())) <= _MAX_REBUILT
        for at in answers[:-1]:
            own = by_step.get(int(entries[at].kind))
            missing = lacks | (own.missing(request) if own is not None else set())
            if removed[at] and not rebuilt:
                missing |= {"reminders"}
            context = Context.lacking(missing, "rendered")
            entries[at].message = replace(entries[at].message, context=context)
            if removed[at] and rebuilt:
                self.history.replace([*entries[:at], *removed[at], entries[at]])
        self.history.replace(entries)

    def _removed(self, entries: list[HistoryEntry], at: int) -> list[HistoryEntry]:
        """Returns the reminders right before an answer that the last request no longer holds."""
        kept = {int(item.kind) for item in entries}
        first = max((int(item.kind) for item in entries[:at]), default=0)
        return [
            HistoryEntry(Message("user", (Text(text, harness=True),)), f"step {step}")
            for step, (kind, payload) in self.steps.items()
            if kind == _REMINDER and first < step < int(entries[at].kind) and step not in kept
            if (text := protobuf.text(_inner(payload, 103), 1))
        ]

    def _answer(
        self, request: _Request, head: RequestHead, context: Context
    ) -> Iterator[HistoryEntry]:
        """Yields the answer to the request from its step, if the request does not hold it."""
        for step in request.steps:
            kind, payload = self.steps.get(step, (0, {}))
            value = _inner(payload, 20)
            parts = _answer_parts(value, 3, protobuf.text(value, 1), value.get(7, []))
            if kind == _ANSWER and parts:
                message = Message("assistant", parts, f"step {step}", context=context)
                yield HistoryEntry(message, f"step {step}", head, kind=str(step))


def _inner(message: ProtoMessage, number: int) -> ProtoMessage:
    """Returns the message in a field; {} if it holds none."""
    try:
        return protobuf.fields(protobuf.last(message, number) or b"")
    except ValueError:
        return {}


def _message(value: ProtoMessage, turn: str | None) -> Message:
    """Returns a message of a request."""
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
        try:
            made = protobuf.fields(call)
        except ValueError:
            made = {}
        name, call_id = protobuf.text(made, 2), protobuf.text(made, 1) or None
        parts.append(ToolCall(name, protobuf.text(made, 3), call_id))
    return tuple(parts)


def _tool(value: int | bytes) -> Json:
    """Returns a definition in OpenAI's shape."""
    try:
        tool = protobuf.fields(value)
    except ValueError:
        return {}
    parameters = json_in_text(protobuf.text(tool, 3))
    name, description = protobuf.text(tool, 1), protobuf.text(tool, 2)
    return {"name": name, "description": description, "parameters": parameters}
