"""Finds the prompt of a sub-agent whose own file begins with the answer to it.

Versions around 2.0.55 log the prompt only in the parent's call, whose result names the agent.
"""

from __future__ import annotations

from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.sources.source import Record, Source


def find_prompt(source: Source, session: str, agent: str) -> str:
    """Returns the prompt in the call of the parent session that started the agent, or "".

    The parent session is the file in the same folder that has the session's name.
    """
    parent = source.sibling(f"{session}.jsonl") if session and agent else None
    if parent is None:
        return ""
    prompts: dict[str, str] = {}
    for record in parent.records():
        value = record.value if isinstance(record, Record) else None
        if not isinstance(value, dict):
            continue
        content = as_list(as_dict(value.get("message")).get("content"))
        for block in map(as_dict, content):
            if block.get("type") == "tool_use":
                prompt = as_str(as_dict(block.get("input")).get("prompt"))
                prompts[as_str(block.get("id"))] = prompt
            elif block.get("type") == "tool_result":
                started = as_dict(value.get("toolUseResult")).get("agentId")
                if started == agent:
                    return prompts.get(as_str(block.get("tool_use_id")), "")
    return ""
