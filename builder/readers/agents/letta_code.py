"""Reads the transcripts of Letta Code. Source: docs/formats/letta-code.md.

A line is a piece of a turn. A `tool_call` has the call and its result. The local store of newer
versions is Pi's format, which Pi's reader reads.
"""

from __future__ import annotations

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
    Unparsed,
)
from builder.readers import declared
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_str, name_or_none, unknown_code
from builder.readers.toolkit.rows import RecordLog, add_records, objects, refused
from builder.sources.source import Source

_KINDS = frozenset({"user", "assistant", "reasoning", "tool_call", "error"})


def _recognise(source: Source) -> str | None:
    for value in source.peek.objects:
        if as_str(value.get("kind")) in _KINDS and "captured_at" in value:
            return "lines with kind and captured_at"
        if _is_streamed(value):
            return "messages of Letta Code's stream-json (refused)"
    return None


def _is_streamed(value: dict[str, Json]) -> bool:
    """Returns whether a line is a message that `--output-format stream-json` prints."""
    return value.get("type") == "message" and isinstance(value.get("message_type"), str)


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversation of a transcript; a Problem for the stream of a run."""
    if any(map(_is_streamed, source.peek.objects)):
        detail = "Letta Code's stream-json has pieces of answers without the prompts before them"
        yield from refused(source, detail)
        return
    name = source.name.rpartition("/")[0].rpartition("/")[2] or "conversation"
    transcript = _Transcript(SessionHistory("letta-code", name, source.name))
    records = yield from add_records(transcript, objects(source.records(), "a line that is "))
    transcript.close()
    yield from transcript.history.conversations(records)


@dataclass(slots=True)
class _Transcript(RecordLog):
    """Collects the lines of a transcript into turns.

    `response` is the id of the response that the open turn belongs to, if the log has one.
    `is_cut`: the open turn stands beside a line that cannot be read, which may be a piece of it.
    """

    missing: set[str] = field(default_factory=lambda: {"system", "tools", "reminders"})
    seen: set[str] = field(default_factory=set)
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    response: str | None = None
    where: str = ""
    is_cut: bool = False

    def lose(self, where: str) -> None:
        """Ends the open turn: pieces of it may be lost."""
        self.is_cut = True
        self.close()
        RecordLog.lose(self, where)
        self.is_cut = True

    def add(self, where: str, value: dict[str, Json]) -> str:
        """Adds a line; returns the code for ignoring it, or ""."""
        kind, text = as_str(value.get("kind")), as_str(value.get("text"))
        line = as_str(value.get("source_line_id"))
        if line in self.seen:
            return "repeated_record"
        self.seen |= {line} - {""}
        if kind == "error":
            return "error_message"
        if kind not in _KINDS:
            return unknown_code(value.get("kind"))
        if kind == "user":
            self.close()
            self.is_cut = False
            if text.strip():
                self.history.append(Message("user", (Text(text),)), where)
            return ""
        self._continue(name_or_none(value.get("source_message_id")), is_call=kind == "tool_call")
        self.where = where
        if kind == "tool_call":
            self._call(value)
        elif text.strip():
            self.parts.append(Reasoning(text) if kind == "reasoning" else Text(text))
        return ""

    def _continue(self, response: str | None, *, is_call: bool) -> None:
        """Ends the open turn, unless the next piece belongs to it."""
        same = response is not None and response == self.response
        follows = is_call and response is None and not self.results
        if not same and not follows and (self.parts or self.results):
            had_calls = bool(self.results) or any(isinstance(p, ToolCall) for p in self.parts)
            self.close()
            if is_call and response is None and had_calls:
                self.missing.add("history")  # perhaps it was made together with the call before
        self.response = response or self.response if follows else response

    def _call(self, value: dict[str, Json]) -> None:
        name = name_or_none(value.get("name"))
        if name is None:
            self.parts.append(Unparsed(as_str(value.get("argsText")), "bad_call"))
            return
        call_id = name_or_none(value.get("source_line_id"))
        self.parts.append(ToolCall(name, value.get("argsText"), call_id))
        result = value.get("resultText")
        if isinstance(result, str):
            failed = value.get("resultOk") is False
            self.results.append(ToolResult((Text(result),), call_id, name, is_error=failed))

    def close(self) -> None:
        """Ends the open turn."""
        if self.parts:
            code, context = "truncated" if self.is_cut else None, Context.lacking(self.missing)
            answer = Message("assistant", tuple(self.parts), self.where, code, context)
            self.is_cut = False
            self.history.append(answer, self.where, RequestHead())
        for result in self.results:
            self.history.append(Message("tool", (result,)), self.where)
        self.parts, self.results, self.response = [], [], None


READER = declared("letta-code", recognise=_recognise, read=_read)
