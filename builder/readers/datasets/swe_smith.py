"""Reads SWE-smith and SWE-Gym training rows: chat messages with calls and results as text.

A record is a row. Source: docs/formats/swe-smith.md; SWE-smith's
swesmith/train/traj_mgr/utils.py. Calls are `<function=…>` blocks, definitions are prose in the
system text, and results have the role user: the message after a turn with calls is its result. The
`.traj` files that SWE-smith collects are SWE-agent's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from builder.conversation import Conversation, Json, Message
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.openai_chat import history
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.function_text import function_messages, has_function_calls
from builder.readers.toolkit.narrow import as_dict, as_list, json_in_text, name_of
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, read_each
from builder.sources.source import Source

_OF_AGENT = frozenset({"agent", "message_type"})
_AGENT_KEYS = _OF_AGENT | {
    "thought", "action", "thinking_blocks", "tool_call_ids", "tags", "cache_control", "is_demo",
}  # fmt: skip
"""Keys of SWE-agent's history beside the message; `thought` and `action` repeat parts of it."""
_INVENTED = (
    "Since we have successfully fixed the issue and verified it works, "
    "let's submit the changes:\n\n<function=submit>\n</function>"
)
"""The turn that SWE-smith's converter, not the model, writes where a run hit its cost limit."""


def recognise(source: Source) -> str | None:
    """Claims rows of runs with `<function=` in an answer, or SWE-agent's keys in the messages."""
    for row in source.peek.objects:
        if "response" in row or not ("instance_id" in row or "resolved" in row):
            continue
        items = as_list(json_in_text(row.get("messages")))
        if items and all(as_dict(item).keys() >= _OF_AGENT for item in items):
            return "rows with the history of SWE-agent's runs as messages"
        if has_function_calls(items):
            return "rows of messages with <function=…> calls and instance_id or resolved"
    return None


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    logged = list(map(as_dict, as_list(json_in_text(row.get("messages")))))
    items = list(map(_plain, logged))
    if not items:
        return Problem("no_messages", where, "no list of messages")
    changes: Counter[str] = Counter()
    made_up = (at for at, item in enumerate(items) if item.get("content") == _INVENTED)
    end = next(made_up, len(items))
    changes["invented_submit"] += end < len(items)
    messages, tools = _messages([*items[:end]], changes)
    if tools is None and logged[0].keys() >= _OF_AGENT and not any(map(calls, messages)):
        tools = ()  # commands are text
    if not messages:
        return Problem("no_messages", where, "only an answer that no model wrote")
    name = name_of(row, "traj_id", "instance_id") or "row"
    return Conversation(
        id=unique_name(name[:200], names),
        record=where,
        messages=tuple(messages),
        tools=tools,
        model=name_of(row, "model"),
        records=1,
        changes=+changes,
        complete=bool(calls(messages[-1])),
        outcome=logged_outcome(row),
    )


def _plain(item: dict[str, Json]) -> dict[str, Json]:
    """Returns a message without SWE-agent's keys, which repeat parts of the answer."""
    if not item.keys() >= _OF_AGENT:
        return item
    ids = as_list(item.get("tool_call_ids"))
    own = {"tool_call_id": ids[0]} if ids else {}
    return {key: value for key, value in item.items() if key not in _AGENT_KEYS} | own


def _messages(
    items: list[Json], changes: Counter[str]
) -> tuple[Sequence[Message], tuple[Json, ...] | None]:
    if has_function_calls(items):
        return function_messages(items, changes)
    read = history({"messages": items})
    changes.update(read.changes)
    return read.messages, read.tools


READER = Reader(
    name="swe-smith",
    summary=(
        "SWE-smith and SWE-Gym rows: messages with <function=…> calls in their text, or the history"
        " of SWE-agent's runs"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    read=read_each(_row, {"instance_id", "traj_id", "patch", "repo"}),
)
