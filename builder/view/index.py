"""Indexes a dataset for the viewer once, in a thread; queries can use the rows indexed so far."""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import urlencode

from builder.audit.failures import ERROR, failed_calls
from builder.codes import meaning, meaning_of_change
from builder.conversation import LEVEL_MEANINGS, LEVELS, Json
from builder.dataset.rejects import Reject
from builder.dataset.review import Decision
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
from builder.jsonio import dumps
from builder.ledger import ranked
from builder.qwen3.flat import dialogue_of
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.sample import Sample
from builder.text import number, shorten
from builder.view.review_file import states

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
        self.found: list[int] = []
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

    def _run(self) -> None:
        try:
            for number, row in enumerate(self._rows):
                if self._is_stopped:
                    return
                if self._matches(row):
                    self.found.append(number)
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

_NUMBERS = ("length", "turns", "calls", "errors")

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
ORDERS: Mapping[str, tuple[str, ...]] = {"length": (*_TOKENS, *_CHARACTERS), "context": LEVELS}
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


def sample_values(row: DatasetRow, counts: _RowCounts) -> dict[str, tuple[str, ...]]:
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
    return {name: tuple(map(_facet_value, own)) for name, own in values.items() if own}


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
    return {
        "length": meta.tokens or characters(row),
        "turns": meta.assistant_turns or counts.turns,
        "calls": meta.calls or len(counts.calls),
        "errors": counts.errors,
    }


def sample_id(row: DatasetRow) -> str:
    """Returns the id in meta/, or else the one that a build would assign."""
    if row.meta.id:
        return row.meta.id
    if isinstance(row.sample, Sample):
        return row.sample.id
    return hashlib.sha256(dumps(as_stored(row)).encode("utf-8", "replace")).hexdigest()


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


@dataclass(slots=True)
class _RowCounts:
    """The assistant turns of a row, the names of the called tools, and how many calls failed."""

    turns: int = 0
    calls: Sequence[str] = ()
    errors: int = 0


def row_counts(row: DatasetRow) -> _RowCounts:
    """Counts a row; of one without a sample that can be parsed, only the turns."""
    dialogue = dialogue_of(row.sample) if isinstance(row.sample, Sample) else None
    if dialogue is None:
        roles = [message.get("role") for message in messages(content(row))]
        return _RowCounts(roles.count("assistant"))
    failures = failed_calls(dialogue, row.failed_calls).values()
    return _RowCounts(
        sum(turn.role == "assistant" for turn in dialogue.turns),
        [call.name for turn in dialogue.turns for call in turn.calls],
        sum(failure == ERROR for failure in failures),
    )


REJECT_FACETS = {"code": "Code", "format": "Format", "source": "Source"}

_SCANS = 3
"""Cached searches."""
_PATIENCE = 1.5
"""Seconds that a request waits for a search before it returns the matches so far."""


