"""Readers: one module or small package for each log format, all held to one contract.

docs/readers.md is the tutorial; `builder.testing.check_reader` tests what it says.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from builder.brief import brief
from builder.conversation import Conversation, Event
from builder.jsonio import NotANumber
from builder.problem import Problem, UsageError
from builder.readers.homes import Home
from builder.readers.toolkit.history import around_holes
from builder.readers.toolkit.tool_forms import without_executions
from builder.readers.toolkit.unknown_keys import KnownKeys, shipped_keys, watch
from builder.sources.listing import Listing
from builder.sources.sniff import is_prefixed
from builder.sources.source import Source
from builder.sources.zip_file import first_fault

Evidence = Literal["source", "documentation", "files", "parsers", "inferred"]
"""What the meaning of a format is known from: the program's source, its documentation, real files,
several independent parsers, or inference from less than these."""

ENTRY_POINT_GROUP = "builder.readers"
UNVERIFIED = "unverified_format"
"""The code of a source whose meaning is not settled."""
_NUMBERS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){1,5}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader of one log format.

    name        the format's name, e.g. "claude-code"
    summary     one line: what it reads, and how it recognises it
    recognise   returns why a source has this format, or None. Judges by content (the file may have
                any name) and looks only at `source.peek` and `source.head`, in a store at those of
                its members.
    read        yields a `Conversation` for each conversation, and a `Problem`, `Ignored` or `Used`
                for every record that is not counted in a conversation's `records`. Over the whole
                source, `records_read == Σ conversation.records + Σ used + Σ ignored
                + Σ problem.records` must hold.
    generic     ranks the reader's claims: True for a shape that many programs write (bodies of a
                provider's API, rows of chat messages), False for the format of one program or
                dataset. A specific claim beats generic ones, so a generic reader need not know
                which other formats share its shape.
    evidence    what the meaning of the format is known from; at least one for each built-in reader
    unsettled   returns why the meaning of a source is not settled, or None. Its records are
                rejected as `unverified_format`, unless the user names the format; conversations
                then have this code in `changes`. None: the meaning of all sources is settled
    checked     the newest version of the agent whose logs were compared with its recorded requests;
                conversations of newer ones are counted as `newer_version` (docs/context.md)
    is_agent    True for the logs of one agent program with its own tools: sessions whose logs lack
                tool definitions may use those of its other sessions
    doubles     True for a program in JavaScript, whose numbers are doubles: a turn whose arguments
                the log has as values, with a number of more than 15 digits, lacks `arguments`
    homes       where the agents keep these logs on their users' machines
    keys        the keys that its records may hold; text under other keys is counted in `changes`.
                None: those in keys/NAME.toml. If that is missing, keys are not looked at

    A format that keeps one conversation in many files is a store:

    is_store    returns whether a folder, local or in an object store, is one store. Judges by the
                names in it and, if these do not suffice, by the beginning of a file. A store is one
                source with `members`.
    holds       returns whether a file below a store is a member, by its name; None: all files are
    exclusive   True: the other files below a store are skipped; False: they are sources themselves

    Large files are cut into chunks that are read independently, each as a source of its own:

    splits      for formats with one conversation per JSONL line: whether this file or table may be
                cut between lines. `read` must then use `source.lines()` or a method built on it,
                and keep no state from line to line.
    item_sizes  for formats with many items in one file (sessions of a database, members of an
                archive): the approximate size of each item in bytes, in reading order; () for a
                file that must stay whole because its items refer to one another. `read` lists the
                items and reads those that `source.items_of_chunk(items)` returns (all, unless the
                source is a chunk). What it yields for an item must not depend on the others.
                Anything outside the items is one more item, at the end.
    """

    name: str
    summary: str
    recognise: Callable[[Source], str | None]
    read: Callable[[Source], Iterator[Event]]
    generic: bool = False
    is_agent: bool = False
    evidence: tuple[Evidence, ...] = ()
    unsettled: Callable[[Source], str | None] | None = None
    checked: str | None = None
    doubles: bool = False
    homes: tuple[Home, ...] = ()
    keys: KnownKeys | None = None
    is_store: Callable[[Listing], bool] | None = None
    holds: Callable[[str], bool] | None = None
    exclusive: bool = True
    splits: Callable[[Source], bool] | None = None
    item_sizes: Callable[[Source], Sequence[int]] | None = None

    def __repr__(self) -> str:
        """Returns the name and the summary in one line."""
        return brief(self, name=self.name, summary=self.summary)


