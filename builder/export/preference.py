"""Exports preference pairs from the `preferences` of meta/, each side proven like a sample."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.dataset.meta import Preference
from builder.dataset.rows import DatasetRow
from builder.sample import Sample
from builder.verify.verifier import Verdict, Verifier


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two answers to the same messages.

    chosen, rejected  samples that differ only in their last message
    texts             the proven renderings of the two
    tokens            of the longer one
    """

    reason: str
    chosen: Sample
    rejected: Sample
    texts: tuple[str, str]
    tokens: int


@dataclass(slots=True)
class PreferencePairs:
    """Proves the pairs of a dataset, each once; `left_out` counts the others by code."""

    verifier: Verifier
    left_out: Counter[str] = field(default_factory=Counter)
    _known: set[bytes] = field(default_factory=set)

    def proven(self, row: DatasetRow, sample: Sample) -> Iterator[PreferencePair]:
        """Yields the proven pairs of a row."""
        for item in row.meta.preferences:
            sides = _sides(item, sample)
            if sides is None:
                self.left_out["bad_preference"] += 1
                continue
            pair = self._prove(*sides, late_system=row.late_system)
            if isinstance(pair, str):
                self.left_out[pair] += 1
            else:
                yield pair

    def _prove(
        self, reason: str, chosen: Sample, rejected: Sample, *, late_system: bool
    ) -> PreferencePair | str:
        """Returns the pair, or the code of the reason to leave it out."""
        if chosen.messages == rejected.messages:
            return "same_answer"
        verdicts = [self._verdict(one, late_system=late_system) for one in (chosen, rejected)]
        for verdict in verdicts:
            if verdict.findings:
                return verdict.findings[0].code
        one, other = (verdict.text for verdict in verdicts)
        header = self.verifier.target.style.assistant
        if _prompt(one, header) != _prompt(other, header):
            return "prefix"
        digest = hashlib.sha256(f"{one}\0{other}".encode()).digest()
        if digest in self._known:
            return "duplicate"
        self._known.add(digest)
        tokens = max(verdict.tokens for verdict in verdicts)
        return PreferencePair(reason, chosen, rejected, (one, other), tokens)

    def _verdict(self, sample: Sample, *, late_system: bool) -> Verdict:
        answers = sum(role == "assistant" for role, _ in sample.messages)
        return self.verifier.check(sample, targets=(answers - 1,), late_system=late_system)


def _sides(item: Preference, sample: Sample) -> tuple[str, Sample, Sample] | None:
    """Returns the reason and both sides of a pair; None if it does not fit this sample."""
    answers = [answer for answer, (role, _) in enumerate(sample.messages) if role == "assistant"]
    if not item.reason or item.turn >= len(answers):
        return None
    answer = answers[item.turn]
    own = sample.messages[answer][1]
    thoughts = (*sample.thoughts[:answer], "") if any(sample.thoughts[:answer]) else ()
    chosen, rejected = (
        Sample(
            (*sample.messages[:answer], ("assistant", own if text is None else text)),
            sample.tools,
            thoughts=thoughts,
        )
        for text in (item.chosen, item.rejected)
    )
    return item.reason, chosen, rejected


def _prompt(text: str, header: str) -> str:
    return text[: text.rindex(header) + len(header)]
