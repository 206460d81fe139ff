"""Judges whether a dataset is ready for training; the verdict is that of the worst judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.ledger import Ledger
from builder.output.manifest import Manifest
from builder.qwen3.parity import MODES
from builder.report.survey import Survey
from builder.verify.options import mode_named

GRADES = {"poor": "not ready yet", "fair": "usable, with gaps", "good": "ready to train"}
"""{grade: the verdict on a dataset whose worst judgement has it}, the worst first."""

_SOME = 0.5
"""The share from which on a property is fair."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A property that decides whether a dataset is ready, as the share of it that is good."""

    text: str
    share: float
    good: float = 0.9
    fair: float = _SOME

    @property
    def grade(self) -> str:
        """Returns good, fair or poor."""
        return "good" if self.share >= self.good else "fair" if self.share >= self.fair else "poor"


def worst(judgements: Sequence[Judgement]) -> str:
    """Returns the worst grade; poor if there are no judgements."""
    grades = {item.grade for item in judgements}
    return next((grade for grade in GRADES if grade in grades), "poor")


def verdict_on(judgements: Sequence[Judgement]) -> tuple[str, list[str]]:
    """Returns the verdict in words, and its reasons: the judgements that are not good."""
    reasons = [item.text for item in judgements if item.grade != "good"]
    return GRADES[worst(judgements)], reasons


def judgements(surveyed: Survey, manifest: Manifest) -> Iterator[Judgement]:
    """Yields the judgements: bytes, match with inference, context, loss."""
    is_verified = bool(manifest.tokenizer.template_sha256)
    yield Judgement(
        "every sample is verified byte for byte" if is_verified else "not verified",
        1.0 if is_verified else 0.0,
    )
    mode = mode_named(manifest.mode)
    if surveyed.turns and mode in surveyed.parity:
        yield Judgement(_matching(surveyed, mode), surveyed.parity[mode] / surveyed.turns)
    levels = surveyed.context
    if levels.total():
        yield _context(surveyed)
    if manifest.ledger is not None:
        yield from _used(manifest.ledger)


def _matching(surveyed: Survey, mode: str) -> str:
    """States the share of `mode`, and that of the other mode if it differs."""
    text = f"{percent(surveyed.parity[mode] / surveyed.turns)} of the trained turns match {mode}"
    text += " inference"
    for other in MODES:
        if surveyed.parity[other] != surveyed.parity[mode]:
            text += f" ({other}: {percent(surveyed.parity[other] / surveyed.turns)})"
    return text


def _context(surveyed: Survey) -> Judgement:
    """Judges the context of the trained turns, with what the user supplied of it.

    Where all that can be supplied is, what else the log lacks leaves a gap, and no more.
    """
    levels = surveyed.context
    whole = levels.total()
    supplied = min(surveyed.completed, levels["partial"])
    share = 1 - (levels["partial"] - supplied) / whole
    text = f"{percent(share)} of the trained turns have a complete context"
    if supplied:
        text += f", {percent(supplied / whole)} with what you supplied"
    is_served = surveyed.served >= 0.9 * whole
    if is_served and share < _SOME:
        text += "; with what you supplied, as complete as these logs allow"
    return Judgement(text, share, fair=0.0 if is_served else _SOME)


def _used(ledger: Ledger) -> Iterator[Judgement]:
    lost = ledger.conversations_lost.total()
    there = ledger.built + ledger.duplicates + lost
    if there:
        share = 1 - lost / there
        text = f"{percent(share)} of the conversations with something to train are used"
        yield Judgement(text, share, good=0.95, fair=0.75)


def percent(share: float) -> str:
    """Formats a share so that 100 % and 0 % appear only if they are exact."""
    if 0 < share < 1:
        share = min(max(share, 0.001), 0.999)
    return f"{100 * share:.1f} %".replace(".0 %", " %")
