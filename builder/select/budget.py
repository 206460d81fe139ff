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
    order = sorted(range(len(items)), key=lambda position: draw(items[position].identity, seed))
    for position in order:
        strata[items[position].group].append(position)
    kept: set[int] = set()
    left = total
    for name in sorted(strata):
        quota = total * sum(items[position].size for position in strata[name]) // needed
        for position in strata[name]:
            if items[position].size <= quota:
                quota -= items[position].size
                left -= items[position].size
                kept.add(position)
    for position in order:
        if position not in kept and items[position].size <= left:
            left -= items[position].size
            kept.add(position)
    return frozenset(range(len(items))) - kept
