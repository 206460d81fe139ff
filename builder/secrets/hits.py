"""Defines hits, the places in a text where a rule matched, and searches texts together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from hashlib import blake2b
from itertools import accumulate, chain, islice
from typing import TypeVar


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


Found = TypeVar("Found")
Search = Callable[[Sequence[str]], list[Found]]
"""One or more texts → what was found in each of them, usually hits."""
REMEMBERED = 1 << 15
"""Maximum number of texts whose results are cached."""
SHORT = 256
"""Shorter texts are their own keys in the cache; of longer ones it has a digest."""
BATCH = 1 << 16
"""Code points of texts that are searched together, at least."""


def remembering(search: Search[Found]) -> Search[Found]:
    """Returns the function for any number of texts, with a cache of its results.

    Prompts, definitions and names repeat, and the audits of a build search conversations with
    secrets again.
    """
    remembered: dict[str | bytes, Found] = {}

    @wraps(search)
    def found(texts: Sequence[str]) -> list[Found]:
        keys = [_key(text) for text in texts]
        known = {key: remembered[key] for key in keys if key in remembered}
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        searched = chain.from_iterable(map(search, _batches(unknown.values())))
        new = dict(zip(unknown, searched, strict=True))
        if len(remembered) + len(new) > REMEMBERED:
            remembered.clear()
        remembered.update(islice(new.items(), REMEMBERED))
        known.update(new)
        return [known[key] for key in keys]

    return found


def _key(text: str) -> str | bytes:
    if len(text) < SHORT:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yields lists of the texts, each of at least BATCH code points but for the last."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Joined:
    """One or more texts joined by lines, so that a prefilter has to be run only once.

    What it finds in one of them it also finds in the joined text.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.text = "\n".join(texts)
        self.starts = [0, *accumulate(len(text) + 1 for text in texts)]
        """Where each text starts, and where another one would."""

    def place(self, at: int) -> tuple[int, int]:
        """Returns the number of the text that a position is in, and the position in it."""
        number = bisect_right(self.starts, at) - 1
        return number, at - self.starts[number]

    def ranges(self, found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
        """Yields (number of the text, start, end) for ranges, split where they include several."""
        for start, end in found:
            number, first = self.place(start)
            while (following := self.starts[number + 1]) <= end:
                yield number, first, following - 1 - self.starts[number]
                number, first = number + 1, 0
            yield number, first, end - self.starts[number]
