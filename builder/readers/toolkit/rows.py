"""Reads files whose records are conversations, or form conversations together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, overload

from builder.conversation import Conversation, Event, Ignored, Json
from builder.jsonio import a_json_type
from builder.problem import Problem
from builder.readers.toolkit.outcomes import with_outcome
from builder.readers.toolkit.places import ignored, unique_name
from builder.readers.toolkit.unknown_keys import ROW_COLUMNS, count_columns
from builder.sources.source import Record, Source

Row = Callable[[str, dict[str, Json], "Counter[str]"], Iterable[Event]]
"""Reads one row: (place of the record, the row, names already used) → its events."""

ReadHook = Callable[[Source], Iterator[Event]]


def splits(source: Source) -> bool:
    """Allows a JSONL file to be cut between any two lines (the `splits` hook)."""
    return source.peek.kind == "jsonl"


def read_rows(source: Source, row: Row, columns: Collection[str] = frozenset()) -> Iterator[Event]:
    """Yields the events of each row, or a Problem if the record is not an object.

    `columns` are those of the format; other columns with text are counted (`unknown_column`).
    """
    known = ROW_COLUMNS.union(columns)
    names: Counter[str] = Counter()
    for record in objects(source.records(), "the row is "):
        if isinstance(record, Problem):
            yield record
        else:
            where, value = record
            yield from count_columns(with_outcome(row(where, value, names), value), value, known)


@overload
def objects(
    records: Iterable[Record | Problem], prefix: str = ""
) -> Iterator[tuple[str, dict[str, Json]] | Problem]: ...


@overload
def objects(
    records: Iterable[Record | Problem | Ignored], prefix: str = ""
) -> Iterator[tuple[str, dict[str, Json]] | Problem | Ignored]: ...


def objects(
    records: Iterable[Record | Problem | Ignored], prefix: str = ""
) -> Iterator[tuple[str, dict[str, Json]] | Problem | Ignored]:
    """Yields place and value of each record, or a Problem if the value is not an object.

    `prefix` is the beginning of the Problem's detail, e.g. "an event is ". What could not be
    decoded, or is ignored, is yielded as it is.
    """
    for record in records:
        if not isinstance(record, Record):
            yield record
        elif isinstance(record.value, dict):
            yield record.where, record.value
        else:
            yield not_object(record, prefix)


def not_object(record: Record, prefix: str = "") -> Problem:
    """Returns the problem of a record that is not an object."""
    detail = f"{prefix}{a_json_type(record.value)}"
    return Problem("not_object", record.where, detail)


def read_objects(source: Source, row: Row, prefix: str = "") -> Iterator[Event]:
    """Yields the events of each record, or a Problem if it is not an object (see `objects`)."""
    names: Counter[str] = Counter()
    for record in objects(source.records(), prefix):
        if isinstance(record, Problem):
            yield record
        else:
            yield from row(*record, names)


def read_each(
    row: Callable[[str, dict[str, Json], Counter[str]], Event],
    columns: Collection[str] = frozenset(),
) -> ReadHook:
    """Returns the `read` hook of a format with one conversation in each row (`read_rows`)."""
    return lambda source: read_rows(source, lambda *record: [row(*record)], columns)


class RecordLog(Protocol):
    """Reads the records of one session in order; `missing` is what its next answers lack."""

    missing: set[str]

    def add(self, where: str, value: dict[str, Json], /) -> str:
        """Reads a record; returns the code under which it is ignored, "" if it is not."""


def add_records(
    log: RecordLog, records: Iterable[tuple[str, dict[str, Json]] | Problem]
) -> Generator[Problem | Ignored, None, int]:
    """Adds the records of `objects` to a log; returns the number of those that it counts.

    Yields the Problems, and the counts of what it ignores. Answers after a record that cannot be
    read lack `history`, except after one that was cut off, which is the last.
    """
    counts: Counter[str] = Counter()
    for record in records:
        if isinstance(record, Problem):
            log.missing |= {"history"} if record.code != "truncated" else set()
            yield record
        else:
            counts[log.add(*record)] += 1
    count = counts.pop("", 0)
    yield from ignored(counts)
    return count


class Collector(Protocol):
    """Collects records into conversations."""

    def take(self, record: Record, /) -> Iterator[Event]:
        """Reads one record; yields the events that are now final."""

    def rest(self) -> Iterator[Event]:
        """Yields the events of conversations that are still open after the last record."""


@dataclass(slots=True)
class SeparateMessages:
    """Collects the messages of one conversation that are separate records."""

    first: str
    last: str = ""
    records: int = 0
    items: list[Json] = field(default_factory=list)

    def add(self, where: str, items: Iterable[Json]) -> None:
        """Adds the messages in the record at this place."""
        self.items += items
        self.records += 1
        self.last = where

    @property
    def place(self) -> str:
        """Returns the place of the only record, or those of the first and the last one."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


def collected(
    records: Iterable[Record | Problem], collector: Collector, shapes: tuple[type, ...] = (dict,)
) -> Iterator[Event]:
    """Yields the events of records that form conversations together.

    A record has one of the shapes, else it is a Problem. A record that is a whole conversation may
    have its outcome next to the messages.
    """
    for record in records:
        if isinstance(record, Problem):
            yield record
        elif not isinstance(record.value, shapes):
            yield not_object(record, "a record is ")
        else:
            for event in collector.take(record):
                own = isinstance(event, Conversation) and event.record == record.where
                yield from with_outcome([event], record.value) if own else (event,)
    yield from collector.rest()


def missing_records(lost: Sequence[Problem]) -> tuple[Problem, ...]:
    """Returns the problem of a conversation that lacks records which the model may have seen."""
    return tuple(replace(problem, records=0) for problem in lost[:1])


def row_name(where: str, name: Json, names: Counter[str]) -> str:
    """Returns a unique id for a row's conversation: the row's own id, else its place."""
    named = isinstance(name, str | int) and not isinstance(name, bool) and str(name)
    return unique_name(str(name) if named else where, names)
