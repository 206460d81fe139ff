"""Reads Antigravity's transcripts. Source: docs/formats/antigravity.md, "Transcripts"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.conversation import (
    Context,
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from builder.jsonio import loads_text
from builder.problem import Problem
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dicts, as_list, as_str, unknown_code
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_records import carries_content, unknown_message
from builder.sources.source import Source

_SOURCES = frozenset({"USER_EXPLICIT", "USER_IMPLICIT", "SYSTEM", "MODEL"})
_INSERTED = frozenset({"EPHEMERAL_MESSAGE", "SYSTEM_MESSAGE", "ERROR_MESSAGE"})
_MODEL_NAME = re.compile(r"`Model Selection` from .{1,80}? to (.{1,80}?)\.(?=\s|$)")
_INTERRUPTED = frozenset({"CANCELED", "CANCELLED", "INTERRUPTED"})


def is_step(value: dict[str, Json]) -> bool:
    """Returns whether a record is a step of a transcript."""
    return isinstance(value.get("step_index"), int) and as_str(value.get("source")) in _SOURCES


def read_transcript(
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
        if not isinstance(index, int) or not is_step(value):
            counts[unknown_code(value.get("type"))] += 1
            continue
        key = (index, as_str(value.get("type")))
        if key in found and _begins_another(found[key][1], value):
            yield from _conversation(history, found, missing, counts, names)
            history = SessionHistory(
                history.format_name, history.name, f"{history.scope}/{where}", history.prefix
            )
            found, missing = {}, set()
        counts["superseded"] += key in found
        found[key] = (where, value)
    yield from _conversation(history, found, missing, counts, names)
    yield from ignored(+counts)


def _begins_another(first: dict[str, Json], step: dict[str, Json]) -> bool:
    """Returns whether a first step is that of another conversation, by its time."""
    begins = step.get("step_index") == 0 and step.get("type") == "USER_INPUT"
    return begins and step.get("created_at") != first.get("created_at")


def _conversation(
    history: SessionHistory,
    found: dict[tuple[int, str], tuple[str, dict[str, Json]]],
    missing: set[str],
    counts: Counter[str],
    names: Counter[str],
) -> Iterator[Event]:
    steps = _Steps(history, counts=counts)
    steps.missing |= missing
    for _, (where, value) in sorted(found.items(), key=lambda item: item[0][0]):
        steps.add(where, value)
    yield from history.conversations(steps.records, names=names)


@dataclass(slots=True)
class _Steps:
    """The steps so far. `pending` is the number of calls of the last answer without a result."""

    history: SessionHistory
    counts: Counter[str]
    records: int = 0
    pending: int = 0
    model: str | None = None
    missing: set[str] = field(default_factory=lambda: {"system", "tools"})
    reminded: bool = False

    def add(self, where: str, step: dict[str, Json]) -> None:
        """Adds a step."""
        kind, text = as_str(step.get("type")), as_str(step.get("content"))
        self.records += 1
        if kind == "PLANNER_RESPONSE":
            self._answer(where, step, text)
        elif kind == "USER_INPUT":
            if model := _MODEL_NAME.search(text):
                self.model = model[1]
            self._text(where, text, harness=step.get("source") != "USER_EXPLICIT")
        elif kind in _INSERTED:
            self.reminded = self.reminded or kind == "EPHEMERAL_MESSAGE"
            self._text(where, text, harness=True)
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

    def _text(self, where: str, text: str, *, harness: bool) -> None:
        if text:
            self.history.append(Message("user", (Text(text, harness=harness),)), where)

    def _answer(self, where: str, step: dict[str, Json], text: str) -> None:
        calls = as_dicts(step.get("tool_calls"))
        if not text and not calls:  # the program asks again (ERROR_MESSAGE)
            self._ignore("empty_answer")
            return
        thought = as_str(step.get("thinking"))
        parts: list[Part] = [Reasoning(thought)] if thought else []
        parts += [Text(text)] if text else []
        parts += [
            ToolCall(as_str(call.get("name")), _arguments(call.get("args"))) for call in calls
        ]
        cut = as_list(step.get("truncated_fields"))
        unfinished = step.get("status") != "DONE"
        untrained = "truncated" if cut else "aborted" if unfinished else None
        context = Context.lacking(self.missing)
        head = RequestHead(model=self.model)
        message = Message("assistant", tuple(parts), where, untrained, context)
        self.history.append(message, where, head)
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
        self.history.append(Message("tool", (result,)), where)


def _arguments(value: Json) -> Json:
    """Returns the arguments of a call, whose values are logged as JSON texts."""
    if not isinstance(value, dict):
        return value
    return {name: loads_text(item) for name, item in value.items()}
