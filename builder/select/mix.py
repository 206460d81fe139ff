"""Down-sampling to target shares by behaviour: which conversations stay.

Shares are of the samples. Patterns without a share of their own have what is left together, as they
come. The dataset becomes as large as the scarcest pattern allows; a pattern of which there is no
sample cannot be met and is passed over. Conversations stay or go whole, in the order of a digest of
the seed and of what they say, so that neither order nor workers matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REST = "(other patterns)"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A conversation: the pattern of its longest sample, how many samples, what tells it apart."""

    pattern: str
    samples: int
    identity: bytes


def left_out(
    candidates: Sequence[Candidate], shares: Mapping[str, float], seed: int
) -> frozenset[int]:
    """Positions of the conversations that go, so that the rest has the shares."""
    groups: dict[str, list[int]] = {}
    for at, candidate in enumerate(candidates):
        name = candidate.pattern if candidate.pattern in shares else REST
        groups.setdefault(name, []).append(at)
    target = {**shares, REST: max(1 - sum(shares.values()), 0.0)}
    sizes = {name: sum(candidates[at].samples for at in group) for name, group in groups.items()}
    met = sum(sorted(target[name] for name in groups))
    # Of what is there the shares are scaled to one: what is not there cannot be met.
    total = min(
        (sizes[name] * met / target[name] for name in groups if target[name] > 1e-9), default=0
    )
    gone: set[int] = set()
    for name, group in groups.items():
        quota = int(total * target[name] / met + 1e-6) if met else 0
        for at in sorted(group, key=lambda at: _draw(candidates[at], seed)):
            if candidates[at].samples <= quota:
                quota -= candidates[at].samples
            else:
                gone.add(at)
    return frozenset(gone)


def _draw(candidate: Candidate, seed: int) -> bytes:
    return hashlib.blake2b(b"%d " % seed + candidate.identity, digest_size=16).digest()
