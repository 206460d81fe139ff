"""Adapts the commands of agents that do not take the provider's address from the environment."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath

from builder.capture.pairs import AGENTS

_PACKAGES: Mapping[str, str] = {
    "@anthropic-ai/claude-code": "claude-code",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini-cli",
    "@qwen-code/qwen-code": "qwen-code",
    "opencode-ai": "opencode",
    "pi-coding-agent": "pi",
}
"""{package of an agent, as in the path of its program: its reader}."""

_PROVIDERS = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
"""{name of a provider in configurations: its variable}."""

_WORDS = 4
"""The agent's program is among so many words of a command: `npx -y NAME`, `node PATH`."""

_EXTENSION = """export default function (pi) {
  for (const [name, baseUrl] of Object.entries(ADDRESSES)) pi.registerProvider(name, {baseUrl});
}
"""

Command = Sequence[str]
Environment = dict[str, str]


def agent_in(command: Command) -> tuple[str, int] | None:
    """Returns the agent that a command starts and the position of its program, or None."""
    for at, word in enumerate(command[:_WORDS]):
        path = word.replace("\\", "/")
        for package, name in _PACKAGES.items():
            if re.search(rf"(?:^|/){re.escape(package)}(?:[@/]|$)", path):
                return name, at
        stem = PurePath(path).name.lower().removesuffix(".exe").removesuffix(".cmd")
        if stem in AGENTS:
            return AGENTS[stem], at
    return None


def adapt(command: Command, environment: Environment, scratch: Path) -> list[str]:
    """Returns the command with the options that lead the agent to the addresses in `environment`.

    May add variables to `environment` and write files to the folder `scratch`.
    """
    agent = agent_in(command)
    change = _CHANGES.get(agent[0]) if agent is not None else None
    if agent is None or change is None:
        return list(command)
    end = agent[1] + 1
    return [*command[:end], *change(environment, scratch), *command[end:]]


def _codex(environment: Environment, scratch: Path) -> list[str]:
    del scratch
    return ["-c", f"openai_base_url={json.dumps(environment['OPENAI_BASE_URL'])}"]


def _opencode(environment: Environment, scratch: Path) -> list[str]:
    """Sets the addresses in the configuration that has precedence over files."""
    del scratch
    try:
        config = json.loads(environment.get("OPENCODE_CONFIG_CONTENT") or "{}")
    except ValueError:
        return []  # the user's own; opencode reports the fault
    addresses = {
        **{name: environment[variable] for name, variable in _PROVIDERS.items()},
        "google": f"{environment['GOOGLE_GEMINI_BASE_URL']}/v1beta",
        "openrouter": environment["OPENROUTER_BASE_URL"],
    }
    addresses["anthropic"] += "/v1"
    for name, address in addresses.items():
        provider = config.setdefault("provider", {}).setdefault(name, {})
        provider.setdefault("options", {}).setdefault("baseURL", address)
    environment["OPENCODE_CONFIG_CONTENT"] = json.dumps(config)
    return []


def _pi(environment: Environment, scratch: Path) -> list[str]:
    addresses = {
        **{name: environment[variable] for name, variable in _PROVIDERS.items()},
        "google": f"{environment['GOOGLE_GEMINI_BASE_URL']}/v1beta",
        "openrouter": environment["OPENROUTER_BASE_URL"],
        "groq": f"{environment['GROQ_BASE_URL']}/openai/v1",
        "cerebras": f"{environment['CEREBRAS_BASE_URL']}/v1",
    }
    file = scratch / "addresses.ts"
    file.write_text(_EXTENSION.replace("ADDRESSES", json.dumps(addresses)), encoding="utf-8")
    return ["-e", str(file)]


_CHANGES: Mapping[str, Callable[[Environment, Path], list[str]]] = {
    "codex": _codex,
    "opencode": _opencode,
    "pi": _pi,
}
