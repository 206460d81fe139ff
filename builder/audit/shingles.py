"""Turns runs of words into numbers, for measuring near duplicates and contamination.

A word is a run of ASCII letters, digits and underscores in lower case, or one other letter (texts
without spaces have words too). Python's hash() is unsuitable, because it differs from run to run.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 1 << 15
"""Code points that are processed together. A longer word counts as several."""
_FACTOR = 0x9E3779B97F4A7C15
"""An odd 64-bit number without a pattern (2^64 divided by the golden ratio)."""
_IN_WORDS = bytes(chr(at).isascii() and (chr(at).isalnum() or chr(at) == "_") for at in range(256))
"""For each ASCII character whether it is part of a word; the last entry is for all others."""


def word_numbers(text: str) -> NDArray[np.uint64]:
    """Returns a 64-bit number for each word of the text, in order.

    A word's code points are the digits of its number in base `_FACTOR`, the least significant
    first.
    """
    import numpy as np  # noqa: PLC0415 - 0.1 s, only where texts are compared

    lower = text.lower()
    found = []
    start = 0
    while start < len(lower):
        points, inside, letters = _characters(lower[start : start + BLOCK])
        end = len(points)
        if start + end < len(lower):  # up to the last character that is not in a word
            after = int(inside[::-1].argmin())
            end -= after if not inside[end - 1 - after] else 0
        found.append(_numbers(points[:end], inside[:end], letters[letters < end]))
        start += end
    return np.concatenate(found) if found else np.zeros(0, dtype=np.uint64)


def _characters(
    lower: str,
) -> tuple[NDArray[np.uint8 | np.uint32], NDArray[np.bool_], NDArray[np.int64]]:
    """Returns the code points, which are in words of several, and where the other letters are."""
    import numpy as np  # noqa: PLC0415 - as above

    if lower.isascii():
        data = lower.encode("ascii")
        inside = np.frombuffer(data.translate(_IN_WORDS), dtype=np.bool_)
        return np.frombuffer(data, dtype=np.uint8), inside, np.zeros(0, dtype=np.int64)
    points = np.frombuffer(lower.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    inside = np.frombuffer(_IN_WORDS, dtype=np.bool_)[np.minimum(points, 128)]
    foreign = np.flatnonzero(points >= 128)
    return points, inside, foreign[_are_letters(points[foreign])]


def _numbers(
    points: NDArray[np.uint8 | np.uint32], inside: NDArray[np.bool_], letters: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Returns the words' numbers.

    `inside` marks code points in words of several characters, `letters` those that are words
    themselves.
    """
    import numpy as np  # noqa: PLC0415 - as above

    powers, inverses = _powers()
    around = np.zeros(len(inside) + 2, dtype=np.bool_)
    around[1:-1] = inside
    borders = np.flatnonzero(around[1:] != around[:-1])
    starts, ends = borders[::2], borders[1::2]
    if len(letters):
        starts = np.sort(np.concatenate((starts, letters)))
        ends = np.sort(np.concatenate((ends, letters + 1)))
    sums = np.zeros(len(points) + 1, dtype=np.uint64)
    np.cumsum(points * powers[: len(points)], out=sums[1:])
    # Sums and differences are modulo 2^64, where every odd number has an inverse.
    return (sums[ends] - sums[starts]) * inverses[starts]


def _are_letters(points: NDArray[np.uint8 | np.uint32]) -> NDArray[np.bool_]:
    import numpy as np  # noqa: PLC0415 - as above

    kinds, which = np.unique(points, return_inverse=True)
    known = np.array([chr(point).isalpha() for point in kinds.tolist()], dtype=bool)
    return known[which] if len(kinds) else np.zeros(0, dtype=bool)


@cache
def _powers() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns the powers of `_FACTOR` modulo 2^64, and their inverses."""
    import numpy as np  # noqa: PLC0415 - as above

    found = []
    for base in (_FACTOR, pow(_FACTOR, -1, 1 << 64)):
        powers = np.full(BLOCK, base, dtype=np.uint64)
        powers[0] = 1
        found.append(np.cumprod(powers))
    return found[0], found[1]


def shingles(numbers: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """Returns a 64-bit number for each run of `size` words, or one for a shorter text."""
    import numpy as np  # noqa: PLC0415 - as above

    size = min(size, len(numbers))
    runs = np.zeros(max(len(numbers) - size + 1, 0) if size else 0, dtype=np.uint64)
    for at in range(size):
        runs = (runs + numbers[at : at + len(runs)] + np.uint64(1)) * np.uint64(_FACTOR)
        runs ^= runs >> np.uint64(29)
    return runs
