"""Readers: one module for each log format, all found and held to the same contract.

A reader is a module (or any object) with

- `NAME`: the format's name, e.g. "claude-code"
- `SUMMARY`: one line that says what it reads and by what it knows it
- `recognise(source) -> str | None`: why these bytes are of this format, judged by content (the
  file's name may be anything), or None. Looks at `source.peek` and `source.head` only.
- `read(source) -> Iterator[Event]`: `Conversation`s, and a `Problem`, `Ignored` or `Used` for
  every record that is not counted in a conversation's `records`. For the whole source
  `records_read == Σ conversation.records + Σ used + Σ ignored + Σ problem.records` must hold.
  It never raises for what the data holds, and changes no value that it was given: the first
  ones may be those that `recognise` saw.

A format that keeps one conversation in many files has `is_store(folder: Path) -> bool` as well: is
this folder, judged by the names at its top, one store? It is then one source with `members`: all
files below it, or those of which `holds(name: str) -> bool` says so, if it is there. A reader whose
`is_store` looks into a file as well (its first 4 KB) names it in `STORE_FILE: str`.

Large files are cut into pieces that are read apart, as sources of their own (`builder.pieces`), if
the reader says how:

- A format whose JSONL files hold a conversation in each line may have `splits(source) -> bool`: may
  pieces of this file, or of this table, be read apart from one another? `read` then reads by
  `source.lines()` or what stands on it, and keeps nothing from line to line.
- Any other format that has many things in a file (sessions of a database, members of an archive)
  may have `item_sizes(source) -> Sequence[int]`: about how many bytes each of these items is, in
  the order in which they are read; () for a file that must stay whole, as one must whose items
  speak of one another. `read` then makes the list of the items and reads those that
  `source.own(items)` gives, which are all unless the source is a piece; what it yields for one is
  the same whatever stands beside it. What is in none of them is one more item, at the end.

Built-in readers are the modules of this package whose names do not begin with an underscore.
A package of a third party names its reader in the entry-point group `builder.readers`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol, cast

from builder.conversation import Event
from builder.problem import UsageError
from builder.source import Source

ENTRY_POINT_GROUP = "builder.readers"


class Reader(Protocol):
    """What a reader is; see the module's docstring."""

    NAME: str
    SUMMARY: str

    def recognise(self, source: Source) -> str | None:
        """Why the source is of this format, or None."""

    def read(self, source: Source) -> Iterator[Event]:
        """What the source holds."""
        ...


@cache
def readers() -> dict[str, Reader]:
    """All readers by name, in the order of their names.

    Raises UsageError if an installed reader lacks a part of the contract or takes a taken name.
    """
    found: dict[str, Reader] = {}
    for origin, candidate in _candidates():
        missing = [
            part
            for part in ("NAME", "SUMMARY", "recognise", "read")
            if getattr(candidate, part, None) is None
        ]
        if missing:
            raise UsageError(f"reader {origin}: has no {', '.join(missing)}")
        reader = cast("Reader", candidate)
        if reader.NAME in found:
            raise UsageError(f"reader {origin}: the name {reader.NAME!r} is taken")
        found[reader.NAME] = reader
    return dict(sorted(found.items()))


def _candidates() -> Iterator[tuple[str, object]]:
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            name = f"{__name__}.{module.name}"
            yield name, importlib.import_module(name)
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.value):
        try:
            yield entry.value, entry.load()
        except Exception as error:  # any code may run when a foreign package is imported
            raise UsageError(f"reader {entry.value}: cannot be loaded: {error}") from error


def recognise(source: Source) -> dict[str, str]:
    """Which readers claim the source, and why: {name: reason}. One claim is a recognition."""
    claims: dict[str, str] = {}
    for name, reader in readers().items():
        reason = reader.recognise(source)
        if reason:
            claims[name] = reason
    return claims
