"""Indexes a dataset for the viewer once, in a thread; queries can use the rows indexed so far."""

from __future__ import annotations

import hashlib
import re
import sys
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from builder.audit.failures import ERROR, is_error
from builder.codes import meaning, meaning_of_change
from builder.conversation import LEVEL_MEANINGS, LEVELS, Json
from builder.dataset.rejects import Reject
from builder.dataset.rows import DatasetRow
from builder.dataset.store import (
    Address,
    LineIndex,
    ParquetIndex,
    Rows,
    as_stored,
    characters,
    content,
    decoded,
    messages,
)
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.render import RESPONSE_CLOSE, RESPONSE_OPEN
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.sample import Sample
from builder.text import number, shorten

# Filters, counts and sorts many rows in milliseconds, using compact arrays.

Mask = NDArray[np.bool_]
_Numbers = NDArray[np.uint32]

_STALE = 0.5
"""Seconds for which a copy of growing columns is reused."""
_MANY = 10_000
"""Values of a facet above which only the most frequent ones are sorted."""


@dataclass(frozen=True, slots=True)
class _FacetColumn:
    """The (row, value) pairs of a facet: row numbers, and indexes of values in `names`."""

    rows: _Numbers
    codes: _Numbers
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
    facets: Mapping[str, _FacetColumn]
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
            name: _FacetColumn(
                column(self._rows[name], np.uint32),
                column(self._codes[name], np.uint32),
                list(self._names[name]),
            )
            for name in self._rows
        }
        numbers = {name: column(values, np.uint64) for name, values in self._numbers.items()}
        return ColumnView(self._count, self._is_complete, facets, numbers)


# -- represents the query of a list (text, values of facets, order), which is part of its URL ------

_MAX_TEXT = 300
"""Characters of a text or value that are used; the rest is ignored."""


@dataclass(frozen=True, slots=True)
class Query:
    """Conditions on rows, and their order.

    text    must occur in a message or a tool definition; case is ignored
    chosen  (facet, value) pairs, all of which must match
    sort    the name of an order; "" is the order of the dataset
    """

    text: str = ""
    chosen: tuple[tuple[str, str], ...] = ()
    sort: str = ""

    @classmethod
    def read(
        cls, params: Mapping[str, str], facets: Collection[str], sorts: Collection[str]
    ) -> Query:
        """Parses the fields of a URL; ignores unknown ones."""
        chosen = [(name, params[name][:_MAX_TEXT]) for name in facets if params.get(name)]
        sort = params.get("sort", "")
        return cls(
            params.get("text", "").strip()[:_MAX_TEXT], tuple(chosen), sort if sort in sorts else ""
        )

    def __bool__(self) -> bool:
        return bool(self.text or self.chosen)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Returns the (name, value) fields of the URL, in order."""
        own = [("text", self.text), *self.chosen, ("sort", self.sort)]
        return [(name, value) for name, value in own if value]

    def url(self, address: str = "", /, **more: object) -> str:
        """Returns the URL of a page for this query, with further fields; "" omits a field."""
        extra = [(key, str(value)) for key, value in more.items() if value != ""]
        fields = urlencode([*self.fields, *extra])
        return f"{address}?{fields}" if fields else address or "."

    def choosing(self, facet: str, value: str) -> Query:
        """Returns a query with another value of a facet; "" removes the condition."""
        others = [pair for pair in self.chosen if pair[0] != facet]
        return replace(self, chosen=(*others, (facet, value)) if value else tuple(others))

    def sorted(self, order: str) -> Query:
        """Returns the query with another order."""
        return replace(self, sort=order)

    def value(self, facet: str) -> str:
        """Returns the chosen value of a facet, or ""."""
        return dict(self.chosen).get(facet, "")

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """Returns a pattern that matches the text, or None if there is none."""
        return re.compile(re.escape(self.text), re.IGNORECASE) if self.text else None


def whole_number(written: str) -> int:
    """Parses a number in a URL or header; returns 0 for anything else."""
    return int(written) if written.isascii() and written.isdigit() and len(written) < 16 else 0


# -- searches all rows for a text in a thread; the matches so far are available at any time --------

Row: TypeAlias = "bytes | Json"
"""A line that is not decoded yet, or the value of a row."""

_RowTexts = Callable[[Json], Iterator[str]]
"""Yields the texts of a row that are searched."""


class _TextScan:
    """One pass over the rows that records which of them contain a text, ignoring case.

    A line is decoded only if its bytes may contain the text. Lines with escapes that only other
    writers use are always decoded. If the text contains quotes, all lines are decoded, because
    quotes are escaped in messages but not in tool definitions.
    """

    def __init__(self, text: str, rows: Iterator[Row], texts: _RowTexts) -> None:
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        self._needle = dumps(text)[1:-1].casefold()
        self._has_quotes = '"' in text
        self._rows = rows
        self._texts = texts
        self._found = array("I")
        self._lock = threading.Lock()
        self._is_stopped = False
        self.searched = 0
        self._done = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Waits for the end; returns whether it was reached."""
        return self._done.wait(seconds)

    def stop(self) -> None:
        """Stops the search."""
        self._is_stopped = True

    def mask(self, count: int) -> Mask:
        """Returns a mask of the first `count` rows: true for those found to contain the text."""
        with self._lock:
            numbers = np.array(self._found, dtype=np.uint32)
        mask = np.zeros(count, dtype=np.bool_)
        mask[numbers[numbers < count]] = True
        return mask

    def _run(self) -> None:
        try:
            for number, row in enumerate(self._rows):
                if self._is_stopped:
                    return
                if self._matches(row):
                    with self._lock:
                        self._found.append(number)
                self.searched = number + 1
        finally:
            self._done.set()

    def _matches(self, row: Row) -> bool:
        if isinstance(row, bytes):
            if not self._may_contain(row):
                return False
            row = decoded(row)
        return any(self._pattern.search(text) for text in self._texts(row))

    def _may_contain(self, line: bytes) -> bool:
        return (
            self._has_quotes
            or self._needle in line.decode("utf-8", "replace").casefold()
            or b"\\u" in line
            or b"\\/" in line
        )