IndexedRow: TypeAlias = "tuple[Mapping[str, tuple[str, ...]], Mapping[str, int], str]"
"""The values of the facets of a row, its numbers, its id."""
_NONE: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The rows that match a query.

    numbers     the row numbers, in the order that the query requests
    count       the number of rows that were searched
    is_indexed  whether there are no other rows
    searched    the share of the rows in which the text was searched, from 0 to 1
    fitting     {facet: numbers of the rows with the chosen value}; the key of the text is ""
    values      {facet: the values of each row}
    measured    {name: the number of each row}
    ids         the id of each sample
    """

    numbers: Sequence[int]
    count: int
    is_indexed: bool
    searched: float
    fitting: Mapping[str, Collection[int]]
    values: Mapping[str, Sequence[tuple[str, ...]]]
    measured: Mapping[str, Sequence[int]]
    ids: Sequence[str]

    @property
    def is_complete(self) -> bool:
        """Returns whether all rows of the dataset were searched."""
        return self.is_indexed and self.searched >= 1

    def top(self, facet: str, most: int) -> tuple[list[tuple[str, int]], int]:
        """Returns the most frequent values of a facet with their counts, and the number of values.

        A count is the number of results that choosing the value would give.
        """
        chosen: Iterable[int] = self.numbers
        if facet in self.fitting:
            others = [found for name, found in self.fitting.items() if name != facet]
            chosen = [at for at in range(self.count) if all(at in found for found in others)]
        column = self.values[facet]
        counts = Counter(chain.from_iterable(map(column.__getitem__, chosen)))
        return [*ranked(counts)[:most]], len(counts)

    def place(self, number: int) -> int | None:
        """Returns the position of a row in the result, or None."""
        return self.numbers.index(number) if number in self.numbers else None

    def at(self, place: int) -> int | None:
        """Returns the number of the row at a position, or None."""
        return self.numbers[place] if 0 <= place < len(self.numbers) else None


class _Index:
    """What is known of all rows, and queries on it; caches the last searches."""

    texts: _RowTexts
    facets: Collection[str]
    orders: Mapping[str, Sequence[str]] = {}
    names: Sequence[str] = ()

    def __init__(self) -> None:
        """Begins to index the rows; their columns grow meanwhile, that of the ids last."""
        self._values: dict[str, list[tuple[str, ...]]] = {name: [] for name in self.facets}
        self._measured: dict[str, list[int]] = {name: [] for name in self.names}
        self.ids: list[str] = []
        self._scans: OrderedDict[str, _TextScan] = OrderedDict()
        self._lock = threading.Lock()
        self._is_closed = False
        self._done = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _read(self) -> Iterator[IndexedRow]:
        """Yields what is known of each row."""
        raise NotImplementedError

    def _stored(self) -> Iterator[Row]:
        """Yields all rows for a search."""
        raise NotImplementedError

    def _run(self) -> None:
        try:
            for values, measured, sample in self._read():
                if self._is_closed:
                    return
                for name, column in self._values.items():
                    column.append(values.get(name, _NONE))
                for name, numbers in self._measured.items():
                    numbers.append(measured[name])
                self.ids.append(sample)
        except Exception as error:  # the pages stay usable with the rows indexed so far
            print(f"builder: view: index: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
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

    def result(
        self, query: Query, decisions: Mapping[str, Decision] = MappingProxyType({})
    ) -> Result:
        """Returns the rows that match; `decisions` are those of the review."""
        is_indexed = self._done.is_set()
        ids = self.ids[:]
        count = len(ids)
        values: dict[str, Sequence[tuple[str, ...]]] = {
            "review": [states(decisions.get(sample)) for sample in ids]
            if decisions
            else [states(None)] * count,
            **{name: column[:count] for name, column in self._values.items()},
        }
        fitting = {facet: _with_value(values[facet], value) for facet, value in query.chosen}
        searched = 1.0
        if query.text:
            scan = self._scan(query.text)
            is_searched = scan.wait(_PATIENCE)
            searched = 1.0 if is_searched else min(scan.searched / max(count, 1), 0.99)
            fitting[""] = {at for at in scan.found[:] if at < count}
        numbers: Sequence[int] = range(count)
        for found in fitting.values():
            numbers = [at for at in numbers if at in found]
        numbers = self._sorted(numbers, values, query.sort)
        measured = {name: column[:count] for name, column in self._measured.items()}
        return Result(numbers, count, is_indexed, searched, fitting, values, measured, ids)

    def _sorted(
        self, numbers: Sequence[int], values: Mapping[str, Sequence[tuple[str, ...]]], sort: str
    ) -> Sequence[int]:
        """Returns the rows in an order; those without a value of its facet come last."""
        name, is_descending = sort.removeprefix("-"), sort.startswith("-")
        if name in self._measured:
            return sorted(numbers, key=self._measured[name].__getitem__, reverse=is_descending)
        if not sort:
            return numbers
        places = {value: at for at, value in enumerate(self.orders.get(name, ()))}
        column = values[name]

        def key(at: int) -> tuple[int, str]:
            return places.get(column[at][0], len(places)), column[at][0].casefold()

        has = [at for at in numbers if column[at]]
        others = [at for at in numbers if not column[at]]
        return [*sorted(has, key=key, reverse=is_descending), *others]

    def _scan(self, text: str) -> _TextScan:
        with self._lock:
            known = self._scans.pop(text, None) or _TextScan(text, self._stored(), self.texts)
            self._scans[text] = known
            if len(self._scans) > _SCANS:
                self._scans.popitem(last=False)[1].stop()
            return known


def _with_value(values: Sequence[tuple[str, ...]], value: str) -> set[int]:
    """Returns the numbers of the rows with the value; if there are none, with it as a part."""
    part = value.casefold()
    return {at for at, own in enumerate(values) if value in own} or {
        at for at, own in enumerate(values) if any(part in name.casefold() for name in own)
    }


class SampleIndex(_Index):
    """The index of the samples."""

    texts = staticmethod(sample_texts)
    facets = tuple(name for name in FACETS if name != "review")
    orders = ORDERS
    names = _NUMBERS

    def __init__(self, rows: Rows) -> None:
        self._files = rows
        super().__init__()

    def _read(self) -> Iterator[IndexedRow]:
        for at, opened in enumerate(self._files.files):
            for row in self._files.rows(Address(at, 0)):
                counts = row_counts(row)
                values, numbers = sample_values(row, counts), sample_numbers(row, counts)
                yield values, numbers, sample_id(row)
            opened.counted.reach(sys.maxsize)  # so that the numbers of later rows are known

    def _stored(self) -> Iterator[Row]:
        for at, opened in enumerate(self._files.files):
            if opened.file.foreign:
                yield from map(content, self._files.rows(Address(at, 0)))
            else:
                yield from _stored(opened.data)


class RejectIndex(_Index):
    """The index of rejects.jsonl."""

    texts = staticmethod(_reject_texts)
    facets = REJECT_FACETS

    def __init__(self, path: Path) -> None:
        self.lines = LineIndex(path)
        super().__init__()

    def line(self, number: int) -> dict[str, Json] | None:
        """Returns a line by its number from 0, or None."""
        if not self.lines.reach(number):
            return None
        return as_dict(decoded(next(self.lines.lines(number))[1]))

    def _read(self) -> Iterator[IndexedRow]:
        for line in self._stored():
            reject = Reject.read(decoded(line))
            own = {name: _facet_value(getattr(reject, name) or "") for name in REJECT_FACETS}
            yield {name: (text,) for name, text in own.items() if text}, {}, ""

    def _stored(self) -> Iterator[bytes]:
        return (line for _, line in self.lines.lines(0)) if self.lines.reach(0) else iter(())


def _stored(data: LineIndex | ParquetIndex) -> Iterator[Row]:
    if isinstance(data, ParquetIndex):
        yield from (value for _, value in data.values(0))
    elif data.reach(0):
        yield from (line for _, line in data.lines(0))
