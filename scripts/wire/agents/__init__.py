"""The agents that the harness runs, one module each."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
"""A PNG of one pixel, in base64."""
DOT_FILE = f"\necho {DOT} | base64 -d > dot.png\n"
"""A shell line that writes it to a file."""
RULES = "printf '# Project rules\\nAlways begin answers with AHOY.\\n' > AGENTS.md; "
"""A shell command that writes the project's instructions."""


def common_scenarios(program: str) -> dict[str, str]:
    """Returns scenarios of one prompt, which follows the shell words of the program."""
    return {
        "plain": f'{program} "[[S:plain]] What does app.py do?"',
        "parallel": f'{program} "[[S:parallel]] Change hello to goodbye."',
        "thinking": f'{program} "[[S:think]] What does app.py do?"',
        "files": f'{program} "[[S:files]] Write new.txt."',
        "faulty": f'{program} "[[S:faulty]] Use a tool."',
        "big": f'{program} "[[S:numbers]] Count."',
        "odd": f'{program} "[[S:odd]] Say odd things."',
        "instructions": f'{RULES}{program} "[[S:subfolder]] What is in sub?"',
        "image-read": f'{DOT_FILE}{program} "[[S:dot]] What is this?"',
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent program and its scenarios.

    name       as in the table
    versions   those of the table, the newest first
    packages   packages of a version: "npm:NAME@VERSION" or "pip:NAME==VERSION"
    setup      shell lines before each scenario; they see $INSTALL (the installed packages), $PORT,
               $HOME, $WORKDIR (a small git repository, the working directory) and $HARNESS
    scenarios  shell lines by name
    logs       the folder of its sessions, relative to $HOME
    limits     seconds for scenarios that need more than the default
    python     the Python that its packages need ("3.12"), found as `python3.12` on the PATH; None:
               the one that runs the harness
    subagent   the type of sub-agent that the scripted model asks for
    """

    name: str
    versions: tuple[str, ...]
    packages: Callable[[str], tuple[str, ...]]
    setup: str
    scenarios: Mapping[str, str]
    logs: tuple[str, ...]
    limits: Mapping[str, int]
    python: str | None = None
    subagent: str = "general-purpose"


def agents() -> dict[str, Agent]:
    """Returns all agents by name."""
    found: dict[str, Agent] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        agent = importlib.import_module(f"wire.agents.{module.name}").AGENT
        found[agent.name] = agent
    return found
