"""Reads sessions of Kiro's CLI: JSONL lines of version, kind and data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.conversation import (
    Context,
    Event,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    unknown_part,
)
from builder.readers.agents.kiro.parts import model_id, result, stand_in
from builder.readers.toolkit.chat_messages import results_apart
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_or_none, unknown_code
from builder.readers.toolkit.rows import add_records, objects
from builder.readers.toolkit.siblings import from_sibling
from builder.readers.toolkit.unknown_records import carries_content, unknown_message
from builder.sources.source import Source


def is_line(value: dict[str, Json]) -> bool:
    """Returns whether a record is a line of a session."""
    data = as_dict(value.get("data"))
    return isinstance(value.get("kind"), str) and "version" in value and "message_id" in data


def is_state(value: dict[str, Json]) -> bool:
    """Returns whether a record is the state next to a session's lines."""
    state = as_dict(value.get("session_state"))
    return "session_id" in value and "conversation_metadata" in state


def read_session(source: Source, format_name: str) -> Iterator[Event]:
    """Yields the conversations of a session's lines."""
    stem = source.name.rpartition("/")[2].removesuffix(".jsonl").removesuffix(".json") or "session"
    history = SessionHistory(format_name, stem, source.name)
    log = _Log(history, from_sibling(source, f"{stem}.json", _model))
    records = yield from add_records(log, objects(source.records(), "a line that is "))
    yield from history.conversations(records)


def _model(source: Source) -> str | None:
    document = source.document()
    state = as_dict(document, "session_state") if isinstance(document, dict) else {}
    return model_id(as_dict(state.get("rts_model_state")))


@dataclass(slots=True)
class _Log:
    """The lines so far. `again` is the entry that the next line repeats, after a rewind."""

    history: SessionHistory
    model: str | None = None
    missing: set[str] = field(default_factory=lambda: {"system", "tools"})
    again: int | None = None

    def add(self, where: str, value: dict[str, Json]) -> str:
        """Adds a line; returns the code for ignoring it, or ""."""
        kind, data = value.get("kind"), as_dict(value.get("data"))
        if is_state(value):
            return "state"
        name = as_str(data.get("message_id"))
        if self._repeats(name):
            return "repeated_message"
        parts = [part for item in as_dicts(data.get("content")) for part in _parts(item)]
        if kind == "AssistantMessage":
            if parts:
                context = Context.lacking(self.missing)
                message = Message(
                    "assistant", tuple(parts), name or where, stand_in(parts), context
                )
                self._append(message, where, name, RequestHead(model=self.model))
        elif kind in ("Prompt", "ToolResults"):
            for role, sent in zip(("tool", "user"), results_apart(parts), strict=True):
                if sent:
                    self._append(Message(role, sent), where, name)
        else:
            if carries_content(value):
                self._append(unknown_message(kind), where, name)
            return unknown_code(kind)
        return ""

    def _append(
        self, message: Message, where: str, name: str, head: RequestHead | None = None
    ) -> None:
        if self.again is not None:
            self.history.rewind(self.again)
            self.again = None
        self.history.append(message, where, head, kind=name)

    def _repeats(self, name: str) -> bool:
        """Returns whether a line repeats a message: a rewind writes the kept ones again."""
        names = [entry.kind for entry in self.history.entries]
        if not name or name not in names:
            return False
        at = self.again
        if at is None or names[at : at + 1] != [name]:
            at = names.index(name)
        while names[at : at + 1] == [name]:  # a line may be several messages
            at += 1
        self.again = at
        return True


def _parts(item: dict[str, Json]) -> Iterator[Part]:
    """Yields the parts of an item of a line's content."""
    kind, data = as_str(item.get("kind")), item.get("data")
    value = as_dict(data)
    if kind == "text" and isinstance(data, str):
        if data:
            yield Text(data)
    elif kind == "toolUse":
        call_id = name_or_none(value.get("toolUseId"))
        yield ToolCall(as_str(value.get("name")), value.get("input"), call_id)
    elif kind == "toolResult":
        yield result(value, "toolUseId")
    elif kind == "image":
        yield Media("image")
    else:
        yield unknown_part(kind)
