"""Follows records that name their parents: paths to leaves, and what is above a record.

Logs may contain cycles, ids that no record has, and records without a parent anywhere; every walk
here ends, whatever the links are.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")


def upwards(
    start: K | None, parent_of: Callable[[K], K | None], until: Container[object] = ()
) -> Iterator[K]:
    """Yields an id and those above it, the nearest first.

    Ends before one of `until`, where `parent_of` returns None, and where a cycle closes.
    """
    above: set[K] = set()
    while start is not None and start not in above and start not in until:
        above.add(start)
        yield start
        start = parent_of(start)


class Links(Generic[K]):
    """The tree of records by the ids of their parents.

    parents  by the id of each record, in the order of the log; an id that is no record's, and None,
             are no parents
    leaves   the ids that are no record's parent; a cycle has none
    """

    def __init__(self, parents: Mapping[K, K | None]) -> None:
        self.parents = {
            one: parent if parent in parents else None for one, parent in parents.items()
        }
        inner = set(self.parents.values())
        self.leaves = [one for one in self.parents if one not in inner]

    def path(self, leaf: K, until: Container[object] = ()) -> list[K]:
        """Returns the ids from the root, or from just below one of `until`, to the leaf."""
        return [*upwards(leaf, self.parents.get, until)][::-1]
