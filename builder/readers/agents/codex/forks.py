"""Finds what a fork continues: since 0.171 its file holds only the new lines.

`history_base` names the parent's thread and the ordinal that the fork's own lines begin with; the
parent's file may be a fork too. Source: docs/formats/codex.md; codex-rs/rollout (Apache-2.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.conversation import Json
from builder.problem import Problem
from builder.readers.agents.codex.lines import RolloutLine, line_of
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.sources.source import Source

_THREAD = re.compile(r"[0-9a-fA-F-]{8,64}")
_DAY = "[0-9]*/[0-9]*/[0-9]*/"
_FOLDERS = ("", f"../../../{_DAY}", "../../../../archived_sessions/", f"../sessions/{_DAY}")
"""Where a parent's file lies, seen from its fork: by day, or archived in one folder."""
_FORKS = 32
"""How many parents are followed: a fork of a fork of a fork, and so on."""


def base_of(value: dict[str, Json]) -> tuple[str, int] | None:
    """Returns the parent's thread id and the number of its lines; None if the line has none."""
    payload = as_dict(value.get("payload"))
    base = payload.get("history_base")
    if value.get("type") != "session_meta" or base is None:
        return None
    end = as_dict(base).get("end_ordinal_exclusive")
    return as_str(base, "thread_id"), end if isinstance(end, int) else 0


def parent_lines(source: Source, base: tuple[str, int]) -> list[RolloutLine] | None:
    """Returns the lines that a fork continues, the oldest first; None unless all are there."""
    found: list[RolloutLine] = []
    for _ in range(_FORKS):
        thread, end = base
        file = _file_of(source, thread)
        if file is None:
            return None
        lines: list[RolloutLine] = []
        above: tuple[str, int] | None = None
        following: int | None = None
        for value in _before(file, end):
            if value is None:
                return None
            ordinal, record, line = value
            if following not in (None, ordinal):
                return None
            following = ordinal + 1
            if line.kind == "session_meta":
                above = above or base_of(record)
            else:
                lines.append(line)
        if following != end:
            return None
        found[:0] = lines
        if above is None:
            return found
        base = above
    return None


def _file_of(source: Source, thread: str) -> Source | None:
    """Returns the file of a thread; its name ends with the thread's id."""
    if not _THREAD.fullmatch(thread):
        return None
    places = (source.related(f"{folder}rollout-*-{thread}.jsonl") for folder in _FOLDERS)
    return next((file for file in places if file is not None), None)


def _before(file: Source, end: int) -> Iterator[tuple[int, dict[str, Json], RolloutLine] | None]:
    """Yields (ordinal, value, line) of the lines below an ordinal; None for one not readable."""
    for record in file.json_lines():
        line = record if isinstance(record, Problem) else line_of(record)
        if isinstance(record, Problem) or isinstance(line, Problem):
            yield None
            return
        value = as_dict(record.value)
        ordinal = value.get("ordinal")
        if not isinstance(ordinal, int):
            yield None
            return
        if ordinal >= end:
            return
        yield ordinal, value, line