def sample_texts(value: Json) -> Iterator[str]:
    """Yields the messages of a sample and its tool definitions as JSON; all JSON of other rows."""
    row = as_dict(value)
    messages = row.get("messages")
    if not isinstance(messages, list):
        yield value if isinstance(value, str) else dumps(value)
        return
    for item in messages:
        yield as_str(item, "content")
    tools = row.get("tools")
    if tools:
        yield tools if isinstance(tools, str) else dumps(tools)


def _reject_texts(value: Json) -> Iterator[str]:
    """Yields the values of a line of rejects.jsonl."""
    for item in as_dict(value).values():
        yield as_str(item)


# -- defines the facets by which the viewer filters samples ----------------------------------------

FACETS = {
    "review": "Review",
    "split": "Split",
    "form": "Converted from",
    "problem": "No sample because",
    "format": "Format",
    "model": "Model",
    "tool": "Tool called",
    "pattern": "Behaviour",
    "outcome": "Outcome",
    "context": "Context level",
    "length": "Length",
    "code": "Changes",
    "source": "Source",
}
"""{facet: title}; "review" is not indexed, because reviews change."""

_NUMBERS = ("length", "turns", "calls", "errors", "id")

_SORTED = {
    "length": ("longest first", "shortest first"),
    **{
        name: (f"most {name} first", f"fewest {name} first")
        for name in ("turns", "calls", "errors")
    },
}
SORTS = {"": "the dataset's order"}
for _name, (_most, _least) in _SORTED.items():
    SORTS |= {f"-{_name}": _most, _name: _least}
for _name in ("outcome", "context", "source", "model"):
    SORTS |= {_name: _name, f"-{_name}": f"{_name}, from the end"}
"""{order: title}: the name of a number or a facet, descending after a minus."""

_BOUNDS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
_PER_TOKEN = 4
"""Assumed characters of a token, for the bounds of lengths in characters."""


def _names(unit: str, bounds: Sequence[int]) -> tuple[str, ...]:
    between = (f"{number(low)} to {number(high)}" for low, high in pairwise(bounds))
    names = (f"under {number(bounds[0])}", *between, f"{number(bounds[-1])} and more")
    return tuple(f"{name} {unit}" for name in names)


