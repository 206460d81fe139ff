"""Reads and writes reviews: people's decisions on the samples of a dataset, by sample id.

A review is a JSONL file of `{"id", "decision", "note"}`, sorted by id. The id is the digest of a
sample's line, so a decision applies to the same sample in every later build, and to no other text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import UsageError

ACCEPT, REJECT = "accept", "reject"
DECISIONS = (ACCEPT, REJECT)

_REVIEW = "review"
"""The code of samples that a review rejects."""
_UNREVIEWED = "unreviewed"
"""The code of samples that no review accepts, if only accepted ones are written."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision on a sample: "accept", "reject" or "" (only a note), and the note."""

    decision: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """Decisions by sample id, and the sha256 of the file that they were read from."""

    decisions: Mapping[str, Decision] = field(default_factory=dict)
    sha256: str = ""

    def refusal(self, sample: str, *, unreviewed: bool) -> str | None:
        """Returns the code that leaves a sample out, or None.

        `unreviewed` says whether samples without a decision are written.
        """
        decided = self.decisions.get(sample, Decision()).decision
        if decided == REJECT:
            return _REVIEW
        return None if unreviewed or decided == ACCEPT else _UNREVIEWED

    def decided(self, samples: Iterable[Mapping[str, Json]]) -> set[str]:
        """Returns the ids of the samples, given by their meta/, on which there is a decision."""
        ids = {str(sample.get("id")) for sample in samples}
        return {name for name in ids if self.decisions.get(name, Decision()).decision}

    @property
    def total(self) -> int:
        """The number of decisions; a note alone is none."""
        return sum(bool(item.decision) for item in self.decisions.values())

    def counts(self, applied: int) -> dict[str, Json]:
        """Returns the manifest's entry about the review, of which `applied` decisions applied."""
        counts = Counter(item.decision for item in self.decisions.values())
        return {
            "sha256": self.sha256,
            "accepted": counts[ACCEPT],
            "rejected": counts[REJECT],
            "applied": applied,
        }


def read_review(path: Path) -> Review:
    """Reads a review. Raises UsageError if there is no such file, or a line is not a decision."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"review {str(path)!r}: {error.strerror or error}") from None
    decisions: dict[str, Decision] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        read = _decision(line)
        if isinstance(read, str):
            raise UsageError(f"review {str(path)!r}: line {number}: {read}")
        sample, decision = read
        if sample in decisions:
            raise UsageError(f"review {str(path)!r}: line {number}: decides on {sample!r} twice")
        decisions[sample] = decision
    return Review(decisions, hashlib.sha256(data).hexdigest())


def review_lines(decisions: Mapping[str, Decision]) -> bytes:
    """Returns the content of a review: a line per sample with a decision or note, sorted by id."""
    lines = [
        dumps({"id": sample, "decision": item.decision or None, "note": item.note}) + "\n"
        for sample, item in sorted(decisions.items())
        if item.decision or item.note
    ]
    return "".join(lines).encode("utf-8", "replace")


def _decision(line: bytes) -> tuple[str, Decision] | str:
    try:
        value = loads(line)
    except JsonFault as fault:
        return f"is not JSON: {fault}"
    if not isinstance(value, dict):
        return "is not a JSON object"
    sample, decision, note = value.get("id"), value.get("decision"), value.get("note")
    if not isinstance(sample, str) or not sample:
        return "has no id"
    if decision is not None and decision not in DECISIONS:
        return f"decision: must be one of {', '.join(DECISIONS)} or null"
    if note is not None and not isinstance(note, str):
        return "note: must be text"
    return sample, Decision(str(decision or ""), note or "")
