"""Reads the sessions of Continue (CLI and editor). Source: docs/formats/continue.md.

An item of the history is a record. The CLI stores results next to the calls (`toolCallStates`), the
editor has rows of role tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.conversation import (
    Content,
    Context,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolResult,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.homes import Home
from builder.readers.toolkit.chat_messages import assistant_parts, content
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_of,
    name_or_none,
    one_or_many,
)
from builder.readers.toolkit.rows import objects
from builder.sources.source import Source

_NAME = "continue"
_IDLE = frozenset({"generating", "generated", "calling"})
"""States of calls that have no result."""
_KIRO = frozenset({"autonomyMode", "selectedModel", "sessionType"})
"""Keys of sessions of Kiro's IDE, whose layout is otherwise the same."""


def _recognise(source: Source) -> str | None:
    """Claims sessions with a history of messages, and the index of the sessions."""
    for value in source.peek.objects:
        if not {"sessionId", "workspaceDirectory"} <= value.keys():
            continue
        history = value.get("history")
        items = as_dicts(history)
        if value.keys() & _KIRO or any("executionId" in item for item in items):
            continue
        if isinstance(history, list) and all("message" in item for item in items[:3]):
            return "a session with workspaceDirectory and history"
        if "history" not in value and "dateCreated" in value:
            return "the index of the sessions"
    return None


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session."""
    document = source.document() if source.peek.kind == "json" else None
    if isinstance(document, dict):
        items = source.counted(as_list(document.get("history")), "history[{}]")
        session = _Session(source.name, document)
        for record in objects(items, "an item that is "):
            if isinstance(record, Problem):
                session.missing.add("history")
                yield record
            else:
                session.add(record[1], record[0])
        yield from session.conversations()
        return
    for item in source.records():  # the index, or damaged
        yield item if isinstance(item, Problem) else Ignored("index")


def _content(value: Json) -> tuple[Content, ...]:
    """Returns the parts of a message; images have a type of Continue's own."""
    if not isinstance(value, list):
        return content(value)
    items: list[Json] = []
    for part in value:
        is_image = as_dict(part).get("type") == "imageUrl"
        items.append({"type": "image"} if is_image else part)
    return content(items)


@dataclass(slots=True)
class _Session:
    """The messages of a session so far."""

    source_name: str
    document: dict[str, Json]
    history: SessionHistory = field(init=False)
    missing: set[str] = field(default_factory=lambda: {"system", "tools"})
    thought: str = ""
    records: int = 0
    answered: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begins the history."""
        name = as_str(self.document.get("sessionId")) or "session"
        self.history = SessionHistory(_NAME, name, f"{self.source_name}/{name}")
        self.answered = {
            as_str(item, "message", "toolCallId") for item in as_dicts(self.document.get("history"))
        }

    def add(self, item: dict[str, Json], where: str) -> None:
        """Adds an item of the history."""
        self.records += 1
        message = as_dict(item.get("message"))
        match message.get("role"):
            case "assistant":
                self._answer(item, message, where)
            case "thinking":
                self.thought = as_str(message.get("content"))
                if message.get("redactedThinking"):
                    self.missing.add("reasoning")
            case "tool":
                call_id = name_or_none(message.get("toolCallId"))
                result = ToolResult(content(message.get("content")), call_id)
                self.history.append(Message("tool", (result,)), where)
            case role:
                parts: list[Part] = [
                    Text(as_str(one.get("content")), harness=True)
                    for one in as_dicts(item.get("contextItems"))
                    if as_str(one.get("content"))
                ]
                parts += _content(message.get("content"))
                if parts:
                    self.history.append(Message(as_str(role)[:40], tuple(parts)), where)
        if summary := as_str(item.get("conversationSummary")):
            self.history.replace()
            self.history.append(Message("user", (Text(summary, harness=True),)), where)
            self.missing.add("history")  # how the summary is worded in the request is not logged

    def _answer(self, item: dict[str, Json], message: dict[str, Json], where: str) -> None:
        states = as_dicts(item.get("toolCallStates"))
        logged = as_list(message.get("toolCalls")) or [state.get("toolCall") for state in states]
        parts = list(assistant_parts({**message, "tool_calls": logged}))
        thought = as_str(item, "reasoning", "text") or self.thought
        self.thought = ""
        if thought and not any(isinstance(part, Reasoning) for part in parts):
            parts.insert(0, Reasoning(thought))
        parts = [p for p in parts if not isinstance(p, Text) or p.text.strip()]
        if parts:
            model = name_of(as_dict(message.get("usage")), "model") or self._model()
            context = Context.lacking(self.missing)
            answer = Message("assistant", tuple(parts), where, context=context)
            self.history.append(answer, where, RequestHead(model=model))
        for state in states:
            call_id = name_or_none(state.get("toolCallId")) or name_of(
                as_dict(state.get("toolCall")), "id"
            )
            if as_str(state.get("status")) in _IDLE or (call_id or "") in self.answered:
                continue  # it has no result, or a row of its own, which was sent
            output = one_or_many(state.get("output") or [])
            texts = [as_str(as_dict(one).get("content")) or as_str(one) for one in output]
            if state.get("status") == "canceled" and not texts:
                continue
            result = ToolResult(
                (Text("\n\n".join(texts)),) if texts else (),
                call_id,
                is_error=state.get("status") == "errored",
                is_interrupted=state.get("status") == "canceled",
            )
            self.history.append(Message("tool", (result,)), where)

    def _model(self) -> str | None:
        return name_of(self.document, "chatModelTitle")

    def conversations(self) -> Iterator[Event]:
        """Yields the conversations of the session."""
        yield from self.history.conversations(self.records)


READER = Reader(
    name=_NAME,
    summary="Continue sessions (JSON): sessionId, workspaceDirectory and a history of messages",
    evidence=("source", "files"),
    recognise=_recognise,
    homes=(Home("Continue", "${CONTINUE_GLOBAL_DIR:-~/.continue}/sessions"),),
    is_agent=True,
    checked="1.5.47",
    read=_read,
)
