"""Finds runs of public benchmarks by the outcome in meta/."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.audit.notes import AuditRow, FindingNotes
from builder.audit.result import AuditFinding, AuditTable
from builder.dataset.meta import SampleMeta
from builder.ledger import ranked

EVALUATION_RUN = "evaluation_run"
"""The code of samples that come from a run of a public benchmark."""

MAX_NAMES = 10_000
NAMED = 5
SHOWN = 50
OTHERS = "(others)"
_NAME_CHARS = 60


def benchmark_of(meta: SampleMeta) -> str | None:
    """Returns `outcome.benchmark` of a line of meta/ on one line, or None."""
    return " ".join(meta.benchmark.split())[:_NAME_CHARS] or None


def benchmark_summary(counts: Counter[str]) -> str:
    """Returns the benchmarks with their samples, the most frequent first: "tau-bench (12)"."""
    named = [f"{name} ({count})" for name, count in ranked(counts)[:NAMED]]
    more = len(counts) - NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


class BenchmarkAudit:
    """Counts the samples of each benchmark."""

    def __init__(self) -> None:
        self._notes = FindingNotes()
        self._counts: Counter[str] = Counter()

    def add(self, row: AuditRow) -> None:
        """Counts a sample."""
        name = benchmark_of(row.meta)
        if name is not None:
            self._notes.add(EVALUATION_RUN, row, "", name)
            self._count(name, 1)

    def merge(self, later: BenchmarkAudit) -> None:
        """Adds the counts of the samples that follow."""
        self._notes.merge(later._notes)
        for name, count in later._counts.items():
            self._count(name, count)

    def _count(self, name: str, count: int) -> None:
        known = name in self._counts or len(self._counts) < MAX_NAMES
        self._counts[name if known else OTHERS] += count

    def findings(self) -> Iterator[AuditFinding]:
        """Yields the finding, if there is one."""
        if EVALUATION_RUN in self._notes:
            message = f"runs of public benchmarks: {benchmark_summary(self._counts)}"
            yield self._notes.finding("benchmarks", EVALUATION_RUN, message)

    def tables(self) -> Iterator[AuditTable]:
        """Yields the counts by benchmark, if there are any."""
        if self._counts:
            note = f"{len(self._counts)} in all; the {SHOWN} with most samples"
            yield AuditTable(
                "benchmarks",
                "Runs of public benchmarks",
                ("benchmark", "samples"),
                ranked(self._counts)[:SHOWN],
                note if len(self._counts) > SHOWN else "",
                bars="samples",
            )
