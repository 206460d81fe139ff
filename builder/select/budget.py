"""Applies a budget of tokens to the whole dataset: selects conversations, drawn by a seed.

Conversations are kept or dropped as a whole, in the order of a digest of the seed and their
content. Each stratum gets a part of the budget in proportion to its tokens; what remains because
none of its conversations fits goes to the other strata.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from builder.select.mix import Candidate, draw


def beyond_budget(items: Sequence[Candidate], total: int, seed: int) -> frozenset[int]:
    """Returns the positions of the conversations to drop so that the rest fits into `total`.

    The groups of the candidates are strata, their sizes tokens.
    """
    needed = sum(item.size for item in items)
    if needed <= total:
        return frozenset()
    strata: dict[str, list[int]] = defaultdict(list)
    order = sorted(range(len(items)), key=lambda at: draw(items[at].identity, seed))
    for at in order:
        strata[items[at].group].append(at)
    kept: set[int] = set()
    left = total
    for name in sorted(strata):
        quota = total * sum(items[at].size for at in strata[name]) // needed
        for at in strata[name]:
            if items[at].size <= quota:
                quota -= items[at].size
                left -= items[at].size
                kept.add(at)
    for at in order:
        if at not in kept and items[at].size <= left:
            left -= items[at].size
            kept.add(at)
    return frozenset(range(len(items))) - kept
