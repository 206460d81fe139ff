"""Keeps the system prompt and the tools that an agent sends, without a provider or an account."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.capture.agents import adapt, agent_in, routes, through
from builder.capture.commands import DIFFERING
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

_PACKAGE_FOLDERS = {
    "npm_config_cache": ".npm", "npm_config_userconfig": ".npmrc", "UV_CACHE_DIR": ".cache/uv",
}  # fmt: skip
"""{variable: path in the user's home} of the settings and packages of npx and uvx."""
_TERMINAL: Mapping[str, Json] = {
    "hasCompletedOnboarding": True,
    "theme": "dark",
    "customApiKeyResponses": {"approved": [_PLACEHOLDER_KEY[-20:]], "rejected": []},
}
"""What Claude Code's terminal interface would ask before its first request."""
_GRACE = 2
"""Seconds that a command gets for further requests after the first one with tools."""

_SETTINGS = {".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'}
"""Files of the empty home folder: what agents would ask on their first start."""


def capture_definitions(
    command: Sequence[str],
    *,
    seconds: float = _SECONDS,
    apart: bool = False,
    headless: bool | None = None,
) -> SentDefinitions:
    """Runs the command against a scripted provider; returns what it sent.

    Of several requests, that with the most tools counts. The command runs in an empty home folder,
    in whose place the user's own stands in what was sent. `apart`: it runs in an empty folder,
    without this process's terminal, and is stopped after its request; in a terminal of its own if
    `headless` is False. Raises UsageError if it sent no request with a system prompt or tools.
    """
    taken: list[tuple[str, dict[str, Any], Mapping[str, str]]] = []
    with tempfile.TemporaryDirectory(prefix="builder-definitions-") as scratch:
        scratch = os.path.realpath(scratch)  # noqa: PLW2901, PTH - as the agent names it
        child = _Child(command, Path(scratch), seconds, apart, headless is False)
        run_to_end(child.run(taken))
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
            why = child.last_words() or f"sent {detail} to the address in its environment"
            raise UsageError(f"{command[0]}: {why}")
        agent, version = named or version_of(command)
        if headless is None and agent in DIFFERING and not apart:
            headless = True  # an interactive run has no end
        folder = str(child.folder or Path.cwd())
    return SentDefinitions(agent, version, system, tools, headless, folder)


class _Child:
    """One run of an agent against the scripted provider."""

    def __init__(
        self, command: Sequence[str], scratch: Path, seconds: float, apart: bool, terminal: bool
    ) -> None:
        self.command = command
        self.scratch = scratch
        self.seconds = seconds
        self.terminal = terminal
        self.folder = scratch / "work" if apart else None
        self.errors = scratch / "stderr"

    async def run(self, taken: list[tuple[str, dict[str, Any], Mapping[str, str]]]) -> None:
        asked = asyncio.Event()

        def take(api: str, body: dict[str, Any], headers: Mapping[str, str]) -> None:
            taken.append((api, body, headers))
            if body.get("tools"):
                asked.set()

        server = await serve(handler(take))
        try:
            environment = through(os.environ, routes({}), server.port)
            words = self._prepared(environment)
            with contextlib.suppress(TimeoutError):
                if self.folder is None:
                    await run_child(words, environment, seconds=self.seconds)
                else:
                    self.folder.mkdir()
                    await self._run_apart(words, environment, asked)
        finally:
            await server.close()

    def _prepared(self, environment: dict[str, str]) -> list[str]:
        """Changes the environment for an empty home folder; returns the words of the command."""
        environment |= dict.fromkeys(_KEYS, _PLACEHOLDER_KEY) | _QUIET
        for name in _OTHER_ACCOUNTS:
            environment.pop(name, None)
        words = adapt(self.command, environment, self.scratch)
        found = agent_in(self.command)
        home = self.scratch / "home"
        home.mkdir()
        for name, path in _PACKAGE_FOLDERS.items():
            environment.setdefault(name, str(Path.home() / path))
        environment["HOME"] = str(home)
        for name in _FOLDERS:
            environment.pop(name, None)
        settings = dict(_SETTINGS)
        if self.terminal:
            project: Json = {"hasTrustDialogAccepted": True, "allowedTools": []}
            own: Json = {**_TERMINAL, "projects": {str(self.folder): project}}
            settings[".claude.json"] = json.dumps(own)
        for name, text in settings.items():
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_text(text, encoding="utf-8")
        if found is not None and found[0] in _EXTRA:
            end = found[1] + 1
            words = [*words[:end], *_EXTRA[found[0]], *words[end:]]
        if found is not None and found[0] == "qwen-code":
            environment.setdefault("OPENAI_MODEL", "qwen3-coder-plus")
        return words

    async def _run_apart(
        self, words: Sequence[str], environment: dict[str, str], asked: asyncio.Event
    ) -> None:
        """Runs the command until it has sent its tools, or ends."""
        with contextlib.ExitStack() as stack:
            errors = stack.enter_context(self.errors.open("wb"))
            stdin, stdout = asyncio.subprocess.DEVNULL, asyncio.subprocess.DEVNULL
            if self.terminal:
                import pty  # noqa: PLC0415 - not on Windows

                main, stdin = pty.openpty()
                stdout = stdin
                stack.callback(os.close, main)
                stack.callback(os.close, stdin)
                asyncio.get_running_loop().add_reader(main, os.read, main, 1 << 16)
                stack.callback(asyncio.get_running_loop().remove_reader, main)
                environment["TERM"] = "xterm-256color"
            try:
                child = await asyncio.create_subprocess_exec(
                    *words, env=environment, cwd=self.folder, start_new_session=True,
                    stdin=stdin, stdout=stdout, stderr=errors,
                )  # fmt: skip
            except OSError as error:
                raise UsageError(f"{words[0]!r}: {error.strerror or error}") from None
            ends = [asyncio.ensure_future(child.wait()), asyncio.ensure_future(asked.wait())]
            try:
                await asyncio.wait(ends, timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
                if asked.is_set():
                    await asyncio.wait(ends[:1], timeout=_GRACE)
            finally:
                ends[1].cancel()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                await child.wait()

    def last_words(self) -> str:
        """Returns the last line that the command wrote as an error; "" if there is none."""
        if not self.errors.exists():
            return ""
        lines = self.errors.read_text("utf-8", "replace").split("\n")
        written = [
            line.strip() for line in lines if line.strip().startswith(("npm error", "Error"))
        ]
        return written[0][:200] if written else ""


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


def version_of(command: Sequence[str]) -> tuple[str, str]:
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