@cache
def _facts() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files(__package__) / "formats.toml").read_text(encoding="utf-8"))


def declared(name: str, **hooks: Any) -> Reader:
    """Returns the reader of a format; what is known of the format stands in formats.toml.

    `hooks`: the fields of `Reader` that are functions, and those that replace the declared ones.
    """
    facts: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in _facts()[name].items()
    }
    homes = tuple(Home(*home) for home in facts.get("homes", ()))
    given = {**facts, "homes": homes, **hooks}
    return Reader(name=name, **given)


READ = "JSON, JSONL, CSV, SQLite, zip, Parquet or Arrow (docs/formats.md)"
"""What logs are; the few formats of other texts are recognised by what they contain."""


@cache
def readers() -> dict[str, Reader]:
    """Returns all readers by name, sorted by name.

    Raises UsageError if an installed reader cannot be imported, is not a `Reader`, or has the name
    of another one.
    """
    known: dict[str, Reader] = {}
    for origin, candidate in candidates():
        if not isinstance(candidate, Reader):
            raise UsageError(f"reader {origin}: is not a builder.readers.Reader")
        if candidate.name in known:
            raise UsageError(f"reader {origin}: the name {candidate.name!r} is taken")
        known[candidate.name] = candidate
    return dict(sorted(known.items()))


def candidates() -> Iterator[tuple[str, object]]:
    """Yields (module or entry point, the reader there), unchecked. Raises UsageError."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        found = importlib.import_module(module.name)
        for candidate in (getattr(found, "READER", None), *getattr(found, "READERS", ())):
            if candidate is not None:
                yield module.name, candidate
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.value):
        try:
            yield entry.value, entry.load()
        except Exception as error:  # importing a third-party package may run any code
            raise UsageError(f"reader {entry.value}: cannot be loaded: {error}") from error


def installed_logs() -> Iterator[tuple[str, Path]]:
    """Yields (agent, file or folder) of the logs that agents keep on this machine.

    Ordered by the readers' names; each place once, and none inside another one.
    """
    places: dict[Path, str] = {}
    for reader in readers().values():
        for home in reader.homes:
            for place in home.places():
                places.setdefault(place, home.agent)
    for place, agent in places.items():
        if places.keys().isdisjoint(place.parents):
            yield agent, place


def read_events(reader: Reader, source: Source, *, named: bool = False) -> Iterator[Event]:
    """Yields the reader's events for the source. `named`: the user has named the format.

    A source whose meaning is not settled (`Reader.unsettled`) is a Problem unless it is named.
    A conversation with a number that is not JSON (NaN, Infinity) gets the problem `number`.
    Elsewhere in a record, for example in a score, these numbers do no harm.
    """
    if named and not reader.recognise(source):
        source.unwrap()
    doubt = reader.unsettled(source) if reader.unsettled is not None else None
    if doubt is not None and not named:
        source.count_records()
        yield Problem(UNVERIFIED, "file", f"{doubt}; --format {reader.name} reads it")
        return
    is_split = reader.splits is not None and reader.splits(source)
    seen = watch(source, reader.keys or shipped_keys(reader.name), is_split=is_split)
    events = _with_runs(reader.read(source))
    for event in events if seen is None else seen.complete(events):
        if isinstance(event, Conversation):
            completed = _completed(event, source, reader, doubt)
            yield from around_holes(completed) if reader.is_agent else (completed,)
        else:
            yield event


def _completed(
    conversation: Conversation, source: Source, reader: Reader, doubt: str | None
) -> Conversation:
    """Returns a reader's conversation with what its source and the reader as a whole say of it."""
    changes, problems = conversation.changes, conversation.problems
    if _has_invalid_number(source, conversation):
        detail = "it contains a number that is not valid JSON"
        problems = (Problem("number", conversation.record, detail, records=0), *problems)
    if is_newer(conversation.version, reader.checked):
        changes = {**changes, "newer_version": 1}
    if doubt is not None:
        changes = {**changes, UNVERIFIED: 1}
    return replace(
        conversation,
        tools=without_executions(conversation.tools),
        padded=conversation.padded or source.table is not None or bool(source.peek.padding.calls),
        doubles=reader.doubles,
        problems=problems,
        changes=changes,
    )


