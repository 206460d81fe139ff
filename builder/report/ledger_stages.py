"""Arranges a ledger in stages, for the verdict and for drawings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from builder.ledger import Ledger, ranked
from builder.report.html import shorten

IGNORED = "ignored by design"
"""The loss that counts records without any part of a conversation."""
NOTHING = "nothing to train"
"""The loss that counts conversations without an answer to train, or left out on request."""


@dataclass(frozen=True, slots=True)
class Loss:
    """One kind of loss at a stage, such as "rejected", with counts by code, highest first.

    by_design  nothing that could have become a sample is lost
    """

    name: str
    count: int
    codes: tuple[tuple[str, int], ...] = ()
    by_design: bool = False

    @property
    def style(self) -> str:
        """Returns the CSS class of the loss in drawings."""
        return "by-design" if self.by_design else "lost"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the flow: how many units were found and kept, and how the others were lost.

    unit         "records"
    found_label  what the ledger calls the first count: "read"
    kept_label   what it calls the second: "used"
    """

    unit: str
    found_label: str
    found: int
    kept_label: str
    kept: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """The ledger of a build in stages; `cut`: conversations of which the end is left out."""

    records: Stage
    conversations: Stage
    calls: Stage
    samples: int
    cut: Loss


def ledger_counts(ledger: Ledger) -> LedgerCounts:
    """Returns a ledger in stages."""
    return LedgerCounts(
        Stage(
            "records", "read", ledger.read, "used", ledger.used,
            (
                _loss(IGNORED, ledger.ignored, by_design=True),
                _loss("rejected", ledger.rejected),
            ),
        ),
        Stage(
            "conversations", "found", ledger.found, "built", ledger.built,
            (
                Loss("duplicates", ledger.duplicates, by_design=True),
                _loss(NOTHING, ledger.conversations_ignored, by_design=True),
                _loss("rejected", ledger.conversations_lost),
            ),
        ),
        Stage(
            "calls", "logged", ledger.calls_logged, "kept", ledger.calls_kept,
            (_loss("dropped", ledger.calls_dropped),),
        ),
        ledger.samples,
        _loss("used in part, the end is left out", ledger.cut),
    )  # fmt: skip


def _loss(name: str, codes: Mapping[str, int], *, by_design: bool = False) -> Loss:
    counts = ranked({shorten(code, 60): count for code, count in codes.items()})
    return Loss(name, sum(count for _, count in counts), counts, by_design)
