"""Finds the answers that a session's file copied from the files of other sessions.

A fork copies the lines of its session into a file of its own. They name the session in `forkedFrom`
or, in early versions, keep its `sessionId`; the program keeps the ids of the messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from builder.readers.agents.claude_code.lines import SessionLine, read_line
from builder.readers.toolkit.narrow import as_str
from builder.readers.toolkit.siblings import from_sibling
from builder.sources.source import Record, Source


def copied_answers(source: Source, lines: Iterable[SessionLine]) -> set[str]:
    """Returns the uuids of the answers that the file of another session also has.

    The other session is the file in the same folder with the session's name.
    """
    own = PurePosixPath(source.name).name.partition(".")[0]
    named: dict[str, list[SessionLine]] = {}
    for line in lines:
        if line.is_answer and (session := _origin(line)) and session != own and not line.agent:
            named.setdefault(session, []).append(line)
    return {
        line.uuid
        for session, found in named.items()
        for answers in [from_sibling(source, f"{session}.jsonl", _answers) or ()]
        for line in found
        if line.response in answers
    }


def _origin(line: SessionLine) -> str:
    """Returns the name of the session that a line was logged in first."""
    return as_str(line.value, "forkedFrom", "sessionId") or line.session


def _answers(other: Source) -> Collection[str]:
    """Returns the ids of the answers in a session's file, except lines of yet another session."""
    session = other.name.removesuffix(".jsonl")
    lines = (
        read_line(at, record.where, record.value)
        for at, record in enumerate(other.records())
        if isinstance(record, Record) and isinstance(record.value, dict)
    )
    return frozenset(
        line.response
        for line in lines
        if line is not None and line.is_answer and line.session in ("", session)
    )
