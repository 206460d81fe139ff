"""Counts samples by origin (format, source, model, licence), and rejects by code."""

from __future__ import annotations

from collections import Counter

from builder.audit.notes import AuditRow
from builder.audit.result import AuditTable
from builder.dataset.rejects import Reject
from builder.ledger import ranked

MAX_NAMES = 20_000
SHOWN = 50
OTHERS = "(others)"
SEVERAL = "a sample of several models counts for each of them"


class OriginAudit:
    """Counts by format, source, model, licence and split."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, Counter[str]]] = {
            key: {} for key in ("format", "source", "model", "license")
        }
        self._splits: Counter[str] = Counter()
        self._rejects: Counter[tuple[str, str]] = Counter()

    def add(self, row: AuditRow) -> None:
        """Counts a sample."""
        self._splits[row.split] += 1
        for key in self._counts:
            names = row.meta.every_model if key == "model" else (getattr(row.meta, key),)
            for name in names:  # a sample of several models counts for each
                counts = self._named(key, name or "unknown")
                counts["samples"] += 1
                counts["tokens"] += row.meta.tokens
                counts["calls"] += row.meta.calls
                counts["turns"] += row.meta.assistant_turns

    def _named(self, key: str, name: str) -> Counter[str]:
        known = self._counts[key]
        if name not in known and len(known) >= MAX_NAMES:
            name = OTHERS
        return known.setdefault(name, Counter())

    def merge(self, later: OriginAudit) -> None:
        """Adds the counts of the samples that follow."""
        self._splits += later._splits
        for key, known in later._counts.items():
            for name, counts in known.items():
                self._named(key, name).update(counts)

    def add_reject(self, reject: Reject) -> None:
        """Counts a line of rejects.jsonl."""
        self._rejects[reject.code, str(reject.format)] += 1

    def tables(self) -> list[AuditTable]:
        """Returns a table of splits, one for each kind of origin, and one of rejects."""
        titles = {
            "format": "Samples by format",
            "source": "Samples by source",
            "model": "Samples by model",
            "license": "Samples by licence",
        }
        tables = [
            AuditTable("splits", "Samples by split", ("split", "samples"), ranked(self._splits))
        ]
        for key, title in titles.items():
            known = sorted(
                self._counts[key].items(), key=lambda item: (-item[1]["samples"], item[0])
            )
            rows = tuple(
                (name, counts["samples"], counts["tokens"], counts["turns"], counts["calls"])
                for name, counts in known[:SHOWN]
            )
            counted = sum(counts["samples"] for _, counts in known)
            several = [SEVERAL] if counted > self._splits.total() else []
            shown = [f"{len(known)} in all; the {SHOWN} with most samples"]
            note = "; ".join((shown if len(known) > SHOWN else []) + several)
            heads = (key, "samples", "tokens", "assistant turns", "calls")
            tables.append(AuditTable(f"{key}s", title, heads, rows, note, bars="samples"))
        rows_of_rejects = tuple((*key, count) for key, count in ranked(self._rejects))
        tables.append(
            AuditTable(
                "rejects", "Rejects by code", ("code", "format", "rejects"), rows_of_rejects,
                bars="rejects",
            )
        )  # fmt: skip
        return tables
