"""Renders logged messages of Kimi Code as they are sent. Source: docs/formats/kimi-code.md."""

from __future__ import annotations

from collections.abc import Sequence

from builder.conversation import (
    Content,
    Json,
    Part,
    Reasoning,
    Text,
    ToolResult,
    Unparsed,
)
from builder.readers.toolkit.chat_messages import content_block
from builder.readers.toolkit.narrow import as_dict, as_str, one_or_many

_TIMED = frozenset({"Agent", "AgentSwarm", "Bash", "FetchURL", "Glob", "Grep", "WebSearch"})
"""Tools whose results are sent with their duration; MCP tools are, too (2.1.0)."""

INTERRUPTED = (
    "Tool execution was interrupted before its result was recorded. Do not assume the tool "
    "completed successfully."
)
"""What the agent sends for a call whose result it did not record (2.1.0)."""

_FAILED = "<system>ERROR: Tool execution failed.</system>"
_FAILED_EMPTY = "<system>ERROR: Tool execution failed. Tool output is empty.</system>"
_EMPTY = "<system>Tool output is empty.</system>"


def contents(value: Json) -> tuple[Content, ...]:
    """Returns the parts of a user message or of a result: text, a part, or a list of parts."""
    items = one_or_many(value) if value is not None else []
    return tuple(Text(item) if isinstance(item, str) else content_block(item) for item in items)


def answer_part(value: Json) -> Part | None:
    """Returns a part of an answer; None for a thought that is encrypted or empty."""
    part = as_dict(value)
    match part.get("type"):
        case "text" if isinstance(part.get("text"), str):
            return Text(as_str(part["text"]))
        case "think":
            thought = as_str(part.get("think"))
            return Reasoning(thought) if thought else None
        case kind:
            return Unparsed(as_str(kind)[:40], "unknown_part")


def is_blank(part: Json) -> bool:
    """Returns whether a part of an answer is nothing: blank text, or an empty thought."""
    value = as_dict(part)
    if value.get("type") == "text":
        return not as_str(value.get("text")).strip()
    hidden = value.get("encrypted") is not None
    return value.get("type") == "think" and not hidden and not as_str(value.get("think")).strip()


def sent_result(call_id: str, name: str, result: dict[str, Json]) -> ToolResult:
    """Returns a result as the agent sends it: with its status, its duration and its note."""
    failed = result.get("isError") is True
    parts = list(_with_status(contents(result.get("output")), failed))
    duration = result.get("durationMs")
    if isinstance(duration, int | float) and (name in _TIMED or name.startswith("mcp__")):
        header = f"Wall time: {duration / 1e3:.3f} seconds"
        if parts and isinstance(parts[0], Text):
            parts[0] = Text(f"{header}\n{parts[0].text}")
        else:
            parts.insert(0, Text(header))
    if note := as_str(result.get("note")):
        if len(parts) == 1 and isinstance(parts[0], Text):
            parts = [Text(f"{parts[0].text}\n{note}")]
        else:
            parts.append(Text(note))
    return ToolResult(tuple(parts), call_id or None, name or None, is_error=failed)


def _with_status(output: tuple[Content, ...], failed: bool) -> Sequence[Content]:
    texts = [part.text for part in output if isinstance(part, Text)]
    if len(texts) == len(output) <= 1:
        text = "".join(texts)
        if failed:
            return [Text(f"{_FAILED}\n{text}" if text else _FAILED_EMPTY)]
        empty = text.strip() in ("", "Tool output is empty.")
        return [Text(_EMPTY)] if empty else output
    if len(texts) == len(output) and not any(text.strip() for text in texts):
        return [Text(_FAILED_EMPTY if failed else _EMPTY)]
    return [Text(_FAILED), *output] if failed else output
