"""Defines the result of an audit: findings with examples, tables and histograms, as plain values.

The report and `builder audit --json` depend only on these types, not on the audits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from builder.audit.counts import Counts
from builder.brief import brief
from builder.finding import AuditFinding
from builder.ledger import ranked


@dataclass(frozen=True, slots=True)
class AuditTable:
    """A table of numbers.

    bars    the column that the report draws as bars, if any
    target  (text of the first column, requested value of the drawn column), as for a mix
    bad     the column with the part of each bar that the report draws as bad, if any
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]
    note: str = ""
    bars: str | None = None
    target: tuple[tuple[str, float], ...] = ()
    bad: str | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts per bin; `len(edges) == len(counts) + 1`, the last bin includes its upper edge.

    extent  the lowest and the highest value, if they are known
    """

    key: str
    title: str
    unit: str
    edges: tuple[int, ...]
    counts: tuple[int, ...]
    note: str = ""
    extent: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Pick:
    """A notable sample, by its row number in the dataset, counted from 0."""

    reason: str
    row: int


@dataclass(frozen=True, slots=True)
class Audit:
    """The results of all audits.

    rows        rows of the dataset, also those without a sample
    counts      the counts over the samples
    inferred    {tool: samples} of the definitions that were inferred from calls
    read_as     {form: rows converted from it}; rows in the form that `build` writes do not count
    conversion  {code: count} of the changes made by the conversion
    """

    samples: int
    findings: tuple[AuditFinding, ...] = ()
    tables: tuple[AuditTable, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    picks: tuple[Pick, ...] = ()
    counts: Counts = field(default_factory=Counts)
    inferred: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    read_as: Mapping[str, int] = field(default_factory=dict)
    conversion: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Returns the samples, rows and findings in one line."""
        found = {item.code: item.count for item in self.findings}
        return brief(self, samples=self.samples, rows=self.rows, findings=found)

    def as_json(self) -> dict[str, Any]:
        """Returns the audit as a JSON object, of the counts those that no table has."""
        counts = self.counts
        facts = {
            "training": asdict(counts.training),
            "parity": dict(counts.parity),
            "languages": dict(ranked(counts.languages)),
            "trained_turns": counts.turns,
            "trained_tokens": counts.trained_tokens,
            "thinking_turns": counts.thinking,
        }
        return {**asdict(replace(self, counts=Counts())), "counts": facts}