_TOKENS = _names("tokens", _BOUNDS)
_CHARACTERS = _names("characters", [_PER_TOKEN * bound for bound in _BOUNDS])
ORDERS: Mapping[str, tuple[str, ...]] = {
    "length": (*_TOKENS, *_CHARACTERS),
    "context": LEVELS,
}
"""{facet: its values in their own order}; values of other facets are ordered by frequency."""

_MEANINGS = {
    "pattern": {
        "direct_answer": "no turn makes a call",
        "single_call": "one turn makes one call",
        "chain": "calls in several turns, with no question between them",
        "parallel": "a turn makes several calls",
        "clarification": "the model asks before its first call",
        "error_recovery": "a call failed, and a later turn makes another",
    },
    "context": LEVEL_MEANINGS,
}
"""{facet: {value: what it means}}."""

_MAX_VALUE = 160
_MAX_VALUES = 200
_MAX_NUMBER = 1 << 62


def sample_values(row: DatasetRow, counts: _RowCounts) -> dict[str, list[str]]:
    """Returns {facet: values}, without the facets that have none."""
    meta, changes = row.meta, row.reading.changes if row.foreign else {}
    values = {
        "split": [row.split],
        "form": _texts(row.reading.form) if row.converted is not None else [],
        "problem": _texts(row.reading.code) if row.foreign else [],
        "format": _texts(meta.format),
        "model": [name for name in meta.every_model if name],
        "tool": list(dict.fromkeys(counts.calls))[:_MAX_VALUES],
        "pattern": _texts(meta.pattern),
        "outcome": list(_outcome(meta.outcome or {})),
        "context": _texts(meta.context.level if meta.context else None),
        "length": [_length(row)],
        "code": [*meta.changes, *changes][:_MAX_VALUES],
        "source": _texts(meta.source),
    }
    return {name: [_facet_value(value) for value in own] for name, own in values.items() if own}


def facet_meaning(facet: str, value: str) -> str:
    """Returns what a value of a facet means in a few words, or ""."""
    if facet == "code":
        return meaning_of_change(value)
    if facet == "problem":
        return meaning(value)
    return _MEANINGS.get(facet, {}).get(value, "")


@lru_cache(maxsize=4096)
def _facet_value(value: str) -> str:
    """Shortens a value for lists and URLs, and replaces lone surrogates."""
    return shorten(value, _MAX_VALUE).encode("utf-8", "replace").decode()


def sample_numbers(row: DatasetRow, counts: _RowCounts) -> dict[str, int]:
    """Returns the NUMBERS of a row; the length is in characters if tokens are not known."""
    meta = row.meta
    answers = (message.get("role") == "assistant" for message in messages(content(row)))
    numbers = {
        "length": meta.tokens or characters(row),
        "turns": meta.assistant_turns or sum(answers),
        "calls": meta.calls or len(counts.calls),
        "errors": counts.errors,
    }
    bounded = {name: max(0, min(value, _MAX_NUMBER)) for name, value in numbers.items()}
    return {**bounded, "id": id_digest(sample_id(row))}


def sample_id(row: DatasetRow) -> str:
    """Returns the id in meta/, or else the one that a build would assign."""
    if row.meta.id:
        return row.meta.id
    if isinstance(row.sample, Sample):
        return row.sample.id
    return hashlib.sha256(dumps(as_stored(row)).encode("utf-8", "replace")).hexdigest()


def id_digest(sample: str) -> int:
    """Returns a 64-bit hash of an id, by which the index finds it."""
    data = sample.encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


def _texts(value: str | None) -> list[str]:
    return [value] if value else []


def _length(row: DatasetRow) -> str:
    if row.meta.tokens:
        return _TOKENS[sum(row.meta.tokens >= bound for bound in _BOUNDS)]
    length = characters(row)
    return _CHARACTERS[sum(length >= _PER_TOKEN * bound for bound in _BOUNDS)]


