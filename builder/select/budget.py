"""Applies a budget of tokens to the whole dataset: selects conversations, drawn by a seed.

Conversations are kept or dropped as a whole, in the order of a digest of the seed and their
content. Each stratum gets a part of the budget in proportion to its tokens; a rest into which none
of its conversations fits goes to the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from builder.select.mix import draw


@dataclass(frozen=True, slots=True)
class BudgetItem:
    """A conversation: its stratum, the tokens of its samples, the digest of its content."""

    stratum: str
    tokens: int
    identity: bytes


def beyond_budget(items: Sequence[BudgetItem], total: int, seed: int) -> set[int]:
    """Returns the positions of the conversations to drop so that the rest fits into `total`."""
    needed = sum(item.tokens for item in items)
    if needed <= total:
        return set()
    strata: dict[str, list[int]] = defaultdict(list)
    order = sorted(range(len(items)), key=lambda at: draw(items[at].identity, seed))
    for at in order:
        strata[items[at].stratum].append(at)
    kept: set[int] = set()
    left = total
    for name in sorted(strata):
        quota = total * sum(items[at].tokens for at in strata[name]) // needed
        for at in strata[name]:
            if items[at].tokens <= quota:
                quota -= items[at].tokens
                left -= items[at].tokens
                kept.add(at)
    for at in order:
        if at not in kept and items[at].tokens <= left:
            left -= items[at].tokens
            kept.add(at)
    return set(range(len(items))) - kept
