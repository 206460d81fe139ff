"""Defines findings: of a check in a sample, and of an audit in a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from builder.brief import brief
from builder.keys import TEXT, Kind, is_count, key

CONTEXT = 40
"""Code points of context on either side of a difference."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One fault: the code of the check, a message, and the location.

    `turn` is the index of a message, `offset` counts code points; `expected` and `found` are the
    texts around a difference.
    """

    code: str
    message: str
    turn: int | None = None
    offset: int | None = None
    expected: str | None = None
    found: str | None = None


def differ(code: str, message: str, expected: str, found: str) -> CheckFinding:
    """Returns the finding for two texts that differ, with the text around the first difference."""
    offset = next(
        (at for at, (one, two) in enumerate(zip(expected, found, strict=False)) if one != two),
        min(len(expected), len(found)),
    )
    return CheckFinding(
        code,
        message,
        offset=offset,
        expected=context(expected, offset),
        found=context(found, offset),
    )


def context(text: str, offset: int) -> str:
    """Returns the text around an offset."""
    return text[max(0, offset - CONTEXT) : offset + CONTEXT]


class GateAction(StrEnum):
    """What was done about a finding (config: `audit.*`)."""

    report = "report"
    change = "change"  # redacted or pseudonymised: the sample contains replacements
    reject = "reject"
    drop = "drop"


@dataclass(frozen=True, slots=True)
class FindingExample:
    """The location of a finding; its texts contain no secret.

    where   file and line of the dataset, `data/train-00000-of-00001.jsonl:12`
    source  and `record`: the origin of the sample in the logs, "" without meta/
    part    the part of the sample: `messages[3].content`, `tools[0].function.description`
    detail  a short text for people that masks what was found
    """

    where: str
    source: str = ""
    record: str = ""
    part: str = ""
    detail: str = ""


_AT_LEAST_ONE = Kind("number", lambda value: value if is_count(value) else 1)
_GATE = Kind(
    "text",
    lambda value: next((gate for gate in GateAction if gate == value), GateAction.report),
    lambda gate: gate.value,
)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The occurrences of one code in a dataset, a key of manifest.json but for the examples.

    `samples` is 0 if it concerns the dataset as a whole. A finding that cannot be read counts as
    one that was only reported.
    """

    audit: str = key(TEXT, "name of the audit")
    code: str = key(TEXT, "what was found")
    message: str = key(TEXT, "for people")
    count: int = key(_AT_LEAST_ONE, "places")
    samples: int = key(_AT_LEAST_ONE, "samples with such a place")
    gate: GateAction = key(_GATE, "what was done: report, change, reject or drop")
    examples: tuple[FindingExample, ...] = ()

    @property
    def is_left(self) -> bool:
        """Whether it is in text that is still in the dataset."""
        return self.count > 0 and self.gate is GateAction.report

    def __repr__(self) -> str:
        """Returns the code, its counts and its gate in one line."""
        gate = self.gate.value
        return brief(self, code=self.code, count=self.count, samples=self.samples, gate=gate)
