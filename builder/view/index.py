"""Indexes a dataset for the viewer once, in a thread; queries can use the rows indexed so far."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from builder.conversation import Json
from builder.dataset.rejects import Reject
from builder.dataset.store import Address, LineIndex, ParquetIndex, Rows, decoded
from builder.readers.toolkit.narrow import as_dict
from builder.view.columns import Columns, ColumnView, Mask, Numbers
from builder.view.query import Query
from builder.view.sample_facets import (
    FACETS,
    NUMBERS,
    ORDERS,
    SORTS,
    facet_value,
    row_counts,
    sample_numbers,
    sample_values,
)
from builder.view.search import Row, RowTexts, TextScan, reject_texts, sample_texts

REJECT_FACETS = {"code": "Code", "format": "Format", "source": "Source"}

_AHEAD = 4096
"""Rows whose offsets are recorded before they are decoded, so that the disk is read only once."""
_RESULTS = 6
"""Cached results."""
_SCANS = 3
"""Cached searches."""
_PATIENCE = 1.5
"""Seconds that a request waits for a search before it returns the matches so far."""


@dataclass(frozen=True)
class Result:
    """The rows that match a query.

    numbers   the row numbers, in the order that the query requests
    view      the columns that were searched
    masks     {facet: mask of the rows that have the chosen value}; the key of the text is ""
    searched  the share of the rows that was searched, from 0 to 1
    """

    numbers: Numbers
    view: ColumnView
    masks: Mapping[str, Mask]
    searched: float

    @property
    def is_complete(self) -> bool:
        """Returns whether all rows of the dataset were searched."""
        return self.view.is_complete and self.searched >= 1

    def top(self, facet: str, most: int) -> tuple[list[tuple[str, int]], int]:
        """Returns the most frequent values of a facet with their counts, and the number of values.

        A count is the number of results that choosing the value would give.
        """
        return self.view.facets[facet].top(self.mask(without=facet), most)

    def mask(self, without: str | None = None) -> Mask:
        """Returns a mask of the rows that match all conditions but that of one facet."""
        matching = np.ones(self.view.count, dtype=np.bool_)
        for name, mask in self.masks.items():
            if name != without:
                matching &= mask
        return matching

    def place(self, number: int) -> int | None:
        """Returns the position of a row in the result, or None."""
        positions = np.flatnonzero(self.numbers == number)
        return int(positions[0]) if len(positions) else None

    def at(self, place: int) -> int | None:
        """Returns the number of the row at a position, or None."""
        return int(self.numbers[place]) if 0 <= place < len(self.numbers) else None


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """How an index reads its rows.

    fill   fills the columns until the callback returns true
    scan   yields all rows for a search
    texts  yields the texts of a row that are searched
    sorts  the orders: the name of a number or a facet, descending after a minus
    order  {facet: its values in their own order}
    """

    fill: Callable[[Columns, Callable[[], bool]], None]
    scan: Callable[[], Iterator[Row]]
    texts: RowTexts
    sorts: Collection[str]
    orders: Mapping[str, Sequence[str]]


class Index:
    """The columns of all rows, and queries on them; caches the last results and searches."""

    def __init__(self, columns: Columns, origin: IndexedRows) -> None:
        self._columns = columns
        self._origin = origin
        self._lock = threading.Lock()
        self._results: OrderedDict[tuple[Query, int, object], Result] = OrderedDict()
        self._scans: OrderedDict[str, TextScan] = OrderedDict()
        self._is_closed = False
        self._done = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._origin.fill(self._columns, lambda: self._is_closed)
        except Exception as error:  # the pages stay usable with the rows indexed so far
            print(f"builder: view: index: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            self._columns.complete()
            self._done.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until all rows are indexed; returns false if the time runs out first."""
        return self._done.wait(seconds)

    def close(self) -> None:
        """Stops the threads."""
        self._is_closed = True
        for scan in self._scans.values():
            scan.stop()
        self._done.wait(5)

    @property
    def view(self) -> ColumnView:
        """Returns the columns of the rows indexed so far."""
        return self._columns.view()

    def result(
        self, query: Query, extra: Callable[[ColumnView, str, str], Mask | None], version: object
    ) -> Result:
        """Returns the rows that match.

        `extra(view, facet, value)` returns the mask of a facet that is not indexed, or None for an
        indexed one. `version` must change when its masks do.
        """
        view = self.view
        scan = self._scan(query.text) if query.text else None
        is_searched = scan is None or scan.wait(_PATIENCE)
        key = (query, view.count, version)
        with self._lock:
            if key in self._results and view.is_complete:
                self._results.move_to_end(key)
                return self._results[key]
        masks: dict[str, Mask] = {}
        for facet, value in query.chosen:
            own = extra(view, facet, value)
            masks[facet] = own if own is not None else view.facets[facet].mask(view.count, value)
        searched = 1.0
        if scan is not None:
            masks[""] = scan.mask(view.count)
            searched = 1.0 if is_searched else min(scan.searched / max(view.count, 1), 0.99)
        result = Result(np.zeros(0, dtype=np.uint32), view, masks, searched)
        numbers = np.flatnonzero(result.mask()).astype(np.uint32)
        result = Result(self._sorted(numbers, view, query.sort), view, masks, searched)
        if result.is_complete:
            with self._lock:
                self._results[key] = result
                if len(self._results) > _RESULTS:
                    self._results.popitem(last=False)
        return result

    def _sorted(self, numbers: Numbers, view: ColumnView, sort: str) -> Numbers:
        if not sort or sort not in self._origin.sorts:
            return numbers
        name, is_descending = sort.removeprefix("-"), sort.startswith("-")
        if name in view.numbers:
            keys = view.numbers[name][numbers].astype(np.int64)
            keys = -keys if is_descending else keys
        else:
            order = self._origin.orders.get(name)
            keys = view.facets[name].ranks(view.count, order, descending=is_descending)[numbers]
        return numbers[np.argsort(keys, kind="stable")]

    def _scan(self, text: str) -> TextScan:
        with self._lock:
            known = self._scans.pop(text, None)
            if known is None:
                known = TextScan(text, self._origin.scan(), self._origin.texts)
            self._scans[text] = known
            if len(self._scans) > _SCANS:
                self._scans.popitem(last=False)[1].stop()
            return known


