"""Reads the sessions of Factory's Droid. Source: docs/formats/droid.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import Context, Event, Json, Media, Message, Part, Text, ToolResult
from builder.readers import declared
from builder.readers.api.anthropic import read_message
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_str,
    json_in_text,
    name_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.rows import RecordLog, add_records, objects, refused
from builder.readers.toolkit.siblings import from_sibling
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.source import Source

_STATE = frozenset({"session_end", "todo_state", "session_settings", "agent_turn_outcome"})
"""Records that are in no request."""
_INJECTED = ("<system-reminder>", "Contents of ")
_REMINDER_END = "</system-reminder>"
_SENT = {
    "Create": "The file {} has been created successfully.",
    "Edit": "The file {} has been updated successfully.",
}
"""What is sent for the result of a tool, of which the log has an object for the screen (0.225)."""


def _recognise(source: Source) -> str | None:
    for value in source.peek.objects:
        if value.get("type") == "session_start" and {"id", "cwd"} <= value.keys():
            return "a session_start with cwd"
        if _is_settings(value):
            return "a session's settings (autonomyMode, tokenUsage)"
    return "stream-json (refused)" if any(map(_is_streamed, source.peek.objects)) else None


def _is_settings(value: dict[str, Json]) -> bool:
    return {"autonomyMode", "tokenUsage"} <= value.keys()


def _is_streamed(value: dict[str, Json]) -> bool:
    """Returns whether a row is of `droid exec --output-format stream-json`."""
    if name_of(value, "session_id", "sessionId") is None:
        return False
    is_text = value.get("type") == "message" and isinstance(value.get("text"), str)
    is_call = value.get("type") == "tool_call" and {"toolName", "parameters"} <= value.keys()
    return (is_text and "role" in value) or is_call


def _model(source: Source) -> str | None:
    document = source.document()
    return name_or_none(document.get("model")) if isinstance(document, dict) else None


def _read(source: Source) -> Iterator[Event]:
    has_start = any(value.get("type") == "session_start" for value in source.peek.objects)
    if any(map(_is_streamed, source.peek.objects)) and not has_start:
        yield from refused(source, "stream-json is known from fixtures of other programs only")
        return
    stem = source.name.rpartition("/")[2].removesuffix(".jsonl") or "session"
    log = _Log(SessionHistory("droid", stem, source.name))
    log.model = from_sibling(source, f"{stem}.settings.json", _model)
    records = yield from add_records(log, objects(source.records(), "a record that is "))
    yield from log.history.conversations(records, version=log.version)


@dataclass(slots=True)
class _Log(RecordLog):
    """The records so far. `turn` is the id of the answer to which the next record may belong."""

    model: str | None = None
    version: str | None = None
    turn: str | None = None
    names: dict[str | None, str] = field(default_factory=dict)

    def lose(self, where: str) -> None:
        """Ends the open answer: rows of it may be lost."""
        RecordLog.lose(self, where)
        self.turn = None

    def add(self, where: str, value: dict[str, Json]) -> str:
        kind = as_str(value.get("type"))
        if kind == "message" and isinstance(value.get("message"), dict):
            begun = len(self.history.entries)
            self._message(where, as_dict(value["message"]))
            for entry in self.history.entries[begun:]:
                entry.kind = as_str(value.get("id"))
        elif kind == "compaction_state":
            self._compact(where, value)
        elif kind == "session_start":
            model = name_or_none(value.get("model"))
            if self.history.is_other(value.get("id")):
                self.history.replace()
                self.model, self.turn = model, None
            else:
                self.history.name = name_or_none(value.get("id")) or self.history.name
            self.version = self.version or name_or_none(value.get("version"))
            self.model = self.model or model
            return "state"
        elif kind in _STATE or _is_settings(value):
            return "state"
        else:
            if carries_content(value):
                self._other(unknown_message(kind or value.get("type")), where)
            return unknown_code(value.get("type"))
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
        """Adds a message; rows of an answer in a row are one response, without an id of it."""
        messages = read_message(value)
        results = [part for item in messages for part in item.parts if isinstance(part, ToolResult)]
        if len(results) > 1 and any(isinstance(part, Media) for r in results for part in r.content):
            self.missing |= {"history"}  # calls beside that of an image may not be sent again
        for message in messages:
            if message.role == "assistant":
                if message.parts:
                    self.names |= {call.id: call.name for call in calls(message)}
                    self.turn = self.turn or where
                    answer = replace(
                        message,
                        turn=self.turn,
                        model=None,
                        untrained=cut_code(value),
                        context=Context.lacking(self.missing),
                    )
                    head = RequestHead(model=name_of(value, "modelId") or self.model)
                    self.history.append(answer, where, head)
            elif value.get("role") == message.role == "user":
                marked = (_marked(part, is_first=not at) for at, part in enumerate(message.parts))
                self._other(replace(message, parts=tuple(marked)), where)
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

    def _other(self, message: Message, where: str) -> None:
        self.turn = None
        self.history.append(message, where)


def _marked(part: Part, *, is_first: bool) -> Part:
    """Marks a text of the program: a reminder alone, or the contents of a mentioned file."""
    if not isinstance(part, Text):
        return part
    text = part.text.strip()
    alone = text.startswith(_INJECTED[0]) and text.endswith(_REMINDER_END)
    return Text(part.text, harness=alone or (not is_first and text.startswith(_INJECTED)))


READER = declared("droid", recognise=_recognise, read=_read)
