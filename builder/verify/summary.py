"""Defines the result of verification: for each row, and for a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from builder.finding import CheckFinding


@dataclass(frozen=True, slots=True)
class LineReport:
    """The result for one row of a file, or for the file itself if `line` is 0.

    `parity` lists for each target turn the modes in which it is in parity. `form` is the form from
    which the row was converted ("" if it was not), `changes` those of the conversion. `masks` are
    the results of an `Examine` for a proven row.
    """

    file: str
    line: int
    findings: tuple[CheckFinding, ...]
    warnings: tuple[CheckFinding, ...] = ()
    tokens: int = 0
    parity: tuple[frozenset[str], ...] = ()
    form: str = ""
    changes: Mapping[str, int] = field(default_factory=dict)
    masks: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Summary:
    """Counts over all rows. `samples` are the rows read, `proven` those without a finding.

    `turns` counts the target turns, `parity` those in parity, by mode; `forms` counts the converted
    rows, by their form, `changes` the changes of the conversion. `masks` are the sums of what an
    `Examine` returned. `tokenizer_missing` is why only texts were verified, or "".
    """

    samples: int = 0
    proven: int = 0
    tokens: int = 0
    turns: int = 0
    parity: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    masks: dict[str, Any] = field(default_factory=dict)
    tokenizer_missing: str = ""

    @property
    def ok(self) -> bool:
        """Returns whether every row is verified; an empty dataset is not."""
        return 0 < self.samples == self.proven and not self.codes

    def add(self, report: LineReport, *, again: bool = False) -> None:
        """Counts a report, each code once per row. `again`: its row was counted before."""
        if report.line and not again:
            self.samples += 1
            self.proven += not report.findings
            self.tokens += report.tokens
            self.turns += len(report.parity)
            for modes in report.parity:
                self.parity.update(modes)
            self.changes.update(report.changes)
            if report.form:
                self.forms[report.form] += 1
            for name, comparison in report.masks.items():
                known = self.masks.setdefault(name, comparison)
                if known is not comparison:
                    known.merge(comparison)
        self.codes.update({finding.code for finding in report.findings})
        self.warnings.update({finding.code for finding in report.warnings})
