"""Names the commands that make an agent send one request, which has its definitions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

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

DIFFERING = {"claude-code": "hi"}
"""Agents that send another prompt in their terminal interface: what then stands after the model."""

_VERSION = re.compile(r"\d[\w.+-]{0,39}", re.ASCII)
"""The version of an agent in a log that may stand in a command that the user runs."""

_MODEL = re.compile(r"[a-z0-9][\w.:/@+\[\]-]{0,79}", re.ASCII | re.IGNORECASE)
"""The name of a model in a log that may stand in a command that the user runs."""


def definitions_command(agent: str, model: str | None = None) -> str | None:
    """Returns the command that captures an agent's definitions, or None if none is known.

    It names the model of the log if the agent has an option for it, because agents offer other
    tools to other models.
    """
    words = agent_command(agent, model)
    return words and f"builder capture --definitions -o {definitions_file(agent)} -- {words}"


def logs_command(logs: Iterable[str]) -> str:
    """Returns the command that captures what the versions send that wrote the logs."""
    paths = " ".join(f"--logs {shlex.quote(path)}" for path in logs) or "--logs LOGS"
    return f"builder capture --definitions {paths} -o definitions"


def agent_command(
    agent: str, model: str | None = None, version: str | None = None, *, interactive: bool = False
) -> str | None:
    """Returns the command that lets an agent send one request, or None if none is known.

    `version`: that one, by npx. `interactive`: in its terminal interface, where that sends another
    prompt; None for other agents.
    """
    if agent not in _COMMANDS or (interactive and agent not in DIFFERING):
        return None
    begin, option, end, package = _COMMANDS[agent]
    if version and _VERSION.fullmatch(version):
        begin = f"npx -y {package}@{version} {begin.partition(' ')[2]}".rstrip()
    named = bool(option and model and _MODEL.fullmatch(model))
    chosen = f" {option} {shlex.quote(model or '')}" if named else ""
    return f"{begin}{chosen} {DIFFERING[agent] if interactive else end}"


def definitions_file(agent: str) -> str:
    """Returns the name of the file that the command writes."""
    return f"{agent}-definitions.json"
