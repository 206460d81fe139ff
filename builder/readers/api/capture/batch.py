"""Recognises folders of a Batch job: its file of requests and its files of results.

Requests and results are joined by `custom_id` (http-captures.md). A folder may contain only one
file of requests, since jobs number their requests alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from builder.jsonio import JsonFault, loads
from builder.readers.toolkit.narrow import as_dict
from builder.sources.listing import Listing
from builder.sources.source import Source

FIRST_LINE = 1 << 20
"""Maximum bytes of a first line that recognition reads."""

Half = Literal["request", "result"]


def is_store(folder: Listing) -> bool:
    """Returns whether a folder is a job: JSONL files with custom_id, exactly one with requests."""
    names = [name for name in folder.names() if not name.startswith(".")]
    if len(names) < 2 or not all(name.endswith(".jsonl") for name in names):
        return False
    halves: list[Half | None] = []
    for name in names:
        halves.append(_half(_first_line(folder.first(name, FIRST_LINE))))
        if halves[-1] is None:
            return False
    return _is_job(halves)


def members(source: Source) -> Sequence[Source]:
    """Returns the members of a job's folder, the requests first; () for any other folder."""
    halves: list[Half | None] = []
    for member in source.members:
        plain = "/" not in member.name and member.name.endswith(".jsonl")
        half = _half(_first_line(member.first(FIRST_LINE))) if plain else None
        if half is None:
            return ()
        halves.append(half)
    order = sorted(range(len(halves)), key=lambda at: halves[at] != "request")
    return [source.members[at] for at in order] if _is_job(halves) else ()


def _first_line(data: bytes) -> bytes:
    return data.partition(b"\n")[0]


def _is_job(halves: Sequence[Half | None]) -> bool:
    return halves.count("request") == 1 and halves.count("result") == len(halves) - 1 > 0


def _half(line: bytes) -> Half | None:
    """Returns which half of an exchange a line of an OpenAI or Anthropic Batch file is."""
    try:
        value = as_dict(loads(line))
    except JsonFault:
        return None
    if "custom_id" not in value:
        return None
    if "response" in value or "result" in value:
        return "result"
    return "request" if isinstance(value.get("body", value.get("params")), dict) else None
