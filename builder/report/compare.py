"""Compares two datasets: which samples were added, removed or changed, and other counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from builder.brief import brief
from builder.conversation import Json
from builder.dataset.files import dataset_path
from builder.dataset.rejects import read_rejects
from builder.dataset.rows import dataset_rows
from builder.jsonio import dumps
from builder.paths import expand_home
from builder.qwen3.flat import dialogue_of
from builder.sample import Sample

BAD = "(no sample)"
"""Counted as the tool of a row that cannot be parsed."""

_OF_META = frozenset({"formats", "models", "patterns", "units", "outcomes"})
"""Tables of what only meta/ says."""


@dataclass(slots=True)
class _DatasetFacts:
    """The facts that are compared; takes memory for an id and an origin per sample.

    tokens   None if a row has no line in meta/, which counts them
    ids      samples by id, and `places` of their conversations
    counts   {table ("tools", "rejects", …): {name: number of samples, calls or lines}}
    """

    samples: int = 0
    tokens: int | None = 0
    calls: int = 0
    ids: Counter[str] = field(default_factory=Counter)
    places: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, table: str, name: str, number: int = 1) -> None:
        """Counts a name in a table."""
        self.counts.setdefault(table, Counter())[name] += number


@dataclass(frozen=True, slots=True)
class DatasetDifference:
    """The difference from `before` to `after`.

    added, removed  samples of conversations that only one of the datasets has
    changed         samples of the same conversation with different bytes
    tables          {table: {name: (before, after)}} of everything that differs; without the counts
                    of meta/ if one of the datasets has none
    """

    before: _DatasetFacts
    after: _DatasetFacts
    same: int
    changed: int
    added: int
    removed: int
    tables: Mapping[str, Mapping[str, tuple[int, int]]]

    def __repr__(self) -> str:
        """Returns the samples of both and how many differ in one line."""
        counts = {key: getattr(self, key) for key in ("same", "changed", "added", "removed")}
        return brief(self, before=self.before.samples, after=self.after.samples, **counts)

    def to_json(self) -> dict[str, Json]:
        """Returns the difference as JSON."""
        names = ("samples", "tokens", "calls")
        return {
            **{name: [getattr(self.before, name), getattr(self.after, name)] for name in names},
            "same": self.same,
            "changed": self.changed,
            "came": self.added,
            "went": self.removed,
            "tables": {
                table: {name: list(pair) for name, pair in rows.items()}
                for table, rows in self.tables.items()
            },
        }


def compare(before: str, after: str) -> DatasetDifference:
    """Compares two datasets of any origin. Raises UsageError if there is no such dataset."""
    for dataset in (before, after):  # a mistyped second one is reported before the first is read
        dataset_path(dataset)
    first, second = _dataset_facts(before), _dataset_facts(after)
    removed, added = _missing(first, second), _missing(second, first)
    changed = (removed & added).total()
    tables = {}
    for table in sorted({*first.counts, *second.counts}):
        one, other = first.counts.get(table, Counter()), second.counts.get(table, Counter())
        names = sorted(name for name in {*one, *other} if one[name] != other[name])
        is_known = table not in _OF_META or None not in (first.tokens, second.tokens)
        if names and is_known:
            tables[table] = {name: (one[name], other[name]) for name in names}
    return DatasetDifference(
        first,
        second,
        (first.ids & second.ids).total(),
        changed,
        added.total() - changed,
        removed.total() - changed,
        tables,
    )


def _missing(one: _DatasetFacts, other: _DatasetFacts) -> Counter[tuple[str | None, ...]]:
    missing: Counter[tuple[str | None, ...]] = Counter()
    for name, count in (one.ids - other.ids).items():
        missing[one.places[name]] += count
    return missing


def _dataset_facts(dataset: str) -> _DatasetFacts:
    """Counts a dataset. Raises UsageError if there is no such dataset."""
    facts = _DatasetFacts()
    for row in dataset_rows(dataset):
        facts.samples += 1
        sample, meta = row.sample, row.meta
        if not isinstance(sample, Sample):
            facts.count("tools", BAD)
            continue
        facts.ids[sample.id] += 1
        facts.places[sample.id] = meta.place
        if row.meta_line is None:
            facts.tokens = None
        elif facts.tokens is not None:
            facts.tokens += meta.tokens
        facts.count("splits", row.split)
        for name in ("format", "model", "pattern", "unit"):
            values = meta.every_model if name == "model" else (getattr(meta, name),)
            for value in filter(None, values):
                facts.count(f"{name}s", value)
        for key, value in (meta.outcome or {}).items():
            if isinstance(value, str | int | float | bool):
                facts.count("outcomes", f"{key}: {dumps(value)}")
        _count_tools(facts, sample)
    for reject in read_rejects(expand_home(dataset)):
        facts.count("rejects", reject.code)
    return facts


def _count_tools(facts: _DatasetFacts, sample: Sample) -> None:
    dialogue = dialogue_of(sample)
    if dialogue is None:
        facts.count("tools", BAD)
        return
    for turn in dialogue.turns:
        for call in turn.calls:
            facts.calls += 1
            facts.count("tools", call.name)