def _outcome(value: Mapping[str, Json]) -> Iterator[str]:
    """Yields `key: value` for the first texts, numbers and booleans of an outcome."""
    for key, item in list(value.items())[:8]:
        if isinstance(item, bool):
            yield f"{key}: {'yes' if item else 'no'}"
        elif isinstance(item, int | float):
            yield f"{key}: {item:.3g}" if isinstance(item, float) else f"{key}: {str(item)[:40]}"
        elif isinstance(item, str) and item:
            yield f"{key}: {item}"


# -- what a row contains ---------------------------------------------------------------------------

_CALL = re.compile(r'<tool_call>\s*(?:\{"name": ("(?:[^"\\]|\\.)*")|<function=([^<>\n]{1,400})>)')


@dataclass(slots=True)
class _RowCounts:
    """The assistant turns of a row, the names of the called tools, and how many calls failed."""

    turns: int = 0
    calls: list[str] = field(default_factory=list)
    errors: int = 0


def row_counts(row: DatasetRow) -> _RowCounts:
    """Counts a row, whatever it contains."""
    logged = row.failed_calls
    counts = _RowCounts(errors=sum(failure == ERROR for failure in (logged or {}).values()))
    for message in messages(content(row)):
        role, written = message.get("role"), as_str(message.get("content"))
        if role == "assistant":
            counts.turns += 1
            counts.calls += _calls(written) if "<tool_call>" in written else ()
        elif role == "tool" or (role == "user" and written.startswith(RESPONSE_OPEN)):
            counts.errors += sum(map(is_error, _responses(written) if logged is None else ()))
    return counts


def _calls(written: str) -> Iterator[str]:
    for match in _CALL.finditer(written):
        if match[2]:
            yield match[2]
            continue
        try:
            yield as_str(loads(match[1].encode("utf-8", "surrogatepass")))
        except JsonFault:
            continue


def _responses(written: str) -> list[str]:
    if not written.startswith(RESPONSE_OPEN):
        return [written]
    pieces = written.split(RESPONSE_OPEN)[1:]
    return [piece.rpartition(RESPONSE_CLOSE)[0].strip("\n") for piece in pieces]


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

    numbers: _Numbers
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
class _IndexedRows:
    """How an index reads its rows.

    fill   fills the columns until the callback returns true
    scan   yields all rows for a search
    texts  yields the texts of a row that are searched
    sorts  the orders: the name of a number or a facet, descending after a minus
    order  {facet: its values in their own order}
    """

    fill: Callable[[Columns, Callable[[], bool]], None]
    scan: Callable[[], Iterator[Row]]
    texts: _RowTexts
    sorts: Collection[str]
    orders: Mapping[str, Sequence[str]]


class _Index:
    """The columns of all rows, and queries on them; caches the last results and searches."""

    def __init__(self, columns: Columns, origin: _IndexedRows) -> None:
        self._columns = columns
        self._origin = origin
        self._lock = threading.Lock()
        self._results: OrderedDict[tuple[Query, int, object], Result] = OrderedDict()
        self._scans: OrderedDict[str, _TextScan] = OrderedDict()
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

    def _sorted(self, numbers: _Numbers, view: ColumnView, sort: str) -> _Numbers:
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

    def _scan(self, text: str) -> _TextScan:
        with self._lock:
            known = self._scans.pop(text, None)
            if known is None:
                known = _TextScan(text, self._origin.scan(), self._origin.texts)
            self._scans[text] = known
            if len(self._scans) > _SCANS:
                self._scans.popitem(last=False)[1].stop()
            return known


class SampleIndex(_Index):
    """The index of the samples."""

    def __init__(self, rows: Rows) -> None:
        columns = Columns([name for name in FACETS if name != "review"], _NUMBERS)
        origin = _IndexedRows(
            partial(_index_samples, rows),
            partial(_scan_samples, rows),
            sample_texts,
            SORTS,
            ORDERS,
        )
        super().__init__(columns, origin)


class RejectIndex(_Index):
    """The index of rejects.jsonl."""

    def __init__(self, path: Path) -> None:
        self.lines = LineIndex(path)
        columns = Columns(REJECT_FACETS, ())
        origin = _IndexedRows(self._fill, lambda: _stored(self.lines), _reject_texts, (), {})
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
            own = {name: _facet_value(getattr(reject, name) or "") for name in REJECT_FACETS}
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
