"""Reads ToolMind rows: turns of role and content, with tools; only the last turn is a target.

Source: docs/formats/toolmind.md; neulab/agent-data-protocol datasets/toolmind
@f137bb25. A row repeats the turns before its target without their reasoning. They are targets of
other rows, so they are repeats here, and a call in several rows with the same beginning is one
call. Nothing has ids; results pair with calls by order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from builder.conversation import REPEAT, Conversation, Json, Message, Reasoning
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.dialects import ROLES
from builder.readers.datasets.chat_rows import read_chat
from builder.readers.toolkit.narrow import as_dicts, as_list, as_str
from builder.readers.toolkit.rows import read_each, row_name, splits
from builder.sources.source import Source


def recognise(source: Source) -> str | None:
    """Claims rows with tools and turns that have a role and content."""
    is_row = any(map(_is_row, source.peek.objects))
    return "conversations of role and content, with tools" if is_row else None


def _is_row(row: dict[str, Json]) -> bool:
    turns = as_dicts(row.get("conversations"))
    if not turns or not isinstance(row.get("tools"), list | str) or "episode" in row:
        return False
    return all(
        as_str(turn.get("role")) in ROLES
        and ("content" in turn or "tool_calls" in turn)
        and "value" not in turn
        for turn in turns
    )


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    name = row_name(where, row.get("id"), names)
    conversation = read_chat(name, where, as_list(row.get("conversations")), row.get("tools"))
    if isinstance(conversation, Problem):
        return conversation
    return replace(conversation, messages=_with_repeats(conversation.messages))


def _with_repeats(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Marks the turns before the last as repeats if only the last has reasoning.

    In rows of other origin in this shape, either all turns have reasoning or none has.
    """
    turns = [at for at, message in enumerate(messages) if message.role == "assistant"]
    thought = [any(isinstance(p, Reasoning) for p in messages[at].parts) for at in turns]
    if not thought or not thought[-1] or any(thought[:-1]):
        return messages
    earlier = frozenset(turns[:-1])
    return tuple(
        replace(message, untrained=REPEAT) if at in earlier else message
        for at, message in enumerate(messages)
    )


READER = Reader(
    name="toolmind",
    summary=(
        "ToolMind rows: conversations of role and content, tools; the last turn is to be learnt"
    ),
    evidence=("files",),
    recognise=recognise,
    read=read_each(_row, {"episode"}),
    splits=splits,
)
