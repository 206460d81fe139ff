"""Reads Cursor's agent transcripts. Source: docs/formats/cursor.md, "Transcripts"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Context, Event, Json, Part, Text
from builder.problem import Problem
from builder.readers.api.anthropic.blocks import read_message
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dict, as_str, unknown_code
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.sources.source import Source

_ROLES = frozenset({"user", "assistant", "system"})
_OTHERS = frozenset({"type", "uuid", "sessionId", "timestamp", "id"})
"""Keys of other agents' lines, none of which a transcript has."""
_KNOWN = {"error": "error_message", "turn_ended": "ui_event"}
"""Lines that are no messages: {type: the code for ignoring them}."""
_REDACTED = "[REDACTED]"


def is_line(value: dict[str, Json]) -> bool:
    """Returns whether a record is a line of a transcript."""
    message = value.get("message")
    if as_str(value.get("role")) not in _ROLES or not isinstance(message, dict):
        return False
    return "content" in message and value.keys().isdisjoint(_OTHERS)


def read_transcript(source: Source, name: str, format_name: str) -> Iterator[Event]:
    """Yields the conversation of a transcript."""
    history = SessionHistory(format_name, name, source.name)
    counts: Counter[str] = Counter()
    records = 0
    missing = {"system", "tools"}
    for record in objects(source.records(), "a line that is "):
        if isinstance(record, Problem):
            if record.code != "truncated":
                missing.add("history")
            yield record
            continue
        where, value = record
        if not is_line(value):
            kind = value.get("type")
            counts[_KNOWN.get(as_str(kind)) or unknown_code(kind)] += 1
            continue
        records += 1
        for message in read_message({**as_dict(value["message"]), "role": value["role"]}):
            if message.role != "assistant":
                if any(not isinstance(p, Text) or p.text.strip() for p in message.parts):
                    history.append(message, where)
                continue
            parts = tuple(_written(message.parts))
            hidden = parts != message.parts
            if parts:
                context = Context.lacking(missing)
                changes = ("redaction_mark",) if hidden else ()
                answer = replace(message, parts=parts, turn=where, context=context)
                history.append(answer, where, RequestHead(), changes)
            missing |= {"reasoning"} if hidden else set()
    yield from ignored(counts)
    yield from history.conversations(records)


def _written(parts: tuple[Part, ...]) -> Iterator[Part]:
    """Yields the parts without empty texts and the mark that stands for withheld reasoning."""
    for part in parts:
        if not isinstance(part, Text):
            yield part
            continue
        text = part.text
        if text.rstrip().endswith(_REDACTED):
            text = text.rstrip().removesuffix(_REDACTED).rstrip()
        if text.strip():
            yield replace(part, text=text)