def _with_runs(events: Iterable[Event]) -> Iterator[Event]:
    """Yields the events; lines in a row that are not JSON are one problem."""
    run: list[Problem] = []
    for event in events:
        if isinstance(event, Problem) and event.code == "bad_json":
            run.append(event)
            continue
        yield from _joined(run)
        run = []
        yield event
    yield from _joined(run)


def _joined(run: Sequence[Problem]) -> Iterator[Problem]:
    if len(run) < 2:
        yield from run
    else:
        where = f"{run[0].where} to {run[-1].where}"
        yield replace(run[0], where=where, records=sum(problem.records for problem in run))


def is_newer(version: str | None, checked: str | None) -> bool:
    """Returns whether a version is newer than another; False if either has no number."""
    logged, known = (_NUMBERS.match(text or "") for text in (version, checked))
    if logged is None or known is None:
        return False
    return [*map(int, logged[0].split("."))] > [*map(int, known[0].split("."))]


def _has_invalid_number(source: Source, conversation: Conversation) -> bool:
    if all(file.is_exact for file in (source, *source.members)):
        return False
    pending: list[object] = [*conversation.messages, *(conversation.tools or ())]
    while pending:
        value = pending.pop()
        if isinstance(value, NotANumber):
            return True
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value
        elif is_dataclass(value) and not isinstance(value, type):
            pending += (getattr(value, item.name) for item in fields(value))
    return False


def recognise(source: Source) -> dict[str, str]:
    """Returns the winning claims on a source: {name of the reader: reason}.

    Claims of specific readers win over those of generic ones. One winner recognises the source;
    several make it ambiguous; none leaves it unrecognised. A document that nobody claims as a whole
    is looked at as the list of records inside it (`Source.unwrap`).
    """
    claims = _all_claims(source)
    return claims or (_all_claims(source) if source.unwrap() else {})


def _all_claims(source: Source) -> dict[str, str]:
    return _claims(source, generic=False) or _claims(source, generic=True)


def may_be_mapped(source: Source) -> bool:
    """Returns whether a source has records that a mapping could describe."""
    if source.peek.kind in ("utf-16", "binary", "empty", "zip"):
        return False
    return source.peek.kind != "text" or source.is_csv


def unrecognised(source: Source, path: str = "") -> str:
    """Returns why no reader recognises a source, and what the user can do.

    `path` is the one by which the user names it, for a command to copy.
    """
    kind = source.peek.kind
    if kind == "utf-16":
        return "no reader recognises it (text in UTF-16: convert it to UTF-8)"
    if kind == "binary":
        return f"no reader recognises it: it is binary, not {READ}"
    if kind == "text" and is_prefixed(source.head):
        return "no reader recognises it: each line has JSON after a prefix: strip it"
    if kind == "text" and not source.is_csv:
        return f"no reader recognises it: it is plain text, not {READ}"
    if kind == "zip":
        fault = first_fault(source)
        why = f"zip: {fault})" if fault else "zip): unpack it, and look at its files"
        return f"no reader recognises it ({why}"
    command = f"`builder inspect {shlex.quote(path) if path else 'FILE'} --suggest-mapping`"
    in_python = "" if path else " (in Python, `suggest_mapping`)"
    return (
        f"no reader recognises it ({'CSV' if kind == 'text' else kind}); {command}{in_python}"
        " proposes a mapping if it holds conversations (docs/mapping.md)"
    )


def _claims(source: Source, *, generic: bool) -> dict[str, str]:
    return {
        name: reason
        for name, reader in readers().items()
        if reader.generic == generic and (reason := reader.recognise(source))
    }
