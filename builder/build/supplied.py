"""Reads the files of `inputs[].tools` and `inputs[].system`."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from builder.capture.commands import logs_command
from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.normalize.options import AgentDefinitions
from builder.normalize.tools import convert
from builder.paths import UserPath
from builder.problem import UsageError
from builder.readers import readers
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.tool_forms import name_of, parameters_of


def supplied_tools(
    paths: Sequence[UserPath],
) -> tuple[tuple[Json, ...] | None, tuple[AgentDefinitions, ...]]:
    """Returns the definitions for all logs, and those captured from agents.

    Those of an agent whose logs no reader reads are for all logs. Raises
    UsageError for a file that cannot be read, or for two files for all logs.
    """
    general: tuple[Json, ...] | None = None
    captured: list[AgentDefinitions] = []
    for path in _files(paths, "tools"):
        value = _json(path)
        tools = definitions(value, f"tools {str(path)!r}")
        if (sent := _sent(value)) is not None and sent.agent in readers():
            captured.append(replace(sent, system=None, tools=tools))
            continue
        if not tools:
            raise UsageError(f"tools {str(path)!r}: defines no tool")
        if general is not None:
            raise UsageError(f"tools {str(path)!r}: a second file for all logs; only one can apply")
        general = tools
    return general, tuple(captured)


def supplied_system(paths: Sequence[UserPath]) -> tuple[str | None, tuple[AgentDefinitions, ...]]:
    """Returns the text for all logs, and those captured from agents. Raises UsageError."""
    general: str | None = None
    captured: list[AgentDefinitions] = []
    for path in _files(paths, "system"):
        text = _text(path)
        value = _json_or_none(text)
        sent = _sent(value)
        if sent is not None and sent.system is not None and sent.agent in readers():
            captured.append(replace(sent, tools=None))
            continue
        if sent is not None and sent.system is not None:
            text = sent.system
        elif isinstance(value, dict) and not {"agent", "messages", "tools"}.isdisjoint(value):
            raise UsageError(
                f"system {str(path)!r}: is a request or a list of tools; expected the text of the"
                " system prompt, or a file of `builder capture --definitions`"
            )
        if general is not None:
            raise UsageError(
                f"system {str(path)!r}: a second text for all logs; only one can apply"
            )
        general = text.rstrip("\n") if sent is None else text
    return general, tuple(captured)


def _files(paths: Sequence[UserPath], name: str) -> Iterator[Path]:
    """Yields the files; of a folder, the definitions in it. Raises UsageError if it has none."""
    for path in (item.located for item in paths):
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise UsageError(f"{name} {str(path)!r}: has no definitions (*.json)")
        yield from files


def _sent(value: Json) -> AgentDefinitions | None:
    """Returns the contents of a file of `builder capture --definitions`; None for any other."""
    if not isinstance(value, dict):
        return None
    agent, version, system = (value.get(key) for key in ("agent", "version", "system"))
    tools, headless = value.get("tools"), value.get("headless")
    if not isinstance(agent, str) or not isinstance(tools, list):
        return None
    return AgentDefinitions(
        agent,
        version if isinstance(version, str) else "",
        system if isinstance(system, str) else None,
        tuple(tools),
        headless if isinstance(headless, bool) else None,
        as_str(value.get("folder")),
    )


def definitions(value: Json, name: str) -> tuple[Json, ...]:
    """Returns the definitions of tools in the value of a file or of a caller.

    Raises UsageError, which says `name`, if one is no definition.
    """
    tools = _definitions(value)
    for at, tool in enumerate(tools):
        counts: Counter[str] = Counter()
        convert([tool], counts)
        if counts["bad_tool"]:
            place = f"[{at}] " if len(tools) > 1 else ""
            raise UsageError(
                f"{name}: {place}is no tool definition: expected a list of objects"
                " with a name, a description and parameters, or an object with such a list as"
                " `tools` (a request, or a file of `builder capture --definitions`)"
            )
    return tuple(tools)


def _definitions(value: Json, depth: int = 2) -> Sequence[Json]:
    """Returns the definitions in a list, a request, an answer of MCP, or an object by name.

    Any other value is returned as it is, in a list.
    """
    if isinstance(value, list):
        return value
    if not isinstance(value, dict) or name_of(value) is not None or "function" in value:
        return [value]
    for key in ("tools", "functions"):
        if isinstance(tools := value.get(key), list):
            return tools
    for key in ("request", "body", "params", "config", "toolConfig", "result") if depth else ():
        if isinstance(inner := value.get(key), dict):
            found = _definitions(inner, depth - 1)
            if found != [inner]:
                return found
    if value and all(isinstance(one, dict) and parameters_of(one)[0] for one in value.values()):
        return [{"name": name, **as_dict(one)} for name, one in value.items()]
    return [value]


def _json(path: Path) -> Json:
    """Returns the value of a file; of JSONL, the values of its lines."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable("tools", path, error) from error
    try:
        return loads(data)
    except JsonFault as fault:
        lines = data.splitlines()
        with contextlib.suppress(JsonFault):
            if len(lines) > 1:
                return [loads(line) for line in lines if line.strip()]
        raise UsageError(f"tools {str(path)!r}: is not JSON: {fault.detail}") from fault


def _json_or_none(text: str) -> Json:
    try:
        return loads(text) if text.startswith("{") else None
    except JsonFault:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable("system", path, error) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"system {str(path)!r}: not UTF-8 at byte {error.start}") from error


def _unreadable(key: str, path: Path, error: OSError) -> UsageError:
    """Returns the error of a file that cannot be read; one that is missing may be captured."""
    text = f"{key} {str(path)!r}: {error.strerror or error}"
    if isinstance(error, FileNotFoundError):
        text += f"; those of agents: {logs_command(())} (docs/capture.md)"
    return UsageError(text)