class SampleIndex(Index):
    """The index of the samples."""

    def __init__(self, rows: Rows) -> None:
        columns = Columns([name for name in FACETS if name != "review"], NUMBERS)
        origin = IndexedRows(
            partial(_index_samples, rows),
            partial(_scan_samples, rows),
            sample_texts,
            SORTS,
            ORDERS,
        )
        super().__init__(columns, origin)


class RejectIndex(Index):
    """The index of rejects.jsonl."""

    def __init__(self, path: Path) -> None:
        self.lines = LineIndex(path)
        columns = Columns(REJECT_FACETS, ())
        origin = IndexedRows(self._fill, lambda: _stored(self.lines), reject_texts, (), {})
        super().__init__(columns, origin)

    def line(self, number: int) -> dict[str, Json] | None:
        """Returns a line by its number from 0, or None."""
        if not self.lines.reach(number):
            return None
        return as_dict(decoded(next(self.lines.lines(number))[1]))

    def _fill(self, columns: Columns, is_closed: Callable[[], bool]) -> None:
        for _, line in self.lines.lines(0) if self.lines.reach(0) else ():
            if is_closed():
                return
            reject = Reject.read(decoded(line))
            own = {name: facet_value(getattr(reject, name) or "") for name in REJECT_FACETS}
            columns.add({name: [text] for name, text in own.items() if text}, {})


def _index_samples(rows: Rows, columns: Columns, is_closed: Callable[[], bool]) -> None:
    try:
        for at, opened in enumerate(rows.files):
            for number, row in enumerate(rows.rows(Address(at, 0))):
                if is_closed():
                    return
                if number % _AHEAD == 0:
                    opened.data.reach(number + _AHEAD)
                    if opened.meta is not None:
                        opened.meta.reach(number + _AHEAD)
                if opened.file.foreign:
                    opened.converted.add(row.converted)
                counts = row_counts(row)
                columns.add(sample_values(row, counts), sample_numbers(row, counts))
    finally:
        for opened in rows.files:
            opened.converted.finish()


def _scan_samples(rows: Rows) -> Iterator[Row]:
    for opened in rows.files:
        if opened.file.foreign:
            stored = zip(_stored(opened.data), opened.converted.lines(), strict=False)
            yield from (row if line is None else line for row, line in stored)
        else:
            yield from _stored(opened.data)


def _stored(data: LineIndex | ParquetIndex) -> Iterator[Row]:
    if isinstance(data, ParquetIndex):
        yield from (value for _, value in data.values(0))
    elif data.reach(0):
        yield from (line for _, line in data.lines(0))
