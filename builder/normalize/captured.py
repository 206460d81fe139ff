"""Chooses what an agent sent (`builder capture --definitions`) for the logs that lack it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from builder.normalize.options import NormalizeOptions
from builder.normalize.shared import AgentDefinitions

_COMMANDS: Mapping[str, str] = {
    "claude-code": "claude -p hi",
    "codex": "codex exec --skip-git-repo-check hi",
    "gemini-cli": "gemini -y -p hi",
    "opencode": "opencode run hi",
    "pi": "pi -p hi",
    "qwen-code": "qwen -y -p hi",
}
"""{reader of an agent's logs: a command that lets the agent send one request}."""


def definitions_command(agent: str) -> str | None:
    """Returns the command that captures the definitions of an agent, or None if none is known."""
    command = _COMMANDS.get(agent)
    return command and f"builder capture --definitions -o {agent}.json -- {command}"


def for_log(options: NormalizeOptions, agent: str, version: str | None) -> NormalizeOptions:
    """Returns the options for a log of an agent, with the definitions of the nearest version.

    That is the log's own, else the last before it, else the first after it. Definitions of other
    agents are not used.
    """
    own = [item for item in options.captured if item.agent == agent]
    tools = _nearest([item for item in own if item.tools is not None], version)
    system = _nearest([item for item in own if item.system is not None], version)
    if tools is not None:
        options = replace(options, supplied_tools=tools.tools, supplied_source="captured")
    if system is not None:
        options = replace(options, supplied_system=system.system)
    return options


def _nearest(found: Sequence[AgentDefinitions], version: str | None) -> AgentDefinitions | None:
    if not found:
        return None
    ranked = sorted(found, key=lambda item: (_numbers(item.version), item.version))
    if version is None:
        return ranked[-1]
    same = [item for item in ranked if item.version == version]
    before = [item for item in ranked if _numbers(item.version) <= _numbers(version)]
    return (same or before or ranked[:1])[-1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d{1,9}", version, re.ASCII)[:4])
