"""Reads rows that Harbor's exporter for fine-tuning makes of ATIF trajectories.

A row (episode) is a prefix of its trial, so only the longest is used. System texts and results are
user messages, calls are text. Source: docs/formats/atif.md.
"""

from __future__ import annotations

from collections import Counter

from builder.conversation import Conversation, Json, Message, Part, ToolResult
from builder.jsonio import JsonFault
from builder.problem import Problem
from builder.readers.toolkit import function_text, tags
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.made_up import end_at_made_up
from builder.readers.toolkit.narrow import as_dicts, as_list, as_str, name_or_none

ENDING = frozenset({"finish", "mark_task_complete"})
"""Tools with which Harbor's agents end their run; nothing answers these calls."""


def is_row(item: dict[str, Json]) -> bool:
    """Returns whether an object is a row of Harbor's exporter."""
    return isinstance(item.get("conversations"), list) and {"episode", "trial_name"} <= item.keys()


def extends(later: dict[str, Json], earlier: dict[str, Json]) -> bool:
    """Returns whether a row continues the messages of an earlier row of its trial."""
    if any(later.get(key) != earlier.get(key) for key in ("run_id", "trial_name")):
        return False
    messages, before = as_list(later.get("conversations")), as_list(earlier.get("conversations"))
    return len(messages) > len(before) and messages[: len(before)] == before


def read_row(where: str, row: dict[str, Json], name: str) -> Conversation | Problem:
    """Returns the conversation of a row."""
    items = as_dicts(row.get("conversations"))
    if not items:
        return Problem("no_messages", where, "the row contains no messages")
    changes: Counter[str] = Counter()
    tools: tuple[Json, ...] | None = None
    texts = [as_str(item.get("content")) for item in items]
    roles = [as_str(item.get("role")) for item in items]
    tagged = any(
        role == "assistant" and "<tool_call>" in text
        for role, text in zip(roles, texts, strict=True)
    )
    if roles[:2] == ["user", "user"]:
        roles[0] = "system"
        changes["system_as_user"] += 1
    messages: list[Message] = []
    for item, role, text in zip(items, roles, texts, strict=True):
        if role in ("system", "user") and not messages and text:
            rest, tools = _definitions(text, tagged, changes)
            messages.append(Message(role, content(rest)))
        elif role == "assistant" and text:
            messages.append(Message(role, _answer(text, tagged, tools, changes)))
        elif role == "user" and messages and calls(messages[-1]):
            messages.append(Message("tool", (ToolResult(content(item.get("content"))),)))
        else:
            messages.append(Message(role, content(item.get("content"))))
    return Conversation(
        id=name,
        record=where,
        messages=end_at_made_up(messages),
        tools=tools,
        model=name_or_none(row.get("model")),
        records=1,
        changes=changes,
        complete=any(call.name in ENDING for call in calls(messages[-1])),
        outcome=_outcome(row),
    )


def _outcome(row: dict[str, Json]) -> dict[str, Json] | None:
    """Returns `result` as the reward if it is a number or its text, else as an error's name."""
    result = row.get("result")
    if not isinstance(result, str | int | float) or result == "":
        return None
    try:
        float(result)
    except ValueError:
        return {"error": result}
    return {"reward": result}


def _definitions(
    text: str, tagged: bool, changes: Counter[str]
) -> tuple[str, tuple[Json, ...] | None]:
    if tagged:
        try:
            return tags.take_tools(text, changes)
        except JsonFault:
            return text, None
    return function_text.take_definitions(text, changes)


def _answer(
    text: str, tagged: bool, tools: tuple[Json, ...] | None, changes: Counter[str]
) -> tuple[Part, ...]:
    if tagged:
        return tuple(tags.assistant_parts(text, changes))
    return function_text.assistant_parts(text, function_text.parameter_types(tools), None, changes)
