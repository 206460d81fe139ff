"""Reads Factory's Droid: sessions, and what `droid exec --output-format stream-json` prints.

Source: docs/formats/droid.md. Neither holds the system prompt or definitions of tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Context,
    Data,
    Event,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from builder.readers import Reader
from builder.readers.api.anthropic import read_message
from builder.readers.homes import Home
from builder.readers.toolkit.chat_messages import text_or_data
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_str,
    json_in_text,
    name_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.rows import add_records, objects
from builder.readers.toolkit.siblings import from_sibling
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.source import Source

_NAME = "droid"

_STATE = frozenset({
    "session_start", "session_end", "todo_state", "session_settings", "agent_turn_outcome",
    "system",
})  # fmt: skip
"""Records that are in no request."""
_INJECTED = ("<system-reminder>", "Contents of ")
_REMINDER_END = "</system-reminder>"
_SENT = {
    "Create": "The file {} has been created successfully.",
    "Edit": "The file {} has been updated successfully.",
}
"""What is sent for the result of a tool, of which the log has an object for the screen (0.225)."""


def _recognise(source: Source) -> str | None:
    """Claims a session_start with cwd, and streams with tool_call, message or completion rows."""
    for value in source.peek.objects:
        kind = value.get("type")
        if kind == "session_start" and {"id", "cwd"} <= value.keys():
            return "a session_start with cwd"
        if _is_settings(value):
            return "a session's settings (autonomyMode, tokenUsage)"
        if _session(value) is None:
            continue
        if kind == "message" and isinstance(value.get("text"), str) and "role" in value:
            return "messages of stream-json with role and text"
        if kind == "tool_call" and {"toolName", "parameters"} <= value.keys():
            return "tool_call rows of stream-json"
    return None


def _unsettled(source: Source) -> str | None:
    """Returns why the meaning of stream-json is not settled."""
    if any(value.get("type") == "session_start" for value in source.peek.objects):
        return None
    if any(map(_is_settings, source.peek.objects)):
        return None
    return "droid's stream-json is known from fixtures of other programs only"


def _is_settings(value: dict[str, Json]) -> bool:
    return {"autonomyMode", "tokenUsage"} <= value.keys()


def _session(value: dict[str, Json]) -> str | None:
    return name_of(value, "session_id", "sessionId")


def _model(source: Source) -> str | None:
    document = source.document()
    return name_or_none(document.get("model")) if isinstance(document, dict) else None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversation of a session or stream."""
    stem = source.name.rpartition("/")[2].removesuffix(".jsonl") or "session"
    log = _Log(SessionHistory(_NAME, stem, source.name))
    log.model = from_sibling(source, f"{stem}.settings.json", _model)
    records = yield from add_records(log, objects(source.records(), "a record that is "))
    yield from log.history.conversations(records, version=log.version)


def _version(value: dict[str, Json]) -> str | None:
    return name_or_none(value.get("version")) if value.get("type") == "session_start" else None


