"""Recognises folders of a Batch job: its file of requests and its files of results.

Requests and results are joined by `custom_id` (docs/formats/http-captures.md). A folder may contain
only one file of requests, since jobs number their requests alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    return bool(_halves(folder.first(name, FIRST_LINE) for name in names))


def members(source: Source) -> Sequence[Source]:
    """Returns the members of a job's folder, the requests first; () for any other folder."""
    names = [member.name for member in source.members]
    if not all("/" not in name and name.endswith(".jsonl") for name in names):
        return ()
    halves = _halves(member.first(FIRST_LINE) for member in source.members)
    pairs = sorted(zip(halves, source.members, strict=False), key=lambda pair: pair[0] != "request")
    return [member for _, member in pairs]


def _halves(files: Iterable[bytes]) -> list[Half]:
    """Returns the halves of a job's files by their beginnings; [] if they are not a job."""
    halves: list[Half] = []
    for head in files:
        if (half := _half(head)) is None:
            return []
        halves.append(half)
    return halves if halves.count("request") == 1 and len(halves) > 1 else []


def _half(head: bytes) -> Half | None:
    """Returns which half the first line of an OpenAI or Anthropic Batch file is."""
    try:
        value = as_dict(loads(head.partition(b"\n")[0]))
    except JsonFault:
        return None
    if "custom_id" not in value:
        return None
    if "response" in value or "result" in value:
        return "result"
    return "request" if isinstance(value.get("body", value.get("params")), dict) else None
