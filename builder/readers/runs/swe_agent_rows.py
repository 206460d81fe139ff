"""Reads SWE-agent's runs as rows of a table: nebius/SWE-agent-trajectories and its copies.

Each row has the history of a run in `trajectory`, with the roles system, user and ai. Commands are
in the text. Source: docs/formats/swe-agent.md "Rows".
"""

from __future__ import annotations

from collections import Counter

from builder.conversation import Conversation, Json, Message
from builder.problem import Problem
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, json_in_text, name_of
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, read_each
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted

_ROLES = {"system": "system", "user": "user", "ai": "assistant"}
_KEYS = MESSAGE_KEYS | {"text", "system_prompt", "mask", "cutoff_date"}
_EXITS = ("Exit due to ", "Exiting due to ")
"""The beginnings of the step that SWE-agent adds when an error or limit ends a run."""


def is_exit(text: str, exit_status: str) -> bool:
    """Returns whether SWE-agent, not the model, wrote the last answer of a run."""
    return "exit" in exit_status and text.startswith(_EXITS)


def is_row(row: dict[str, Json]) -> bool:
    """Returns whether a row has the history of a run, in texts of system, user and ai."""
    items = as_list(json_in_text(row.get("trajectory")))
    return bool(items) and all(
        as_str(item, "role") in _ROLES and {"text", "system_prompt"} & as_dict(item).keys()
        for item in items[:5]
    )


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    items = as_dicts(json_in_text(row.get("trajectory")))
    exit_status = as_str(row.get("exit_status"))
    changes: Counter[str] = Counter()
    if items and items[-1].get("role") == "ai":
        changes["exit_message"] += is_exit(as_str(items[-1].get("text")), exit_status)
    messages: list[Message] = []
    for item in items[: len(items) - changes["exit_message"]]:
        role = as_str(item.get("role"))
        text = item.get("text") or item.get("system_prompt")
        messages += noted([Message(_ROLES.get(role, role[:40]), content(text))], item, _KEYS)
    if not any(message.role == "assistant" for message in messages):
        return Problem("no_response", where, "no answer of the model")
    return Conversation(
        id=unique_name((name_of(row, "instance_id") or where)[:200], names),
        record=where,
        messages=tuple(messages),
        tools=(),
        model=name_of(row, "model_name", "model"),
        records=1,
        changes=+changes,
        complete=exit_status == "submitted",
        outcome=logged_outcome(row, resolved=row.get("target"), exit_status=exit_status),
    )


read = read_each(
    _row, {"instance_id", "model_name", "target", "generated_patch", "eval_logs", "exit_status"}
)
"""Yields a conversation for each row."""
