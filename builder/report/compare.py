"""Compares two datasets: which samples were added, removed or changed, and other counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from builder.conversation import Json
from builder.dataset.rows import dataset_rows, json_lines
from builder.jsonio import dumps
from builder.paths import expand_home
from builder.qwen3.parse import ParseFault, to_dialogue
from builder.sample import Sample

Place = tuple[str, ...]
"""The origin of a sample: format, source, record and conversation, as meta/ names them."""

BAD = "(no sample)"
"""Placeholder for the tools of a row that is not a sample."""


@dataclass(slots=True)
class DatasetFacts:
    """The compared facts of a dataset; takes memory for a digest and an origin per sample.

    ids      {id of a sample: its origin}
    counts   by table ("tools", "rejects", …) and name: how many samples, calls or lines
    """

    samples: int = 0
    tokens: int = 0
    calls: int = 0
    ids: dict[str, Place] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, table: str, name: str, number: int = 1) -> None:
        """Counts a name in a table."""
        self.counts.setdefault(table, Counter())[name] += number


@dataclass(frozen=True, slots=True)
class DatasetDifference:
    """The difference from `before` to `after`.

    came, went  samples of conversations that the other does not have
    changed     samples of the same conversation with other bytes
    tables      {table: {name: (before, after)}} of everything that differs
    """

    before: DatasetFacts
    after: DatasetFacts
    same: int
    changed: int
    came: int
    went: int
    tables: Mapping[str, Mapping[str, tuple[int, int]]]

    def to_json(self) -> dict[str, Json]:
        """Returns the difference as JSON."""
        return {
            "samples": [self.before.samples, self.after.samples],
            "tokens": [self.before.tokens, self.after.tokens],
            "calls": [self.before.calls, self.after.calls],
            "same": self.same,
            "changed": self.changed,
            "came": self.came,
            "went": self.went,
            "tables": {
                table: {name: list(pair) for name, pair in rows.items()}
                for table, rows in self.tables.items()
            },
        }


def compare(before: str, after: str) -> DatasetDifference:
    """Compares two datasets of any origin. Raises UsageError if there is no such dataset."""
    first, second = facts_of(before), facts_of(after)
    went_ids, came_ids = first.ids.keys() - second.ids.keys(), second.ids.keys() - first.ids.keys()
    went = Counter(first.ids[name] for name in went_ids)
    came = Counter(second.ids[name] for name in came_ids)
    changed = sum((went & came).values())
    tables = {}
    for table in sorted({*first.counts, *second.counts}):
        one, other = first.counts.get(table, Counter()), second.counts.get(table, Counter())
        names = sorted(name for name in {*one, *other} if one[name] != other[name])
        if names:
            tables[table] = {name: (one[name], other[name]) for name in names}
    return DatasetDifference(
        first,
        second,
        len(first.ids) - len(went_ids),
        changed,
        len(came_ids) - changed,
        len(went_ids) - changed,
        tables,
    )


def facts_of(dataset: str) -> DatasetFacts:
    """Returns the compared facts of a dataset. Raises UsageError if there is none."""
    facts = DatasetFacts()
    for row in dataset_rows(dataset):
        facts.samples += 1
        sample, meta = row.sample, row.meta
        if not isinstance(sample, Sample):
            facts.count("tools", BAD)
            continue
        keys = ("format", "source", "record", "conversation")
        facts.ids[sample.id] = tuple(str(meta.get(key)) for key in keys)
        tokens = meta.get("tokens")
        facts.tokens += tokens if isinstance(tokens, int) else 0
        facts.count("splits", row.split)
        for key in ("format", "model", "pattern", "unit"):
            if meta.get(key) is not None:
                facts.count(f"{key}s", str(meta[key]))
        outcome = meta.get("outcome")
        for key, value in outcome.items() if isinstance(outcome, dict) else ():
            if isinstance(value, str | int | float | bool):
                facts.count("outcomes", f"{key}: {dumps(value)}")
        _count_tools(facts, sample)
    for _, line in json_lines_of(dataset):
        if isinstance(line, dict):
            facts.count("rejects", str(line.get("code")))
    return facts


def json_lines_of(dataset: str) -> list[tuple[int, Json]]:
    """Returns the lines of a built folder's rejects.jsonl; [] if there is none."""
    path = expand_home(dataset) / "rejects.jsonl"
    return list(json_lines(path)) if path.is_file() else []


def _count_tools(facts: DatasetFacts, sample: Sample) -> None:
    try:
        dialogue = to_dialogue(sample)
    except ParseFault:
        facts.count("tools", BAD)
        return
    for turn in dialogue.turns:
        for call in turn.calls:
            facts.calls += 1
            facts.count("tools", call.name)
