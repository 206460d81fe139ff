"""Reads the sessions of Continue (CLI and editor). Source: docs/formats/continue.md.

An item of the history is a record. The CLI stores results next to the calls (`toolCallStates`), the
editor has rows of role tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.conversation import (
    Event,
    Ignored,
    Json,
    Part,
    Reasoning,
    Text,
    ToolResult,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import assistant_parts, content
from builder.readers.toolkit.history import SessionHistory
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_of,
    name_or_none,
    one_or_many,
)
from builder.readers.toolkit.rows import RecordLog, add_records, objects
from builder.sources.source import Source

_IDLE = frozenset({"generating", "generated", "calling"})
"""States of calls that have no result."""
_KIRO = frozenset({"autonomyMode", "selectedModel", "sessionType"})
"""Keys of sessions of Kiro's IDE, whose layout is otherwise the same."""


def _recognise(source: Source) -> str | None:
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
    document = source.document() if source.peek.kind == "json" else None
    if not isinstance(document, dict):
        for item in source.records():  # the index, or damaged
            yield item if isinstance(item, Problem) else Ignored("index")
        return
    name, listed = as_str(document.get("sessionId")) or "session", as_list(document.get("history"))
    session = _Session(
        SessionHistory("continue", name, f"{source.name}/{name}"),
        model=name_of(document, "chatModelTitle"),
        answered={as_str(item, "message", "toolCallId") for item in as_dicts(listed)},
    )
    items = source.counted(listed, "history[{}]")
    records = yield from add_records(session, objects(items, "an item that is "))
    yield from session.history.conversations(records)


@dataclass(slots=True)
class _Session(RecordLog):
    """The messages of a session so far; `answered`: ids of calls whose result is an item."""

    model: str | None = None
    answered: set[str] = field(default_factory=set)
    thought: str = ""

    def add(self, where: str, item: dict[str, Json]) -> str:
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
                self.history.put(
                    where, "tool", [ToolResult(content(message.get("content")), call_id)]
                )
            case role:
                added = (as_str(one.get("content")) for one in as_dicts(item.get("contextItems")))
                parts: list[Part] = [Text(text, harness=True) for text in added if text]
                parts += content(message.get("content"))
                self.history.put(where, as_str(role)[:40], parts)
        if summary := as_str(item.get("conversationSummary")):
            self.history.replace()
            self.history.put(where, "user", [Text(summary, harness=True)])
            self.missing.add("history")  # how the summary is worded in the request is not logged
        return ""

    def _answer(self, item: dict[str, Json], message: dict[str, Json], where: str) -> None:
        states = as_dicts(item.get("toolCallStates"))
        logged = as_list(message.get("toolCalls")) or [state.get("toolCall") for state in states]
        parts = list(assistant_parts({**message, "tool_calls": logged}))
        thought = as_str(item, "reasoning", "text") or self.thought
        self.thought = ""
        if thought and not any(isinstance(part, Reasoning) for part in parts):
            parts.insert(0, Reasoning(thought))
        parts = [p for p in parts if not isinstance(p, Text) or p.text.strip()]
        model = name_of(as_dict(message.get("usage")), "model") or self.model
        untrained = cut_code(item) or cut_code(message)
        self.history.answer(where, parts, self.missing, model, untrained)
        for state in states:
            call_id = name_of(state, "toolCallId") or name_of(as_dict(state.get("toolCall")), "id")
            status = as_str(state.get("status"))
            if status in _IDLE or (call_id or "") in self.answered:
                continue  # it has no result, or a row of its own, which was sent
            output = one_or_many(state.get("output") or [])
            texts = [as_str(as_dict(one).get("content")) or as_str(one) for one in output]
            if status == "canceled" and not texts:
                continue
            result = ToolResult(
                (Text("\n\n".join(texts)),) if texts else (),
                call_id,
                is_error=status == "errored",
                is_interrupted=status == "canceled",
            )
            self.history.put(where, "tool", [result])


READER = declared("continue", recognise=_recognise, read=_read)
