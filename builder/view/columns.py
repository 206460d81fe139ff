"""Filters, counts and sorts many rows in milliseconds, using compact arrays.

A facet is a field to filter by; a row has any number of values of it. Each distinct value is stored
once, each (row, value) pair takes 8 bytes. docs/report.md has measurements.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Numbers = NDArray[np.uint32]

_STALE = 0.5
"""Seconds for which a copy of growing columns is reused."""
_MANY = 10_000
"""Values of a facet above which only the most frequent ones are sorted."""


@dataclass(frozen=True, slots=True)
class FacetColumn:
    """The (row, value) pairs of a facet: row numbers, and indexes of values in `names`."""

    rows: Numbers
    codes: Numbers
    names: Sequence[str]

    def mask(self, count: int, value: str) -> Mask:
        """Returns a mask of `count` rows with the value; if there are none, with it as a part."""
        if value in self.names:
            wanted = self.codes == self.names.index(value)
        else:
            part = value.casefold()
            fitting = [at for at, name in enumerate(self.names) if part in name.casefold()]
            wanted = np.isin(self.codes, np.array(fitting, dtype=np.uint32))
        mask = np.zeros(count, dtype=np.bool_)
        mask[self.rows[wanted]] = True
        return mask

    def ranks(
        self, count: int, order: Sequence[str] | None, *, descending: bool
    ) -> NDArray[np.int64]:
        """Returns the rank of each of `count` rows by its first value; rows without one come last.

        `order` contains the values in their own order, if they have one.
        """
        places = {name: at for at, name in enumerate(order or ())}
        named = sorted(
            range(len(self.names)),
            key=lambda at: (places.get(self.names[at], len(places)), self.names[at].casefold()),
            reverse=descending,
        )
        rank = np.empty(len(named), dtype=np.int64)
        rank[named] = np.arange(len(named))
        ranks = np.full(count, len(named), dtype=np.int64)
        ranks[self.rows[::-1]] = rank[self.codes[::-1]]  # the first value of a row is set last
        return ranks

    def top(self, mask: Mask, most: int) -> tuple[list[tuple[str, int]], int]:
        """Returns the (value, count) of the `most` frequent values, and the number of values."""
        counts = np.bincount(self.codes[mask[self.rows]], minlength=len(self.names))
        there = np.flatnonzero(counts)
        chosen = there
        if len(there) > _MANY:
            chosen = there[np.argpartition(-counts[there], most)[:most]]
        pairs = [(self.names[at], int(counts[at])) for at in chosen.tolist()]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:most], len(there)


@dataclass(frozen=True, slots=True)
class ColumnView:
    """The columns of the first `count` rows; `is_complete` if there are no others."""

    count: int
    is_complete: bool
    facets: Mapping[str, FacetColumn]
    numbers: Mapping[str, NDArray[np.uint64]]


class Columns:
    """Columns that one thread fills while others read copies."""

    def __init__(self, facets: Iterable[str], numbers: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._rows = {name: array("I") for name in facets}
        self._codes = {name: array("I") for name in self._rows}
        self._names: dict[str, dict[str, int]] = {name: {} for name in self._rows}
        self._numbers = {name: array("Q") for name in numbers}
        self._count = 0
        self._is_complete = False
        self._view: tuple[float, ColumnView] | None = None

    def add(self, values: Mapping[str, Iterable[str]], numbers: Mapping[str, int]) -> None:
        """Appends a row. A missing facet has no value; numbers are from 0 to 2^64 - 1."""
        with self._lock:
            for name, own in values.items():
                names = self._names[name]
                for value in own:
                    self._rows[name].append(self._count)
                    self._codes[name].append(names.setdefault(value, len(names)))
            for name, column in self._numbers.items():
                column.append(numbers.get(name, 0))
            self._count += 1

    def complete(self) -> None:
        """Marks the columns as complete."""
        with self._lock:
            self._is_complete = True
            self._view = None

    def view(self) -> ColumnView:
        """Returns the columns filled so far, at most half a second old."""
        with self._lock:
            now = time.monotonic()
            if self._view is None or (not self._is_complete and now - self._view[0] > _STALE):
                self._view = (now, self._copied())
            return self._view[1]

    def _copied(self) -> ColumnView:
        def column(values: array[int], kind: type[np.unsignedinteger]) -> NDArray:  # type: ignore[type-arg]  # of `kind`
            shared = np.frombuffer(values, dtype=kind) if len(values) else np.zeros(0, dtype=kind)
            return shared if self._is_complete else shared.copy()  # an exported array cannot grow

        facets = {
            name: FacetColumn(
                column(self._rows[name], np.uint32),
                column(self._codes[name], np.uint32),
                list(self._names[name]),
            )
            for name in self._rows
        }
        numbers = {name: column(values, np.uint64) for name, values in self._numbers.items()}
        return ColumnView(self._count, self._is_complete, facets, numbers)