@dataclass(slots=True)
class _Log:
    """The records so far. `turn` is the id of the answer to which the next record may belong."""

    history: SessionHistory
    model: str | None = None
    version: str | None = None
    turn: str | None = None
    last_text: str = ""
    names: dict[str | None, str] = field(default_factory=dict)
    missing: set[str] = field(default_factory=lambda: {"system", "tools"})

    def add(self, where: str, value: dict[str, Json]) -> str:
        """Adds a record; returns the code for ignoring it, or ""."""
        self.version = self.version or _version(value)
        kind = value.get("type")
        if _is_settings(value):
            return "state"
        if kind in ("session_start", "system"):
            if name := name_or_none(value.get("id" if kind == "session_start" else "session_id")):
                self.history.name = name
            self.model = self.model or name_or_none(value.get("model"))
            return "state"
        if kind == "message" and isinstance(value.get("message"), dict):
            begun = len(self.history.entries)
            self._message(where, as_dict(value["message"]))
            for entry in self.history.entries[begun:]:
                entry.kind = as_str(value.get("id"))
        elif kind == "message" and isinstance(value.get("text"), str):
            self._text(where, as_str(value.get("role")), as_str(value["text"]))
        elif kind == "tool_call" and "toolName" in value:
            call_id = name_of(value, "toolCallId", "id")
            call = ToolCall(as_str(value.get("toolName")), value.get("parameters"), call_id)
            self._answer(where, (call,))
        elif kind == "tool_result" and "value" in value:
            self._result(where, value)
        elif kind == "completion" and isinstance(value.get("finalText"), str):
            text = as_str(value["finalText"])
            if text == self.last_text or not text:
                return "repeated_message"
            self._text(where, "assistant", text)
        elif kind == "error":
            return "error_message"
        elif kind == "compaction_state":
            self._compact(where, value)
        elif as_str(kind) in _STATE:
            return "state"
        else:
            if carries_content(value):
                self._other(unknown_message(kind), where)
            return unknown_code(kind)
        return ""

    def _compact(self, where: str, value: dict[str, Json]) -> None:
        """Replaces the messages up to the anchor by the summary, whose wording is not known."""
        entries = self.history.entries
        anchor = as_str(value, "anchorMessage", "id")
        last = max((at for at, entry in enumerate(entries) if entry.kind == anchor), default=None)
        kept = [] if last is None else entries[last + 1 :]
        self.history.replace()
        self.missing |= {"history"}
        if summary := as_str(value.get("summaryText")):
            self._other(Message("user", (Text(summary, harness=True),)), where)
        self.history.entries += kept
        self.turn = None

    def _message(self, where: str, value: dict[str, Json]) -> None:
        role = as_str(value.get("role"))
        messages = read_message(value)
        results = [part for item in messages for part in item.parts if isinstance(part, ToolResult)]
        if len(results) > 1 and any(isinstance(part, Media) for r in results for part in r.content):
            self.missing |= {"history"}  # calls beside that of an image may not be sent again
        for message in messages:
            if message.role == "assistant":
                model = name_of(value, "modelId")
                self._answer(where, message.parts, model, message.unknown)
            elif role == "user" and message.role == "user":
                parts = tuple(
                    _marked(part, is_first=at == 0) for at, part in enumerate(message.parts)
                )
                self._other(Message("user", parts, unknown=message.unknown), where)
            else:
                self._other(replace(message, parts=tuple(map(self._sent, message.parts))), where)

    def _sent(self, part: Part) -> Part:
        """Returns a result as it was sent; one whose text is not known leaves a gap."""
        texts = part.content if isinstance(part, ToolResult) else ()
        text = texts[0].text if len(texts) == 1 and isinstance(texts[0], Text) else ""
        shown = as_dict(json_in_text(text)) if text.startswith('{"success":true,') else {}
        if not isinstance(part, ToolResult) or "file_path" not in shown:
            return part
        wording = _SENT.get(self.names.get(part.call_id, ""))
        if wording is None:
            self.missing |= {"history"}
            return part
        return replace(part, content=(Text(wording.format(as_str(shown["file_path"]))),))

    def _text(self, where: str, role: str, text: str) -> None:
        if role == "assistant":
            if text:
                self._answer(where, (Text(text),))
                self.last_text = text
        else:
            self._other(Message(role[:40], (_marked(Text(text), is_first=True),)), where)

    def _result(self, where: str, value: dict[str, Json]) -> None:
        content = text_or_data(value.get("value"), compact=True)
        if any(isinstance(part, Data) for part in content):
            self.missing |= {"history"}  # as the client keeps it, not as it was sent
        call_id = name_of(value, "toolCallId", "id")
        result = ToolResult(content, call_id, is_error=value.get("isError") is True)
        self._other(Message("tool", (result,)), where)

    def _other(self, message: Message, where: str) -> None:
        self.turn, self.last_text = None, ""
        self.history.append(message, where)

    def _answer(
        self,
        where: str,
        parts: tuple[Part, ...],
        model: str | None = None,
        unknown: tuple[str, ...] = (),
    ) -> None:
        """Adds a row of an answer: rows in a row are one response, without an id of it."""
        if not parts:
            return
        self.names |= {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        self.turn = self.turn or where
        context = Context.lacking(self.missing)
        message = Message("assistant", parts, self.turn, context=context, unknown=unknown)
        self.history.append(message, where, RequestHead(model=model or self.model))


def _marked(part: Part, *, is_first: bool) -> Part:
    """Marks a text of the program: a reminder alone, or the contents of a mentioned file."""
    if not isinstance(part, Text):
        return part
    text = part.text.strip()
    alone = text.startswith(_INJECTED[0]) and text.endswith(_REMINDER_END)
    return Text(part.text, harness=alone or (not is_first and text.startswith(_INJECTED)))


READER = Reader(
    name=_NAME,
    summary=(
        "Factory Droid: sessions (a session_start with cwd, then messages), and the output of "
        "droid exec --output-format stream-json"
    ),
    evidence=("files", "parsers"),
    recognise=_recognise,
    checked="0.225.2",
    homes=(Home("Droid", "~/.factory/sessions"), Home("Droid", "~/.factory/.factory/sessions")),
    is_agent=True,
    read=read,
    unsettled=_unsettled,
)
