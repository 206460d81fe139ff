"""Chooses what an agent sent (`builder capture --definitions`) for the logs that lack it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from builder.normalize.options import NormalizeOptions
from builder.normalize.shared import AgentDefinitions

_COMMANDS: Mapping[str, tuple[str, str, str, str]] = {
    "claude-code": ("claude", "--model", "-p hi", "@anthropic-ai/claude-code"),
    "codex": ("codex exec --skip-git-repo-check", "-m", "hi", "@openai/codex"),
    "gemini-cli": ("gemini -y", "-m", "-p hi", "@google/gemini-cli"),
    "opencode": ("opencode run", "", "hi", "opencode-ai"),
    "pi": ("pi", "", "-p hi", "@mariozechner/pi-coding-agent"),
    "qwen-code": ("qwen -y", "-m", "-p hi", "@qwen-code/qwen-code"),
}
"""{reader of an agent's logs: the parts of a command that lets the agent send one request}.

They are what stands before the model, the option that names it ("" where the agent demands the
provider too, which its log may not name), what stands after it, and the agent's package on npm.
"""

_VERSION = re.compile(r"\d[\w.+-]{0,39}", re.ASCII)
"""The version of an agent in a log that may stand in a command that the user runs."""

_MODEL = re.compile(r"[a-z0-9][\w.:/@+\[\]-]{0,79}", re.ASCII | re.IGNORECASE)
"""The name of a model in a log that may stand in a command that the user runs."""


def definitions_command(
    agent: str, model: str | None = None, version: str | None = None
) -> str | None:
    """Returns the command that captures an agent's definitions, or None if none is known.

    It names the model of the log if the agent has an option for it, because agents offer other
    tools to other models. With a version, it runs that version, by npx.
    """
    if agent not in _COMMANDS:
        return None
    begin, option, end, package = _COMMANDS[agent]
    if version and _VERSION.fullmatch(version):
        begin = f"npx -y {package}@{version} {begin.partition(' ')[2]}".rstrip()
    named = bool(option and model and _MODEL.fullmatch(model))
    chosen = f" {option} {shlex.quote(model or '')}" if named else ""
    file = definitions_file(agent, version)
    return f"builder capture --definitions -o {file} -- {begin}{chosen} {end}"


def definitions_file(agent: str, version: str | None = None) -> str:
    """Returns the name of the file that the command writes."""
    is_named = version is not None and _VERSION.fullmatch(version)
    return f"{agent}-{version if is_named else 'definitions'}.json"


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
    chosen = (("tools", tools), ("system", system))
    others = tuple(name for name, item in chosen if item and version and item.version != version)
    return replace(options, of_other_version=others) if others else options


def _nearest(captured: Sequence[AgentDefinitions], version: str | None) -> AgentDefinitions | None:
    if not captured:
        return None
    ranked = sorted(captured, key=lambda item: (_numbers(item.version), item.version))
    if version is None:
        return ranked[-1]
    same = [item for item in ranked if item.version == version]
    before = [item for item in ranked if _numbers(item.version) <= _numbers(version)]
    return (same or before or ranked[:1])[-1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d{1,9}", version, re.ASCII)[:4])
