"""Files of rows: each record is a whole conversation, and rows know nothing of one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from builder.conversation import Event, Json
from builder.problem import Problem
from builder.readers.toolkit.places import unique_name
from builder.sources.source import Source

Row = Callable[[str, dict[str, Json], "Counter[str]"], Iterable[Event]]
"""(where it stands, the row, the names given so far) to its conversations."""


def splits(source: Source) -> bool:
    """A line is a row: lines may be read apart."""
    return source.peek.kind == "jsonl"


def read_rows(source: Source, row: Row) -> Iterator[Event]:
    """What each row holds. A record that is no JSON object is a Problem."""
    names: Counter[str] = Counter()
    for record in source.records():
        if isinstance(record, Problem):
            yield record
        elif not isinstance(record.value, dict):
            yield Problem("not_object", record.where, "the row is no JSON object")
        else:
            yield from row(record.where, record.value, names)


def row_name(where: str, name: Json, names: Counter[str]) -> str:
    """The name of a row's conversation: the row's own id, or where it stands."""
    named = isinstance(name, str | int) and not isinstance(name, bool) and str(name)
    return unique_name(str(name) if named else where, names)
