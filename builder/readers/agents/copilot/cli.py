"""Reads sessions of GitHub Copilot CLI: JSONL events with type, data, id and parentId.

Source: docs/formats/copilot-cli.md. The log contains the system prompt and the user's messages as
sent, but no tool definitions, and failed results shorter than they were sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event, Json
from builder.readers import Reader
from builder.readers.agents.copilot.events import CONVERSATION, EventLog
from builder.readers.homes import Home
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.sources.source import Source

NAME = "copilot-cli"

_EVENTS = CONVERSATION | {
    "assistant.turn_start", "assistant.turn_end", "assistant.reasoning", "hook.start",
    "session.model_change", "session.info", "tool.execution_start",
}  # fmt: skip


def recognise(source: Source) -> str | None:
    """Claims events of a session that VS Code did not write."""
    if is_event_log(source) and not is_by_vscode(source):
        return "events of Copilot CLI (type, data, id)"
    return None


def is_event_log(source: Source) -> bool:
    """Returns whether one of the first records is an event of Copilot."""
    return source.peek.kind in ("jsonl", "json") and any(map(_is_event, source.peek.objects))


def _is_event(value: dict[str, Json]) -> bool:
    has_data = isinstance(value.get("data"), dict) and "timestamp" in value
    return has_data and as_str(value.get("type")) in _EVENTS


def is_by_vscode(source: Source) -> bool:
    """Returns whether VS Code's chat wrote a log of events."""
    starts = [v for v in source.peek.objects if v.get("type") == "session.start"]
    return any("vscodeVersion" in as_dict(value.get("data")) for value in starts)


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each session of a file, and those of its sub-agents."""
    name = source.name.rpartition("/")[2].removesuffix(".jsonl") or "session"
    yield from EventLog(NAME, source.name, name).read(source.records())


READER = Reader(
    name=NAME,
    summary="GitHub Copilot CLI sessions: events.jsonl (type, data, id, timestamp, parentId)",
    evidence=("source", "files"),
    recognise=recognise,
    checked="1.0.102",
    homes=(Home("Copilot CLI", "~/.copilot/session-state"),),
    is_agent=True,
    read=read,
)
