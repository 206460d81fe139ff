"""Adapts the commands of agents that do not take the provider's address from the environment."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from builder.capture.pairs import AGENTS
from builder.problem import OptionError, UsageError

_PACKAGES: Mapping[str, str] = {
    "@anthropic-ai/claude-code": "claude-code",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini-cli",
    "@qwen-code/qwen-code": "qwen-code",
    "opencode-ai": "opencode",
    "pi-coding-agent": "pi",
}
"""{package of an agent, as in the path of its program: its reader}."""

_WORDS = 4
"""The agent's program is among so many words of a command: `npx -y NAME`, `node PATH`."""

_EXTENSION = """export default function (pi) {
  for (const [name, baseUrl] of Object.entries(ADDRESSES)) pi.registerProvider(name, {baseUrl});
}
"""

Command = Sequence[str]
_Environment = dict[str, str]


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


def adapt(command: Command, environment: _Environment, scratch: Path) -> list[str]:
    """Returns the command with the options that lead the agent to the addresses in `environment`.

    May add variables to `environment` and write files to the folder `scratch`.
    """
    agent = agent_in(command)
    change = _CHANGES.get(agent[0]) if agent is not None else None
    if agent is None or change is None:
        return list(command)
    end = agent[1] + 1
    return [*command[:end], *change(environment, scratch), *command[end:]]


def _addresses(environment: _Environment) -> dict[str, str]:
    """Returns {name of a provider in configurations: its address}."""
    return {
        "anthropic": environment["ANTHROPIC_BASE_URL"],
        "openai": environment["OPENAI_BASE_URL"],
        "google": f"{environment['GOOGLE_GEMINI_BASE_URL']}/v1beta",
        "openrouter": environment["OPENROUTER_BASE_URL"],
    }


def _codex(environment: _Environment, _: Path) -> list[str]:
    return ["-c", f"openai_base_url={json.dumps(environment['OPENAI_BASE_URL'])}"]


def _opencode(environment: _Environment, _: Path) -> list[str]:
    """Sets the addresses in the configuration that has precedence over files."""
    try:
        config = json.loads(environment.get("OPENCODE_CONFIG_CONTENT") or "{}")
    except ValueError:
        return []  # the user's own; opencode reports the fault
    addresses = _addresses(environment)
    addresses["anthropic"] += "/v1"
    for name, address in addresses.items():
        provider = config.setdefault("provider", {}).setdefault(name, {})
        provider.setdefault("options", {}).setdefault("baseURL", address)
    environment["OPENCODE_CONFIG_CONTENT"] = json.dumps(config)
    return []


def _pi(environment: _Environment, scratch: Path) -> list[str]:
    addresses = {
        **_addresses(environment),
        "groq": f"{environment['GROQ_BASE_URL']}/openai/v1",
        "cerebras": f"{environment['CEREBRAS_BASE_URL']}/v1",
    }
    file = scratch / "addresses.ts"
    file.write_text(_EXTENSION.replace("ADDRESSES", json.dumps(addresses)), encoding="utf-8")
    return ["-e", str(file)]


_CHANGES: Mapping[str, Callable[[_Environment, Path], list[str]]] = {
    "codex": _codex,
    "opencode": _opencode,
    "pi": _pi,
}


# -- lists the environment variables that name a provider's address --------------------------------

_UPSTREAMS: Mapping[str, str] = {
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "OPENAI_API_BASE": "https://api.openai.com/v1",
    "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    "CODE_ASSIST_ENDPOINT": "https://cloudcode-pa.googleapis.com",
    "OPENROUTER_BASE_URL": "https://openrouter.ai/api/v1",
    "GROQ_BASE_URL": "https://api.groq.com",
    "CEREBRAS_BASE_URL": "https://api.cerebras.ai",
    "KIMI_BASE_URL": "https://api.moonshot.ai/v1",
    "DEEPSEEK_BASE_URL": "https://api.deepseek.com",
}
"""{variable: the address of its provider if the variable is not set}."""

_ONLY_IF_SET = ("AZURE_OPENAI_ENDPOINT", "LITELLM_PROXY_API_BASE", "OLLAMA_BASE_URL")
"""Variables of providers without a common address."""


@dataclass(frozen=True, slots=True)
class Route:
    """The address of one provider.

    variable  the environment variable that names it
    upstream  its scheme and host, with user information if the user gave some
    path      the path of its address, "" if there is none
    """

    variable: str
    upstream: str
    path: str

    @property
    def prefix(self) -> str:
        """Returns the first segment of the local path, which names the provider."""
        return self.variable.lower().replace("_", "-")

    def local(self, port: int) -> str:
        """Returns the value of the variable that leads through the proxy at `port`."""
        return f"http://127.0.0.1:{port}/{self.prefix}{self.path}"


def routes(environment: Mapping[str, str], given: Iterable[str] = ()) -> tuple[Route, ...]:
    """Returns the routes of a child with this environment, one for each variable.

    `given` are the user's own, VARIABLE=URL; they have precedence over the environment, whose
    values have precedence over the usual addresses. Raises UsageError for a bad one.
    """
    chosen = dict(_UPSTREAMS)
    for name in (*_UPSTREAMS, *_ONLY_IF_SET):
        if environment.get(name, "").strip():
            chosen[name] = environment[name].strip()
    for text in given:
        name, equals, url = text.partition("=")
        if not equals or not name.replace("_", "").isalnum():
            raise OptionError("upstream", f" {text!r}: must be VARIABLE=URL")
        chosen[name] = url
    return tuple(_route(name, url) for name, url in chosen.items())


def _route(name: str, url: str) -> Route:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UsageError(f"{name}: not an http or https address")
    if parts.query or parts.fragment:
        raise UsageError(f"{name}: an address without a query or fragment is needed")
    return Route(name, f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/"))


def through(environment: Mapping[str, str], routes: Iterable[Route], port: int) -> dict[str, str]:
    """Returns the environment of a child whose requests go through the proxy at `port`."""
    changed = {**environment, **{route.variable: route.local(port) for route in routes}}
    for name in ("NO_PROXY", "no_proxy"):  # its own proxy would not find the loopback
        hosts = [host for host in (environment.get(name, ""),) if host]
        changed[name] = ",".join([*hosts, "127.0.0.1", "localhost"])
    return changed
