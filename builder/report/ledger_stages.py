"""Arranges a ledger in stages, for the verdict and for drawings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from builder.ledger import Account, Ledger, ranked
from builder.report.html import shorten

IGNORED = "ignored"
"""The loss that counts what has nothing to train, or was left out on request."""


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
    """A stage of the flow: how many of a unit ("records") were found and used, and the others."""

    unit: str
    found: int
    used: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """The ledger of a build in stages; `cut`: conversations of which the end is left out."""

    records: Stage
    conversations: Stage
    samples: Stage
    calls: Stage
    cut: Loss


def ledger_counts(ledger: Ledger) -> LedgerCounts:
    """Returns a ledger in stages."""
    records, conversations, samples, calls = map(_stage, ledger.accounts)
    cut = _loss("used in part, the end is left out", ledger.cut)
    return LedgerCounts(records, conversations, samples, calls, cut)


def _stage(account: Account) -> Stage:
    losses = (
        Loss("duplicate", account.duplicates, by_design=True),
        _loss(IGNORED, account.ignored, by_design=True),
        _loss("rejected", account.rejected),
    )
    return Stage(account.unit, account.found, account.used, losses)


def _loss(name: str, codes: Mapping[str, int], *, by_design: bool = False) -> Loss:
    counts = ranked({shorten(code, 60): count for code, count in codes.items()})
    return Loss(name, sum(count for _, count in counts), counts, by_design)
