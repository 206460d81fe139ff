"""Keeps the system prompt and the tools that an agent sends, without a provider or an account."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.capture.agents import adapt, agent_in, routes, through
from builder.capture.job import run_child, run_to_end, serve
from builder.capture.pairs import SentDefinitions, agent_of
from builder.capture.scripted import handler
from builder.conversation import Json, Text
from builder.problem import UsageError
from builder.readers.api.captures import APIS
from builder.readers.toolkit.comparison import without_billing
from builder.text import map_strings

_SECONDS = 300
"""After so long the agent is stopped; what it has sent is kept."""

_KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY",
    "OPENROUTER_API_KEY", "GROQ_API_KEY", "CEREBRAS_API_KEY", "KIMI_API_KEY", "DEEPSEEK_API_KEY",
)  # fmt: skip
_PLACEHOLDER_KEY = "sk-builder-definitions-0000"
_OTHER_ACCOUNTS = (
    "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA",
)  # fmt: skip
_QUIET = {
    "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DO_NOT_TRACK": "1", "PI_OFFLINE": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1", "GEMINI_CLI_TRUST_WORKSPACE": "true",
}  # fmt: skip
"""Settings that keep agents from requests to others than the provider."""
_FOLDERS = (
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CODEX_HOME",
    "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "QWEN_HOME", "PI_CODING_AGENT_DIR",
)  # fmt: skip
"""Variables that would lead an agent back to the user's own settings."""

_SETTINGS = {
    ".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}',
}
"""Files of the empty home folder: what agents would ask on their first start."""


def capture_definitions(command: Sequence[str], *, seconds: float = _SECONDS) -> SentDefinitions:
    """Runs the command against a scripted provider; returns what it sent.

    Of several requests, that with the most tools counts. The command runs in an empty home folder,
    in whose place the user's own stands in what was sent. Raises UsageError if it sent no request
    with a system prompt or tools.
    """
    taken: list[tuple[str, dict[str, Any], Mapping[str, str]]] = []
    with tempfile.TemporaryDirectory(prefix="builder-definitions-") as scratch:
        run_to_end(_run(command, Path(scratch), taken, seconds=seconds))
        definitions = [_definitions(*one) for one in taken]
        best = max(definitions, key=lambda one: (len(one[1]), len(one[0])), default=("", (), None))
        system, tools, named = best
        home = str(Path(scratch) / "home")

        def own(text: str) -> str:
            return text.replace(home, str(Path.home()))

        system, tools = own(system), tuple(map_strings(tool, own) for tool in tools)
        if not system and not tools:
            detail = (
                "no request" if not taken else "only requests without a system prompt and tools"
            )
            raise UsageError(f"{command[0]}: sent {detail} to the address in its environment")
        agent, version = named or _of_command(command)
    return SentDefinitions(agent, version, system, tools)


async def _run(
    command: Sequence[str],
    scratch: Path,
    taken: list[tuple[str, dict[str, Any], Mapping[str, str]]],
    *,
    seconds: float,
) -> None:
    server = await serve(handler(lambda *request: taken.append(request)))
    try:
        environment = through(os.environ, routes({}), server.port)
        environment |= dict.fromkeys(_KEYS, _PLACEHOLDER_KEY) | _QUIET
        for name in _OTHER_ACCOUNTS:
            environment.pop(name, None)
        words = adapt(command, environment, scratch)
        found = agent_in(command)
        home = scratch / "home"
        home.mkdir()
        environment["HOME"] = str(home)
        for name in _FOLDERS:
            environment.pop(name, None)
        for name, text in _SETTINGS.items():
            (home / name).parent.mkdir()
            (home / name).write_text(text, encoding="utf-8")
        if found is not None and found[0] in _EXTRA:
            end = found[1] + 1
            words = [*words[:end], *_EXTRA[found[0]], *words[end:]]
        if found is not None and found[0] == "qwen-code":
            environment.setdefault("OPENAI_MODEL", "qwen3-coder-plus")
        with contextlib.suppress(TimeoutError):
            await run_child(words, environment, seconds=seconds)
    finally:
        await server.close()


_EXTRA: Mapping[str, Sequence[str]] = {"qwen-code": ("--auth-type", "openai")}


def _definitions(
    api: str, body: dict[str, Any], headers: Mapping[str, str]
) -> tuple[str, tuple[Json, ...], tuple[str, str] | None]:
    """Returns the system text, the tools and the agent's name and version in a request."""
    history = APIS[api].history(body)
    texts = []
    for message in without_billing(history.messages):
        if message.role not in ("system", "developer"):
            break
        texts.append("".join(part.text for part in message.parts if isinstance(part, Text)))
    user_agent = next((v for k, v in headers.items() if k.lower() == "user-agent"), "")
    return "\n\n".join(texts), history.tools or (), agent_of(user_agent)


def _of_command(command: Sequence[str]) -> tuple[str, str]:
    """Returns the name of the agent that a command starts, and the version that it prints."""
    agent = agent_in(command)
    if agent is None:
        return Path(command[0]).name, ""
    try:
        ran = subprocess.run(  # noqa: S603 - the user's own command
            [*command[: agent[1] + 1], "--version"], capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return agent[0], ""
    words = ran.stdout.decode("utf-8", "replace").split()
    return agent[0], next(
        (word.lstrip("v") for word in words if word.lstrip("v")[:1].isdigit()), ""
    )
