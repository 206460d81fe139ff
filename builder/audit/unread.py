"""Finds samples whose logs had text under keys or columns that the reader does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.audit.notes import AuditRow, FindingNotes
from builder.audit.result import AuditFinding
from builder.ledger import ranked

UNREAD = "unread_text"
"""The code of samples whose log had text that no reader knows."""

_PREFIXES = ("unknown_key:", "unknown_column:")
MAX_NAMES = 1_000
NAMED = 5


class UnreadAudit:
    """Counts the unknown keys of messages and columns of rows."""

    def __init__(self) -> None:
        self._notes = FindingNotes()
        self._counts: Counter[str] = Counter()

    def add(self, row: AuditRow) -> None:
        """Counts a sample."""
        names = {
            code: count for code, count in row.meta.changes.items() if code.startswith(_PREFIXES)
        }
        if names:
            self._notes.add(UNREAD, row, "", ", ".join(names))
            self._count(names)

    def merge(self, later: UnreadAudit) -> None:
        """Adds the counts of the samples that follow."""
        self._notes.merge(later._notes)
        self._count(later._counts)

    def _count(self, names: dict[str, int]) -> None:
        for name, count in names.items():
            if name in self._counts or len(self._counts) < MAX_NAMES:
                self._counts[name] += count

    def findings(self) -> Iterator[AuditFinding]:
        """Yields the finding, if there is one."""
        if UNREAD in self._notes:
            named = [f"{name} ({count:,})" for name, count in ranked(self._counts)[:NAMED]]
            more = f" and {len(self._counts) - NAMED} more" if len(self._counts) > NAMED else ""
            message = f"text of the log that no reader knows: {', '.join(named)}{more}"
            yield self._notes.finding("unread", UNREAD, message)
