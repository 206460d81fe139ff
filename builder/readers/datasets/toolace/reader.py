"""Reads ToolACE rows: a system text, and turns of user, assistant and tool with calls as text.

Source: docs/formats/toolace.md. One tool turn contains the results of all calls
of the previous turn, as a list of {name, results}.
"""

from __future__ import annotations

from collections import Counter

from builder.conversation import (
    Conversation,
    Json,
    Message,
    Text,
    ToolCall,
    unknown_part,
)
from builder.jsonio import JsonFault, json_type
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.datasets.chat_rows import published
from builder.readers.datasets.toolace import text as toolace_text
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_of
from builder.readers.toolkit.rows import read_each, row_name, splits
from builder.readers.toolkit.tags import results_in_text
from builder.sources.source import Source

_ROLES = frozenset({"user", "assistant", "tool", "system", ""})
"""Roles of the dataset; copies of it in other dialects are read as those."""


def recognise(source: Source) -> str | None:
    """Claims rows with a system text that introduces functions in ToolACE's words."""
    for row in source.peek.objects:
        roles = {as_str(it, "from") for it in as_list(row.get("conversations"))}
        if roles <= _ROLES and toolace_text.lists_tools(as_str(row.get("system"))):
            return "a system text that lists functions in JSON format, with conversations"
    return None


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    turns = row.get("conversations")
    if not isinstance(turns, list):
        return Problem("unknown_shape", where, "no conversations")
    changes: Counter[str] = Counter()
    problems: tuple[Problem, ...] = ()
    system = as_str(row.get("system"))
    tools: tuple[Json, ...] | None = None
    try:
        system, tools = toolace_text.take_tools(system, changes)
    except JsonFault as fault:
        problems = (Problem("bad_tools", where, fault.detail, records=0),)
    defined = [name for tool in tools or () if (name := name_of(as_dict(tool), "name"))]
    messages = [Message("system", (Text(system),))] if system else []
    called: list[str] = []
    for item in turns:
        turn = as_dict(item)
        source, text = as_str(turn.get("from")), turn.get("value")
        if not isinstance(text, str):
            role = source if source in ("tool", "assistant") else "user"
            messages.append(Message(role, (unknown_part(f"value {json_type(text)}"),)))
            continue
        if source == "tool":
            results = results_in_text(text, called, changes, _wraps, "results")
            messages += [Message("tool", (one,)) for one in results]
        elif source == "assistant":
            parts = toolace_text.assistant_parts(text, defined)
            called = [part.name for part in parts if isinstance(part, ToolCall)]
            messages.append(Message("assistant", tuple(parts)))
        else:
            messages.append(Message(source[:40] or "none", (Text(text),)))
    if not messages:
        return Problem("no_messages", where, "the row has no messages")
    name = row_name(where, row.get("id"), names)
    return published(name, where, messages, tools, changes, problems)


def _wraps(item: dict[str, Json]) -> bool:
    """Returns whether an object in a tool turn wraps the result of a call."""
    return item.keys() == {"name", "results"}


READER = Reader(
    name="toolace",
    summary=(
        "ToolACE rows: conversations of from and value, tools in the system text, [f(a=1)] calls"
    ),
    evidence=("documentation", "parsers"),
    recognise=recognise,
    read=read_each(_row),
    splits=splits,
)
