"""Captures what the versions of agents send that wrote some logs."""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.capture.commands import DIFFERING, agent_command
from builder.capture.definitions import capture_definitions, version_of
from builder.capture.pairs import SentDefinitions
from builder.conversation import Conversation
from builder.problem import Problem, UsageError
from builder.readers import read_events, readers, recognise
from builder.readers.discovery import find_sources

_SHARE = 0.95
"""The share of the turns that is captured, if the number of versions allows it."""
_SECONDS = 120


@dataclass(frozen=True, slots=True)
class LoggedVersion:
    """A version of an agent that wrote logs.

    turns  the answers in its logs that may be trained
    model  that of most of them
    modes  whether it ran without its terminal interface; None: the agent sends the same with it
    """

    agent: str
    version: str
    turns: int
    model: str | None
    modes: tuple[bool | None, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """The versions in logs that can be captured, most turns first; `turns` are those of all."""

    versions: tuple[LoggedVersion, ...]
    sessions: int
    turns: int

    def chosen(self, most: int) -> list[LoggedVersion]:
        """Returns the versions that wrote 95 % of the turns, at most so many."""
        chosen: list[LoggedVersion] = []
        for version in self.versions[:most]:
            if sum(one.turns for one in chosen) >= _SHARE * self.turns:
                break
            chosen.append(version)
        return chosen


def survey(logs: Sequence[str]) -> Survey:
    """Reads logs and counts the turns of each version of an agent. Raises UsageError."""
    models: dict[tuple[str, str], Counter[str | None]] = {}
    modes: dict[tuple[str, str], set[bool | None]] = {}
    sessions = 0
    for source in (source for place in logs for source in find_sources(place)):
        names = [] if isinstance(source, Problem) else [*recognise(source)]
        if isinstance(source, Problem) or len(names) != 1 or not readers()[names[0]].is_agent:
            continue
        counted = 0
        for event in read_events(readers()[names[0]], source):
            if not isinstance(event, Conversation) or event.problems:
                continue
            turns = sum(one.role == "assistant" and not one.untrained for one in event.messages)
            if turns and event.version and agent_command(names[0], version=event.version):
                key = (names[0], event.version)
                models.setdefault(key, Counter())[event.model] += turns
                mode = bool(event.headless) if names[0] in DIFFERING else None
                modes.setdefault(key, set()).add(mode)
                counted += turns
        sessions += counted > 0
    versions = sorted(
        (
            LoggedVersion(*key, found.total(), found.most_common(1)[0][0], tuple(modes[key]))
            for key, found in models.items()
        ),
        key=lambda one: (-one.turns, one.agent, one.version),
    )
    return Survey(tuple(versions), sessions, sum(one.turns for one in versions))


def capture_version(logged: LoggedVersion) -> Iterator[SentDefinitions]:
    """Yields what a version sends, in each mode of its logs. Raises UsageError."""
    for headless in logged.modes:
        interactive = headless is False
        command = agent_command(logged.agent, logged.model, interactive=interactive) or ""
        words = shlex.split(command)
        installed = shutil.which(words[0])
        if installed is None or version_of([installed])[1] != logged.version:
            command = (
                agent_command(logged.agent, logged.model, logged.version, interactive=interactive)
                or ""
            )
            words = shlex.split(command)
            if shutil.which(words[0]) is None:
                raise UsageError(f"needs {words[0]}")
        sent = capture_definitions(words, seconds=_SECONDS, apart=True, headless=headless)
        if sent.version != logged.version:
            raise UsageError(f"it says that it is version {sent.version}")
        yield sent
