"""Defines hits: the places in a text where a rule matched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Hit:
    """[start, end) in code points, and the kind of the match (`kind`, snake_case).

    certain  the text itself shows what it is (a prefix, check digits), not its surroundings
    """

    start: int
    end: int
    kind: str
    certain: bool = True


def apart(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Returns the hits in order; overlapping ones are merged, with the kind of the certain one."""
    chosen: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, not hit.certain, -hit.end)):
        if not chosen or hit.start >= chosen[-1].end:
            chosen.append(hit)
            continue
        last = chosen[-1]
        better = hit if hit.certain and not last.certain else last
        chosen[-1] = Hit(last.start, max(last.end, hit.end), better.kind, better.certain)
    return tuple(chosen)


Find = Callable[[str], tuple[Hit, ...]]
REMEMBERED = 1 << 15
"""Maximum number of texts whose results are cached."""


def remembering(find: Find) -> Find:
    """Returns the function with a cache of its results, by the texts' digests.

    Prompts and definitions repeat, and the audits of a build examine what was searched before it
    was written.
    """
    remembered: dict[bytes, tuple[Hit, ...]] = {}

    @wraps(find)
    def found(text: str) -> tuple[Hit, ...]:
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        hits = remembered.get(key)
        if hits is None:
            if len(remembered) == REMEMBERED:
                remembered.clear()
            hits = remembered[key] = find(text)
        return hits

    return found


SHORT = 256
"""Shorter texts are first searched together with others."""


def found_in(
    texts: Sequence[str], find: Find, may_hit: Callable[[str], object]
) -> list[tuple[Hit, ...]]:
    """Returns the hits of each text.

    `may_hit` is called once with all texts shorter than SHORT, joined by lines. It finds in the
    joined text whatever it finds in a single one, so if it finds nothing, none of them has a hit.
    """
    is_quiet = not may_hit("\n".join(text for text in texts if len(text) < SHORT))
    return [() if is_quiet and len(text) < SHORT else find(text) for text in texts]
