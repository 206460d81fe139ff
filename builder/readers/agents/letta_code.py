"""Reads the transcripts of Letta Code. Source: docs/formats/letta-code.md.

A line is a piece of a turn. A `tool_call` has the call and its result. The local store of newer
versions is Pi's format, which Pi's reader reads.
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
    Unparsed,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.homes import Home
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.sources.source import Source

_NAME = "letta-code"
_KINDS = frozenset({"user", "assistant", "reasoning", "tool_call", "error"})


def _recognise(source: Source) -> str | None:
    """Claims lines with kind and captured_at."""
    for value in source.peek.objects:
        if as_str(value.get("kind")) in _KINDS and "captured_at" in value:
            return "lines with kind and captured_at"
        if _is_streamed(value):
            return "messages of Letta Code's stream-json (refused)"
    return None


def _is_streamed(value: dict[str, Json]) -> bool:
    return value.get("type") == "message" and isinstance(value.get("message_type"), str)


@dataclass(slots=True)
class _Transcript:
    """Collects the lines of a transcript into turns.

    `response` is the id of the response that the open turn belongs to, if the log has one.
    """

    history: SessionHistory
    missing: set[str] = field(default_factory=lambda: {"system", "tools", "reminders"})
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    response: str | None = None
    where: str = ""

    def add(self, value: dict[str, Json], where: str) -> None:
        """Adds a line that is part of the conversation."""
        kind, text = value.get("kind"), as_str(value.get("text"))
        if kind == "user":
            self.close()
            if text.strip():
                self.history.append(Message("user", (Text(text),)), where)
            return
        response = name_or_none(value.get("source_message_id"))
        same = response is not None and response == self.response
        follows = kind == "tool_call" and response is None and not self.results
        if not same and not follows and (self.parts or self.results):
            had_calls = bool(self.results) or any(isinstance(p, ToolCall) for p in self.parts)
            self.close()
            if kind == "tool_call" and response is None and had_calls:
                self.missing.add("history")  # perhaps it was made together with the call before
        self.response = response or self.response if follows else response
        self.where = where
        if kind == "reasoning" and text.strip():
            self.parts.append(Reasoning(text))
        elif kind == "assistant" and text.strip():
            self.parts.append(Text(text))
        elif kind == "tool_call":
            self._call(value)

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
            context = Context.lacking(self.missing)
            answer = Message("assistant", tuple(self.parts), self.where, context=context)
            self.history.append(answer, self.where, RequestHead())
        for result in self.results:
            self.history.append(Message("tool", (result,)), self.where)
        self.parts, self.results, self.response = [], [], None


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversation of a transcript; a Problem for the stream of a run."""
    if any(map(_is_streamed, source.peek.objects)):
        yield from _refused(source)
        return
    name = source.name.rpartition("/")[0].rpartition("/")[2] or "conversation"
    transcript = _Transcript(SessionHistory(_NAME, name, source.name))
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    records = 0
    for record in objects(source.records(), "a line that is "):
        if isinstance(record, Problem):
            if record.code != "truncated":
                transcript.missing.add("history")
            yield record
            continue
        where, value = record
        line = as_str(value.get("source_line_id"))
        if line and line in seen:
            counts["repeated_record"] += 1
            continue
        seen.add(line)
        if value.get("kind") == "error":
            counts["error_message"] += 1
        elif as_str(value.get("kind")) not in _KINDS:
            counts[unknown_code(value.get("kind"))] += 1
        else:
            records += 1
            transcript.add(value, where)
    transcript.close()
    yield from ignored(counts)
    yield from transcript.history.conversations(records)


def _refused(source: Source) -> Iterator[Event]:
    """Yields the Problem that stands for all lines of a stream, and those of broken lines."""
    records = 0
    for record in objects(source.records(), "a line that is "):
        if isinstance(record, Problem):
            yield record
        else:
            records += 1
    detail = "Letta Code's stream-json has pieces of answers without the prompts before them"
    yield Problem("unverified_format", "file", detail, records)


READER = Reader(
    name=_NAME,
    summary="Letta Code transcripts (JSONL): lines with kind and captured_at",
    evidence=("parsers",),
    recognise=_recognise,
    homes=(Home("Letta Code", "~/.letta/transcripts"),),
    is_agent=True,
    read=_read,
)
