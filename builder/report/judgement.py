"""Judges whether a dataset is ready for training; the verdict is that of the worst judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder.codes import is_on_request
from builder.ledger import Ledger, ranked
from builder.normalize.remedies import recovery
from builder.output.manifest import Manifest
from builder.report.html import shorten
from builder.report.survey import SUPPLIABLE, Survey
from builder.text import counted, number, percent
from builder.verify.options import mode_named

GRADES = {"poor": "not ready yet", "fair": "usable, with gaps", "good": "ready to train"}
"""{grade: the verdict on a dataset whose worst judgement has it}, the worst first."""

_MISSING = {
    "system": "system prompt",
    "tools": "tools",
    "reminders": "reminders of the agent program",
}
"""Words for codes of what a context lacks; the others are words themselves."""
_CHOSEN = {"near_duplicate": "near duplicates", "no_thought": "without a thought"}
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
    """Returns the verdict in words, and its reasons: the judgements of the worst grade, if any."""
    grade = worst(judgements)
    reasons = [item.text for item in judgements if item.grade == grade != "good"]
    return GRADES[grade], reasons


def judgements(surveyed: Survey, manifest: Manifest) -> Iterator[Judgement]:
    """Yields the judgements: bytes, match with inference, context, loss."""
    is_verified = bool(manifest.tokenizer.template_sha256)
    yield Judgement(
        "every sample is verified byte for byte" if is_verified else "not verified",
        1.0 if is_verified else 0.0,
    )
    mode = mode_named(manifest.mode)
    if surveyed.turns and mode in surveyed.parity:
        share = surveyed.parity[mode] / surveyed.turns
        yield Judgement(f"{percent(share)} of the trained turns match {mode} inference", share)
    levels = surveyed.context
    if levels.total():
        yield from _context(surveyed)
    if manifest.ledger is not None:
        yield from _lost(manifest.ledger)


def _context(surveyed: Survey) -> Iterator[Judgement]:
    """Judges the context of the trained turns: what the user can still supply, and the rest.

    What no option can supply is a limit of the logs, which is stated: it leaves a gap, no more.
    """
    levels = surveyed.context
    whole, partial = levels.total(), levels["partial"]
    lacking, supplied = min(surveyed.lacking, partial), min(surveyed.completed, partial)
    missing = surveyed.missing - surveyed.supplied
    if lacking:
        names = [missing_words(name) for name in SUPPLIABLE[::-1] if missing[name]]
        what = f"the {' or '.join(names)}" if names else "a part of what the model saw"
        text = f"{percent(lacking / whole)} of the trained turns lack {what}"
        judged = Judgement(text, 1 - lacking / whole)
        if judged.grade == "good":
            rest = percent(judged.share)
            what = " and ".join(names) or "context"
            text = f"{rest} of the trained turns have the {what} that the model saw"
            judged = replace(judged, text=text)
        yield judged
    added = f", {percent(supplied / whole)} with what you supplied" if supplied else ""
    never = [(code, count) for code, count in ranked(missing) if code not in SUPPLIABLE]
    shares = [f"{missing_words(code)} {percent(count / whole)}" for code, count in never[:4]]
    notes = [f"not logged: {', '.join(shares)} of the turns"] if shares else []
    if others := surveyed.changes["other_version"]:
        notes.append(f"{counted(others, 'sample')} with definitions of another version")
    share = 1 - (partial - supplied) / whole
    if partial == supplied:
        yield Judgement(f"all trained turns have a complete context{added}", share)
    elif notes and lacking:
        yield Judgement("; ".join(notes), share, fair=0.0)
    elif not lacking:
        text = f"context as complete as these logs allow{added}"
        yield Judgement(f"{text} ({'; '.join(notes)})" if notes else text, share, fair=0.0)


def missing_words(code: str) -> str:
    """Returns a code of what a context lacks in words."""
    return _MISSING.get(code) or shorten(code.replace("_", " "), 30)


def _lost(ledger: Ledger) -> Iterator[Judgement]:
    """Judges the conversations lost to faults; where no option would keep them, a gap, no more.

    What was left out on request is no loss, whether the rest is large or small: it is named.
    """
    lost, conversations = ledger.conversations_lost, ledger.conversations_rejected
    chosen = {
        code: count
        for code, count in ranked(conversations | ledger.samples_left_out)  # the larger of both
        if count and is_on_request(code)
    }
    left_out = sum(conversations[code] for code in chosen)
    wanted = ledger.built + ledger.duplicates + left_out + lost.total()
    if not wanted:
        return
    of_all = f"{counted(wanted, 'conversation')} with something to train"
    text = f"{number(lost.total()) if lost else 'none'} of {of_all} lost to faults"
    if chosen:
        named = ", ".join(
            f"{_CHOSEN.get(code, code.replace('_', ' '))} {n:,}" for code, n in chosen.items()
        )
        text += f"; left out on request: {named}"
    kept = sum(recovery(ledger, code)[0] for code in lost)
    fair = 0.75 if 1 - kept / wanted < 0.75 else 0.0
    yield Judgement(text, 1 - lost.total() / wanted, good=0.95, fair=fair)
