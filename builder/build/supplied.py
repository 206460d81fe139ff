"""Reads the files of `inputs[].tools` and `inputs[].system`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.normalize.shared import AgentDefinitions
from builder.normalize.tools import convert
from builder.paths import UserPath
from builder.problem import UsageError


def supplied_tools(
    paths: Sequence[UserPath],
) -> tuple[tuple[Json, ...] | None, tuple[AgentDefinitions, ...]]:
    """Returns the definitions for all logs, and those captured from agents.

    Raises UsageError for a file that cannot be read, or for two files for all logs.
    """
    general: tuple[Json, ...] | None = None
    captured: list[AgentDefinitions] = []
    for path in (item.located for item in paths):
        value = _json(path)
        if (sent := _sent(value)) is not None:
            tools = _checked(path, sent.tools or ())
            captured.append(AgentDefinitions(sent.agent, sent.version, tools=tools))
            continue
        if general is not None:
            raise UsageError(f"tools {str(path)!r}: a second file for all logs; only one can apply")
        general = _checked(path, value if isinstance(value, list) else [value])
    return general, tuple(captured)


def supplied_system(
    paths: Sequence[UserPath],
) -> tuple[str | None, tuple[AgentDefinitions, ...]]:
    """Returns the text for all logs, and those captured from agents. Raises UsageError."""
    general: str | None = None
    captured: list[AgentDefinitions] = []
    for path in (item.located for item in paths):
        text = _text(path)
        if (sent := _sent(_json_or_none(text))) is not None:
            captured.append(AgentDefinitions(sent.agent, sent.version, system=sent.system))
            continue
        if general is not None:
            raise UsageError(
                f"system {str(path)!r}: a second text for all logs; only one can apply"
            )
        general = text.rstrip("\n")
    return general, tuple(captured)


def _sent(value: Json) -> AgentDefinitions | None:
    """Returns the contents of a file of `builder capture --definitions`; None for any other."""
    if not isinstance(value, dict):
        return None
    agent, version, system = (value.get(key) for key in ("agent", "version", "system"))
    tools = value.get("tools")
    if not isinstance(agent, str) or not isinstance(system, str) or not isinstance(tools, list):
        return None
    return AgentDefinitions(
        agent, version if isinstance(version, str) else "", system, tuple(tools)
    )


def _checked(path: Path, tools: Sequence[Json]) -> tuple[Json, ...]:
    """Returns the definitions. Raises UsageError if they are none."""
    if odd := [at for at, tool in enumerate(tools) if not isinstance(tool, dict)]:
        raise UsageError(f"tools {str(path)!r}: [{odd[0]}] is not a definition (an object)")
    counts: Counter[str] = Counter()
    if not convert(tools, counts) and counts["bad_tool"]:
        raise UsageError(f"tools {str(path)!r}: contains no tool definition (docs/formats.md)")
    return tuple(tools)


def _json(path: Path) -> Json:
    try:
        return loads(path.read_bytes())
    except OSError as error:
        raise _unreadable("tools", path, error) from error
    except JsonFault as fault:
        raise UsageError(f"tools {str(path)!r}: {fault.detail}") from fault


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
    text = f"{key} {str(path)!r} (--{key} or inputs[].{key}): {error.strerror or error}"
    if isinstance(error, FileNotFoundError):
        text += f"; an agent's own: builder capture --definitions -o {shlex.quote(path.name)} --"
        text += " claude -p hi (docs/capture.md)"
    return UsageError(text)
