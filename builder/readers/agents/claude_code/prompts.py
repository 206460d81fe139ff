"""Finds the prompts of a Claude Code session that the user did not type as they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from builder.readers.agents.claude_code.lines import SessionLine
from builder.readers.agents.claude_code.stretches import RequestRun
from builder.readers.toolkit.narrow import as_str

WARMUP = "Warmup"
"""The prompt with which the program fills the provider's cache."""


def command_prompts(lines: Iterable[SessionLine]) -> set[str]:
    """Returns the uuids of lines with prompts of slash commands, if the user typed nothing else.

    These lines are marked as the program's text but contain the user's request.
    """
    uuids: set[str] = set()
    run: list[SessionLine] = []
    command = typed = False
    for line in lines:
        if line.is_answer:
            uuids |= set() if typed else {line.uuid for line in run}
            run, command, typed = [], False, False
        elif line.kind == "user":
            typed = typed or line.is_typed
            if line.is_meta and command and not any(map(_is_tagged, texts_of(line))):
                run.append(line)
            command = command or any("<command-name>" in text for text in texts_of(line))
    return uuids if typed else uuids | {line.uuid for line in run}


def _is_tagged(text: str) -> bool:
    return text.lstrip().startswith("<")


def texts_of(line: SessionLine) -> Iterator[str]:
    """Yields the texts of a line."""
    return (as_str(block.get("text")) for block in line.blocks if block.get("type") == "text")


def warmups(lines: Iterable[SessionLine], stretches: Iterable[RequestRun]) -> Iterator[str]:
    """Yields the keys of turns that answer a prompt for warming up the cache."""
    prompts = [line for line in lines if line.kind == "user" and line.is_typed]
    if prompts and all([*texts_of(line)] == [WARMUP] for line in prompts):
        yield from (turn.key for stretch in stretches for turn in stretch.targets)
