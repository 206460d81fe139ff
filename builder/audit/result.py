"""Defines the result of an audit as plain values: findings with examples, tables, histograms.

The report draws them and `builder audit --json` prints them; neither depends on the audits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from builder.trainers.record import Facts


class GateAction(StrEnum):
    """The effect of a finding on its samples (config: `audit.*`)."""

    report = "report"
    change = "change"  # redacted or pseudonymised: the sample was written with replacements
    reject = "reject"
    drop = "drop"


@dataclass(frozen=True, slots=True)
class FindingExample:
    """The location of a finding; its texts contain no secret.

    where   file and line of the dataset, `data/train-00000-of-00001.jsonl:12`
    source  and `record`: the origin of the sample in the logs ("" if the dataset has no meta)
    part    of the sample: `messages[3].content`, `tools[0].function.description`
    detail  a short text for people, with the finding itself masked
    """

    where: str
    source: str = ""
    record: str = ""
    part: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One code of an audit.

    audit    the audit that it belongs to: secrets, personal_data, duplicates, …
    code     snake_case, stable: an argument of `--fail-on`
    message  one line for people
    count    number of occurrences
    samples  number of samples that have it
    """

    audit: str
    code: str
    message: str
    count: int
    samples: int
    gate: GateAction = GateAction.report
    examples: tuple[FindingExample, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditTable:
    """Numbers under headings. `bars` names the column that the report draws, None: none.

    target  of the drawn column, by the text of the first column (a requested mix)
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]
    note: str = ""
    bars: str | None = None
    target: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts between edges (`len(edges) == len(counts) + 1`; the last bin includes its upper edge).

    marks  named values, drawn as lines: the default length of a trainer
    """

    key: str
    title: str
    unit: str
    edges: tuple[int, ...]
    counts: tuple[int, ...]
    marks: tuple[tuple[str, int], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Pick:
    """A notable sample: its number in the dataset, from 0 in the order of the files."""

    reason: str
    row: int


@dataclass(frozen=True, slots=True)
class ParityCount:
    """Trained turns, and how many of them are in parity with inference in one mode."""

    in_parity: int
    trained: int


@dataclass(frozen=True, slots=True)
class AuditFacts:
    """Numbers that the card and the terminal show, as values; the tables are for display.

    training   the values that trainers' configurations depend on
    parity     by mode of inference; without modes if no sample has meta/
    languages  {language of the first query, or its script: samples}
    trained    share of the text, in code points, that is trained; None if no sample has meta/
    """

    training: Facts = field(default_factory=Facts)
    parity: Mapping[str, ParityCount] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    trained: float | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """All results of an audit, each list in a documented order.

    read_as     {form: rows that were converted from it}; none in the form that `build` writes
    conversion  {code: count} of changes made by the conversion
    """

    samples: int
    findings: tuple[AuditFinding, ...] = ()
    tables: tuple[AuditTable, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    picks: tuple[Pick, ...] = ()
    facts: AuditFacts = field(default_factory=AuditFacts)
    read_as: Mapping[str, int] = field(default_factory=dict)
    conversion: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Returns the audit as a JSON object."""
        return asdict(self)
