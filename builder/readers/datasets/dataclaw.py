"""Reads rows that DataClaw exported from the sessions of several agents.

Source: docs/formats/dataclaw.md; peteromallet/dataclaw README.md and dataclaw/parsers. A row does
not show what the model saw, so it is rejected unless the user names the format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import (
    Context,
    Conversation,
    Data,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.rows import read_each, row_name, splits
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted, unknown_message
from builder.sources.source import Source

NAME = "dataclaw"
_MISSING = frozenset({"system", "tools", "reminders", "history"})
_KEYS = MESSAGE_KEYS | {"tool_uses", "content_parts"}
_COLUMNS = {"session_id", "project", "git_branch", "start_time", "end_time", "stats"}


def recognise(source: Source) -> str | None:
    """Claims rows with a session_id, and messages whose calls are in tool_uses."""
    has_rows = any(map(_is_row, source.peek.objects))
    return "rows with session_id and messages, calls in tool_uses" if has_rows else None


def _is_row(row: dict[str, Json]) -> bool:
    messages = as_dicts(row.get("messages"))
    if not messages or "session_id" not in row:
        return False
    counts = as_dict(row.get("stats"))
    return {"tool_uses", "assistant_messages"} <= counts.keys() or any(
        isinstance(use.get("tool"), str)
        for message in messages
        for use in as_dicts(message.get("tool_uses"))
    )


def _unsettled(source: Source) -> str:
    return (
        f"{source.name}: DataClaw changes results, and parallel calls look like calls one after "
        "another; read the agent's own sessions"
    )


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    if not isinstance(row.get("messages"), list):
        return Problem("not_object", where, "its messages are no list")
    read: list[Message] = []
    for item in as_list(row.get("messages")):
        read += _messages(item) if isinstance(item, dict) else [unknown_message("no object")]
    return Conversation(
        id=row_name(where, row.get("session_id"), names),
        record=where,
        messages=tuple(read),
        model=name_or_none(row.get("model")),
        records=1,
        context=Context.lacking(_MISSING),
    )


def _messages(message: dict[str, Json]) -> Iterator[Message]:
    """Yields a message, and the results of its calls."""
    parts: list[Part] = [*thoughts_of_keys(message), *content(message.get("content"))]
    kinds = (as_str(part.get("type")) for part in as_dicts(message.get("content_parts")))
    parts += [Media(kind or "file") for kind in kinds]
    logged = message.get("tool_uses")
    uses = as_dicts(logged)
    parts += map(_call, uses)
    if len(uses) < len(logged) if isinstance(logged, list) else logged is not None:
        parts.append(Unparsed(dumps(logged), "bad_call"))
    yield noted([Message(as_str(message.get("role"))[:40], tuple(parts))], message, _KEYS)[0]
    results = tuple(_result(use) for use in uses if "output" in use or "status" in use)
    if results:
        yield Message("tool", results)


def _call(use: dict[str, Json]) -> Part:
    name, given = name_or_none(use.get("tool")), use.get("input")
    if name is None:
        return Unparsed(dumps(use), "bad_call")
    # Free text stands in `raw`, and early versions wrote one argument without its name.
    is_text = isinstance(given, dict) and given.keys() == {"raw"}
    return ToolCall(name, as_dict(given)["raw"] if is_text else given)


def _result(use: dict[str, Json]) -> ToolResult:
    output = use.get("output")
    values = as_dict(output)
    text = output if isinstance(output, str) else values.get("text", values.get("output"))
    content = (Text(text),) if isinstance(text, str) else ()
    return ToolResult(
        content or ((Data(output),) if output else ()),
        name=name_or_none(use.get("tool")),
        is_error=use["status"] == "error" if "status" in use else None,
    )


READER = Reader(
    name=NAME,
    summary="rows of DataClaw: session_id and messages, calls in tool_uses (on demand)",
    evidence=("source",),
    recognise=recognise,
    unsettled=_unsettled,
    read=read_each(_row, _COLUMNS),
    splits=splits,
)
