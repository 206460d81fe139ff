"""Finds the prompt of a sub-agent if its own file begins with the answer to it.

Versions around 2.0.55 log the prompt only in the parent's call. The call's result names the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.siblings import from_sibling
from builder.sources.source import Record, Source


def find_prompt(source: Source, session: str, agent: str) -> str:
    """Returns the prompt in the parent session's call that started the agent, or "".

    The parent session is the file in the same folder with the session's name.
    """
    if not session or not agent:
        return ""
    return (from_sibling(source, f"{session}.jsonl", _prompts) or {}).get(agent, "")


def _prompts(parent: Source) -> Mapping[str, str]:
    """Returns the prompts of the agents that a session started, by the agent's id."""
    return prompts_of_calls(
        record.value
        for record in parent.records()
        if isinstance(record, Record) and isinstance(record.value, dict)
    )


def prompts_of_calls(lines: Iterable[dict[str, Json]]) -> dict[str, str]:
    """Returns the prompts of the agents that lines started: by their ids, and by their calls' ids.

    The stream of a headless run names a sub-agent by the call that started it.
    """
    calls: dict[str, str] = {}
    prompts: dict[str, str] = {}
    for value in lines:
        content = as_list(value, "message", "content")
        for block in map(as_dict, content):
            if block.get("type") == "tool_use":
                calls[as_str(block.get("id"))] = as_str(block, "input", "prompt")
            elif block.get("type") == "tool_result":
                agent = as_str(value, "toolUseResult", "agentId")
                prompts.setdefault(agent, calls.get(as_str(block.get("tool_use_id")), ""))
    return {**calls, **prompts}
