"""Reads a session of Grok Build that is known from its updates.jsonl only (ACP notifications).

They are what the screen got: texts in pieces, calls with parsed arguments, and results as objects
of the program, not the texts that the model read.
"""

from __future__ import annotations

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
from builder.problem import Problem
from builder.readers.toolkit.chat_messages import text_or_data
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dict, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_records import carries_content, unknown_message
from builder.sources.source import Source

_ENDED = frozenset({"completed", "failed"})
_STATE = frozenset({
    "tool_call_update", "turn_completed", "plan", "available_commands_update",
    "current_mode_update", "usage_update",
})  # fmt: skip


def is_update(value: dict[str, Json]) -> bool:
    """Returns whether a record is a notification of Grok's."""
    params = as_dict(value.get("params"))
    update = as_dict(params.get("update"))
    own = "eventId" in as_dict(params.get("_meta")) or "_x.ai/" in as_str(value.get("method"))
    return own and isinstance(update.get("sessionUpdate"), str)


def read_updates(source: Source, format_name: str) -> Iterator[Event]:
    """Yields the conversation of a session's notifications."""
    log = _Updates(SessionHistory(format_name, "session", source.name))
    counts: Counter[str] = Counter()
    for record in objects(source.json_lines(), "a notification that is "):
        if isinstance(record, Problem):
            yield record
        else:
            counts[log.add(*record)] += 1
    log.flush()
    records = counts.pop("", 0)
    yield from ignored(counts)
    yield from log.history.conversations(records)


@dataclass(slots=True)
class _Updates:
    """The notifications so far: pieces of the prompt or of the answer, and results of its calls."""

    history: SessionHistory
    model: str | None = None
    where: str = ""
    asked: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    missing: set[str] = field(default_factory=lambda: {"system", "tools", "reminders"})

    def add(self, where: str, value: dict[str, Json]) -> str:
        """Adds a notification; returns the code for ignoring it, or ""."""
        params = as_dict(value.get("params"))
        update = as_dict(params.get("update"))
        kind = as_str(update.get("sessionUpdate"))
        text = as_str(update, "content", "text")
        self.history.name = as_str(params.get("sessionId")) or self.history.name
        self.model = name_or_none(as_dict(update.get("_meta")).get("modelId")) or self.model
        if kind == "user_message_chunk":
            if self.parts:
                self.flush()
            self.where = self.where or where
            self.asked.append(text)
        elif kind in ("agent_message_chunk", "agent_thought_chunk"):
            self._begin(where)
            self._write(Text(text) if kind == "agent_message_chunk" else Reasoning(text))
        elif kind == "tool_call":
            self._begin(where)
            call_id = name_or_none(update.get("toolCallId"))
            self.parts.append(
                ToolCall(as_str(update.get("title")), update.get("rawInput"), call_id)
            )
        elif kind == "tool_call_update" and as_str(update.get("status")) in _ENDED:
            content = text_or_data(update.get("rawOutput", update.get("content")))
            failed = update.get("status") == "failed"
            call_id = name_or_none(update.get("toolCallId"))
            self.results.append(ToolResult(content, call_id, is_error=failed))
        else:
            if kind in _STATE:
                return "state"
            if carries_content(update):
                self.flush()
                self.history.append(unknown_message(kind), where)
            return unknown_code(kind)
        return ""

    def _begin(self, where: str) -> None:
        """Begins an answer after a prompt or results."""
        if self.asked or self.results:
            self.flush()
        self.where = self.where or where

    def _write(self, piece: Text | Reasoning) -> None:
        last = self.parts[-1] if self.parts else None
        if type(last) is type(piece) and isinstance(last, Text | Reasoning):
            self.parts[-1] = type(piece)(last.text + piece.text)
        elif piece.text:
            self.parts.append(piece)

    def flush(self) -> None:
        """Appends the prompt, or the answer and the results of its calls."""
        where = self.where
        if prompt := "".join(self.asked):
            self.history.append(Message("user", (Text(prompt),)), where)
        if self.parts:
            context = Context.lacking(self.missing)
            answer = Message("assistant", tuple(self.parts), where, context=context)
            self.history.append(answer, where, RequestHead(model=self.model))
        if self.results:
            self.history.append(Message("tool", tuple(self.results)), where)
            self.missing |= {"history"}
        self.where, self.asked, self.parts, self.results = "", [], [], []
