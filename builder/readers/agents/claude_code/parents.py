"""Finds what the file of a sub-agent lacks and the file of its parent session has.

- Versions around 2.0.55 log a sub-agent's prompt only in the parent's call. The call's result names
  the agent.
- A forked sub-agent continues the conversation of its parent: a `fork-context-ref` line names the
  session and the last line that the fork's first request contained.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from builder.conversation import Json
from builder.readers.agents.claude_code.lines import SessionLine, read_line
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.siblings import from_related, from_sibling
from builder.sources.source import Record, Source

FORK = "fork-context-ref"
"""Type of the line that names what a forked sub-agent continues."""

_NAME = re.compile(r"[0-9A-Za-z_-]{1,100}")
_FOLDERS = ("", "../../", "../../../../")
"""Folders of a session's file, from those of its sub-agents: beside it, or in its own folders."""


@dataclass(frozen=True, slots=True)
class ForkedHistory:
    """What a forked sub-agent continues.

    lines      the lines of the parent session up to the last one that the fork's request contained
    responses  the ids of all answers in the parent's file
    """

    lines: tuple[SessionLine, ...]
    responses: frozenset[str]


@dataclass(frozen=True, slots=True)
class _UpTo:
    """Extracts the lines of a session up to one with a uuid; nothing if there is none."""

    uuid: str

    def __call__(self, parent: Source) -> ForkedHistory | None:
        records = [
            record
            for record in parent.records()
            if isinstance(record, Record) and isinstance(record.value, dict)
        ]
        session_lines: list[SessionLine] = []
        end = None
        for number, record in enumerate(records):
            # Positions below 0: before all lines of the fork.
            line = read_line(number - len(records), record.where, as_dict(record.value))
            if line is not None and not line.agent:
                session_lines.append(line)
                end = len(session_lines) if line.uuid == self.uuid else end
        responses = frozenset(line.response for line in session_lines if line.is_answer)
        return None if end is None else ForkedHistory(tuple(session_lines[:end]), responses)


def with_histories(
    source: Source, nodes: dict[str, SessionLine], references: Iterable[Mapping[str, Json]]
) -> tuple[dict[str, SessionLine], set[str], set[str]]:
    """Returns the lines with those that forked sub-agents continue before them.

    Also returns the uuids of these, and the ids of the answers that other files have. A fork whose
    history is not found begins below a line that the file lacks.
    """
    inherited: set[str] = set()
    responses: set[str] = set()
    for reference in references:
        agent, above = as_str(reference.get("agentId")), as_str(reference.get("parentLastUuid"))
        own = (line for line in nodes.values() if line.agent == agent)
        first = next((line for line in own if line.kind in ("user", "assistant")), None)
        if first is None or first.parent or not above:
            continue
        history = _find_history(source, reference) or ForkedHistory((), frozenset())
        before = {line.uuid: line for line in history.lines if line.uuid not in nodes}
        nodes = {**before, **nodes, first.uuid: replace(first, parent=above)}
        inherited.update(before)
        responses |= history.responses
    return nodes, inherited, responses


def _find_history(source: Source, reference: Mapping[str, Json]) -> ForkedHistory | None:
    """Returns what a fork continues, its lines as lines of the fork; None if it is not found."""
    session = as_str(reference.get("parentSessionId"))
    if not _NAME.fullmatch(session):
        return None
    extract = _UpTo(as_str(reference.get("parentLastUuid")))
    for folder in _FOLDERS:
        history = from_related(source, f"{folder}{session}.jsonl", extract)
        if history is not None:
            agent = as_str(reference.get("agentId"))
            lines = tuple(replace(line, agent=agent) for line in history.lines)
            return replace(history, lines=lines)
    return None


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
