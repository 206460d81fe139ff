"""Finds rows of datasets that `build` did not make and `builder verify` refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.audit.notes import AuditRow, FindingNotes
from builder.audit.result import AuditFinding
from builder.ledger import ranked
from builder.verify.verifier import Verdict

UNVERIFIED_ROW = "unverified"
"""The code of rows that have a sample, which the checks of `builder verify` refuse."""

BROKEN_CALL = "broken_call"
"""The code of text in the place of a tool call that is none."""

CALLS = "calls"
"""The code of the checks for calls that cannot be read (docs/output.md)."""


class UnverifiedAudit:
    """Counts the rows by what the checks found."""

    def __init__(self) -> None:
        self._notes = FindingNotes()
        self._codes: Counter[str] = Counter()

    def add(self, row: AuditRow, verdict: Verdict) -> None:
        """Counts a row, if it is refused."""
        findings = {finding.code: finding for finding in reversed(verdict.findings)}
        if findings:
            first = verdict.findings[0]
            part = "" if first.turn is None else f"messages[{first.turn}]"
            self._notes.add(UNVERIFIED_ROW, row, part, f"{first.code}: {first.message}")
            self._codes.update(findings.keys())
        if CALLS in findings:
            fault = findings[CALLS]
            part = "" if fault.turn is None else f"messages[{fault.turn}]"
            self._notes.add(BROKEN_CALL, row, part, fault.message)

    def merge(self, later: UnverifiedAudit) -> None:
        """Adds the counts of the rows that follow."""
        self._notes.merge(later._notes)
        self._codes.update(later._codes)

    def findings(self) -> Iterator[AuditFinding]:
        """Yields the findings."""
        if UNVERIFIED_ROW in self._notes:
            codes = ", ".join(f"{code} {count:,}" for code, count in ranked(self._codes))
            message = f"rows that `builder verify` refuses: {codes}"
            yield self._notes.finding("format", UNVERIFIED_ROW, message)
        if BROKEN_CALL in self._notes:
            message = "text in the place of a tool call that cannot be read as one"
            yield self._notes.finding("calls", BROKEN_CALL, message)
