"""Readers: one module or small package for each log format, all held to one contract.

A reader is a `Reader` value, named `READER` in its module. `recognise` and `read` are plain
functions; the other hooks are for formats with many files in a folder or much in one file.

A reader never raises for what the data holds, and changes no value that it was given: the first
ones may be those that `recognise` saw. `builder.testing.check_reader` checks the whole contract.

Built-in readers are found by walking this package: there is no list to add one to. A package of a
third party names its `Reader` in the entry-point group `builder.readers`. What authors of readers
need beyond `builder.conversation` is in `builder.readers.toolkit`; docs/readers.md shows how.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from builder.conversation import Event
from builder.problem import UsageError
from builder.sources.source import Source

ENTRY_POINT_GROUP = "builder.readers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader of one log format.

    name        the format's name, e.g. "claude-code"
    summary     one line: what it reads, and by what it recognises it
    recognise   says why a source is of this format, judged by content (the file's name may be
                anything), or gives None. Looks at `source.peek` and `source.head` only.
    read        yields a `Conversation` for each conversation, and a `Problem`, `Ignored` or `Used`
                for every record that is not counted in a conversation's `records`. For the whole
                source, `records_read == Σ conversation.records + Σ used + Σ ignored
                + Σ problem.records` must hold.

    A format that keeps one conversation in many files is a store:

    is_store    is this folder, judged by the names at its top, one store? It is then one source
                with `members`.
    holds       which of the files below a store are its members, by name; None: all of them
    store_file  the name of the file whose first 4 KB `is_store` looks into, if it looks into one

    Large files are cut into chunks that are read apart, as sources of their own:

    splits      for formats with a conversation in each JSONL line: may chunks of this file or table
                be read apart from one another? `read` then reads by `source.lines()` or what is
                built on it, and keeps nothing from line to line.
    item_sizes  for formats with many things in a file (sessions of a database, members of an
                archive): about how many bytes each of these items is, in reading order; () for a
                file that must stay whole, as one must whose items refer to one another. `read` then
                lists the items and reads those that `source.own(items)` gives, which are all unless
                the source is a chunk; what it yields for one does not depend on the others. What is
                in none of them is one more item, at the end.
    """

    name: str
    summary: str
    recognise: Callable[[Source], str | None]
    read: Callable[[Source], Iterator[Event]]
    is_store: Callable[[Path], bool] | None = None
    holds: Callable[[str], bool] | None = None
    store_file: str | None = None
    splits: Callable[[Source], bool] | None = None
    item_sizes: Callable[[Source], Sequence[int]] | None = None


@cache
def readers() -> dict[str, Reader]:
    """Returns all readers by name, in the order of their names.

    Raises UsageError if an installed reader cannot be loaded, is no `Reader` or takes a taken name.
    """
    found: dict[str, Reader] = {}
    for origin, candidate in _candidates():
        if not isinstance(candidate, Reader):
            raise UsageError(f"reader {origin}: is no builder.readers.Reader")
        if candidate.name in found:
            raise UsageError(f"reader {origin}: the name {candidate.name!r} is taken")
        found[candidate.name] = candidate
    return dict(sorted(found.items()))


def _candidates() -> Iterator[tuple[str, object]]:
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        candidate = getattr(importlib.import_module(module.name), "READER", None)
        if candidate is not None:
            yield module.name, candidate
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.value):
        try:
            yield entry.value, entry.load()
        except Exception as error:  # any code may run when a foreign package is imported
            raise UsageError(f"reader {entry.value}: cannot be loaded: {error}") from error


def recognise(source: Source) -> dict[str, str]:
    """Returns which readers claim the source, and why: {name: reason}. One claim recognises it."""
    claims: dict[str, str] = {}
    for name, reader in readers().items():
        reason = reader.recognise(source)
        if reason:
            claims[name] = reason
    return claims
