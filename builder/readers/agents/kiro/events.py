"""Reads sessions of Kiro's IDE 1.x and of the CLI's third engine: messages.jsonl of events.

A call is logged when it ends, so the log's order is not the order of the model's responses. Each
response ends with an event on the use of the context. A turn in which every response but the last
made exactly one call is put in order by the list of used tools; in any other turn it is not known
which answer made which call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Context,
    Event,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    model_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.rows import add_records, objects
from builder.readers.toolkit.siblings import from_sibling
from builder.readers.toolkit.unknown_records import carries_content, unknown_message
from builder.sources.source import Source

_PLACEHOLDER = "..."
"""The text of a thought whose words are encrypted."""
_SCREEN = frozenset({
    "pending_interaction", "interaction_resolved", "session_event", "session_metadata",
    "usage_summary", "turn_start", "turn_end", "steering_inclusion", "session_start",
    "sub_agent_start",
})  # fmt: skip


def is_event(value: dict[str, Json]) -> bool:
    """Returns whether a record is an event of a session."""
    payload = as_dict(value.get("payload"))
    kind = as_str(payload.get("type"))
    if kind in ("tool_call", "tool_result"):
        return "toolCallId" in payload
    if kind == "assistant":
        return "operationType" in payload
    has_id = {"id", "timestamp"} <= value.keys()
    return has_id and ((kind == "user" and "content" in payload) or kind in _SCREEN)


def is_description(value: dict[str, Json]) -> bool:
    """Returns whether a record is the description of a session (session.json)."""
    return {"schemaVersion", "id", "agentMode", "workspacePaths"} <= value.keys()


def read_events(source: Source, format_name: str) -> Iterator[Event]:
    """Yields the conversations of a session."""
    folder, _, file = source.name.rpartition("/")
    is_named = file in ("messages.jsonl", "")
    name = folder.rpartition("/")[2] if is_named and folder else file.removesuffix(".jsonl")
    history = SessionHistory(format_name, name or "session", source.name)
    log = _Events(history, from_sibling(source, "session.json", _model))
    records = yield from add_records(log, objects(source.records(), "an event that is "))
    log.end_turn(is_complete=False)
    log.add_system()
    yield from history.conversations(records)


def _model(source: Source) -> str | None:
    document = source.document()
    return model_of(document, "modelId") if isinstance(document, dict) else None


@dataclass(slots=True)
class _Response:
    """One response of the model: the place of its first event, and its parts."""

    where: str = ""
    parts: list[Part] = field(default_factory=list)
    is_ended: bool = False


@dataclass(slots=True)
class _Events:
    """The events so far; those of a turn are held back until it ends.

    system     the system prompt, which is logged last
    responses  those of the turn that ended; `open` is the one that has not
    """

    history: SessionHistory
    model: str | None = None
    system: str | None = None
    missing: set[str] = field(default_factory=lambda: {"tools"})
    responses: list[_Response] = field(default_factory=list)
    open: _Response = field(default_factory=_Response)
    calls: list[tuple[str, ToolCall]] = field(default_factory=list)
    results: dict[str, ToolResult] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)

    def add(self, where: str, value: dict[str, Json]) -> str:
        """Adds an event; returns the code for ignoring it, or ""."""
        payload = as_dict(value.get("payload"))
        kind = as_str(payload.get("type"))
        if kind == "user":
            self._user(where, payload)
        elif kind == "assistant":
            self._say(where, payload)
        elif kind == "tool_call":
            call_id = name_or_none(payload.get("toolCallId"))
            call = ToolCall(as_str(payload.get("toolName")), payload.get("args"), call_id)
            self.calls.append((where, call))
        elif kind == "tool_result":
            call_id = name_or_none(payload.get("toolCallId"))
            failed = payload.get("success") is False
            parts = content(payload.get("content"))
            self.results[call_id or ""] = ToolResult(parts, call_id, is_error=failed)
        elif kind == "tombstone":
            self.end_turn(is_complete=False)
            self.history.replace()
            self.missing |= {"history"}
        elif kind in _SCREEN:
            return self._other(kind, where, payload)
        else:
            if carries_content(value) or carries_content(payload):
                self.end_turn(is_complete=False)
                self.history.append(unknown_message(kind), where)
            return unknown_code(kind)
        return ""

    def _other(self, kind: str, where: str, payload: dict[str, Json]) -> str:
        text = as_str(payload.get("content"))
        if kind == "session_start" and text:
            if payload.get("forcedRole") is True:
                self.system = text
                return ""
            if not self.history.entries:  # a sub-agent's session begins with its prompt
                self.history.append(Message("user", (Text(text),)), where)
                return ""
        if kind == "session_metadata" and payload.get("key") == "contextUsage":
            self._end_response()
        elif kind == "usage_summary":
            for summary in as_dicts(payload.get("promptTurnSummaries")):
                self.used += [as_str(name) for name in as_list(summary.get("usedTools"))]
        elif kind == "turn_end":
            self.end_turn(is_complete=payload.get("stopReason") == "end_turn")
        elif kind == "steering_inclusion" and payload.get("documents"):
            self.missing |= {"reminders"}
        return kind

    def _user(self, where: str, payload: dict[str, Json]) -> None:
        self.end_turn(is_complete=False)
        parts: list[Content] = [*content(payload.get("content"))]
        parts += [Media("image") for _ in as_list(payload.get("images"))]
        if payload.get("documents"):
            self.missing |= {"reminders"}
        if parts:
            self.history.append(Message("user", tuple(parts)), where)

    def _say(self, where: str, payload: dict[str, Json]) -> None:
        kind = as_str(payload.get("operationType"))
        self.open.where = self.open.where or where
        parts = content(payload.get("content"))
        if kind == "Reasoning":
            text = "".join(part.text for part in parts if isinstance(part, Text))
            if text.strip() not in ("", _PLACEHOLDER):
                self.open.parts.append(Reasoning(text))
            elif text:
                self.missing |= {"reasoning"}
        elif kind == "Say":
            self.open.parts += parts
        else:  # printed by the program, or a summary
            self.open.parts.append(unknown_part(kind))

    def _end_response(self) -> None:
        if self.open.where or self.calls:
            self.open.is_ended = True
            self.responses.append(self.open)
            self.open = _Response()

    def end_turn(self, *, is_complete: bool) -> None:
        """Appends the turn's answers and results to the history."""
        if self.open.where:  # a response that did not end
            self.responses.append(self.open)
            self.open = _Response()
            is_complete = False
        order = self._order() if is_complete else None
        alone = not self.calls and len(self.responses) == 1
        for at, answer in enumerate(self.responses):
            if order is not None or alone:
                self._answer(answer, (order or [])[at : at + 1])
            else:
                self._answer(replace(answer, parts=[*answer.parts, unknown_part("call_order")]), ())
        if order is None:
            for where, call in self.calls:
                self._answer(_Response(where, [unknown_part("call_order")]), (call,))
        self.responses, self.calls, self.results, self.used = [], [], {}, []

    def add_system(self) -> None:
        """Adds the system prompt, which is logged last, to the requests of the last history."""
        for entry in self.history.entries:
            if self.system and entry.request is not None and entry.message.context is not None:
                entry.request = replace(entry.request, system=self.system)
                context = Context.lacking({*entry.message.context.missing} - {"system"})
                entry.message = replace(entry.message, context=context)

    def _order(self) -> list[ToolCall] | None:
        """Returns the calls in the order of the responses that made them; None if it is unknown.

        The program asks again only after a call, so that all responses but the last made one.
        """
        if len(self.calls) != len(self.responses) - 1:
            return None
        if any((call.id or "") not in self.results for _, call in self.calls):
            return None
        left = [call for _, call in self.calls]
        names = self.used or [call.name for call in left[:1]]
        ordered: list[ToolCall] = []
        for name in names:
            same = next((call for call in left if call.name == name), None)
            if same is None:
                return None
            left.remove(same)
            ordered.append(same)
        return None if left else ordered

    def _answer(self, answer: _Response, calls: Sequence[ToolCall]) -> None:
        parts = (*answer.parts, *calls)
        if parts:
            untrained = None if answer.is_ended or calls else "aborted"
            context = Context.lacking({*self.missing, "system"})
            message = Message("assistant", parts, answer.where, untrained, context)
            self.history.append(message, answer.where, RequestHead(model=self.model))
        for call in calls:
            if (result := self.results.get(call.id or "")) is not None:
                self.history.append(Message("tool", (result,)), answer.where)
