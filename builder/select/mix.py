"""Down-samples to target shares: decides which conversations are kept.

Shares count samples, by behaviour (`mix`) or by the value of a field (`select.shares`). Groups
without a share of their own divide the rest in their natural proportions. The scarcest group limits
the size of the dataset; a group without samples is ignored. Conversations are kept or dropped as a
whole, in the order of a digest of the seed and their content, so neither the order of the inputs
nor the number of workers matters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REST = "\0rest"
"""The group of all values without a share of their own; no value equals this text."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A conversation: its group, its size (samples or tokens), the digest of its content."""

    group: str
    size: int
    identity: bytes


def left_out(
    candidates: Sequence[Candidate], shares: Mapping[str, float], seed: int
) -> frozenset[int]:
    """Returns the positions of the conversations to drop so that the rest has the shares."""
    groups: dict[str, list[int]] = {}
    for position, candidate in enumerate(candidates):
        name = candidate.group if candidate.group in shares else REST
        groups.setdefault(name, []).append(position)
    target = {**shares, REST: max(1 - sum(shares.values()), 0.0)}
    sizes = {
        name: sum(candidates[position].size for position in group) for name, group in groups.items()
    }
    met = sum(sorted(target[name] for name in groups))
    # Shares of missing groups cannot be met, so those of the present ones are scaled to one.
    total = min(
        (sizes[name] * met / target[name] for name in groups if target[name] > 1e-9), default=0
    )
    gone: set[int] = set()
    for name, group in groups.items():
        quota = int(total * target[name] / met + 1e-6) if met else 0
        for position in sorted(
            group, key=lambda position: draw(candidates[position].identity, seed)
        ):
            if candidates[position].size <= quota:
                quota -= candidates[position].size
            else:
                gone.add(position)
    return frozenset(gone)


def draw(identity: bytes, seed: int) -> bytes:
    """Returns the rank of a conversation in an order derived from the seed."""
    return hashlib.blake2b(b"%d " % seed + identity, digest_size=16).digest()
