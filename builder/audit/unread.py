"""Finds samples whose logs had text under keys that no reader, or no path of a mapping, names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.audit.notes import AuditRow, FindingNotes
from builder.audit.result import AuditFinding
from builder.ledger import ranked

UNREAD = "unread_text"
"""The code of samples whose log had text that no reader knows."""

UNMAPPED = "unmapped_text"
"""The code of samples whose log had text, or calls, that the mapping does not read."""

_PREFIXES = {
    UNREAD: ("unknown_key:", "unknown_column:"),
    UNMAPPED: ("unmapped_key:", "unmapped_call", "unmapped_skip"),
}
_MESSAGES = {
    UNREAD: "text of the log that no reader knows",
    UNMAPPED: "the log has text, or results without a call, that the mapping does not read",
}
MAX_NAMES = 1_000
NAMED = 5


class UnreadAudit:
    """Counts the unknown keys of messages and columns of rows."""

    def __init__(self) -> None:
        self._notes = FindingNotes()
        self._counts: dict[str, Counter[str]] = {code: Counter() for code in _PREFIXES}

    def add(self, row: AuditRow) -> None:
        """Counts a sample."""
        for code, prefixes in _PREFIXES.items():
            names = {
                name: count for name, count in row.meta.changes.items() if name.startswith(prefixes)
            }
            if names:
                self._notes.add(code, row, "", ", ".join(names))
                self._count(code, names)

    def merge(self, later: UnreadAudit) -> None:
        """Adds the counts of the samples that follow."""
        self._notes.merge(later._notes)
        for code, counts in later._counts.items():
            self._count(code, counts)

    def _count(self, code: str, names: dict[str, int]) -> None:
        counts = self._counts[code]
        for name, count in names.items():
            if name in counts or len(counts) < MAX_NAMES:
                counts[name] += count

    def findings(self) -> Iterator[AuditFinding]:
        """Yields the findings."""
        for code, counts in self._counts.items():
            if code in self._notes:
                named = [f"{name} ({count:,})" for name, count in ranked(counts)[:NAMED]]
                more = f" and {len(counts) - NAMED} more" if len(counts) > NAMED else ""
                message = f"{_MESSAGES[code]}: {', '.join(named)}{more}"
                yield self._notes.finding("unread", code, message)
