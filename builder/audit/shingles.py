"""Hashes words and runs of words, to find near duplicates and contamination.

A word is a run of ASCII letters, digits and underscores in lower case, or a single other letter, so
that text without spaces has words too. Python's hash() is unsuitable: it differs between processes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 15
"""Code points processed at a time; a longer word counts as several."""
_FACTOR = 0x9E3779B97F4A7C15
"""The odd number nearest to 2^64 divided by the golden ratio: its bits have no pattern."""
_IN_WORDS = bytes(chr(at).isascii() and (chr(at).isalnum() or chr(at) == "_") for at in range(256))
"""Entry n tells whether character n is ASCII and part of a word."""


def _powers(base: int) -> NDArray[np.uint64]:
    """Returns the powers of an odd number modulo 2^64, one for each position in a block."""
    powers = np.full(BLOCK, base, dtype=np.uint64)
    powers[0] = 1
    return np.cumprod(powers)


_POWERS = _powers(_FACTOR)
_INVERSES = _powers(pow(_FACTOR, -1, 1 << 64))


def word_numbers(text: str) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each word of the text, in order.

    The code points are the digits of a number in base `_FACTOR`, the least significant first.
    """
    lower = text.lower()
    blocks = []
    start = 0
    while start < len(lower):
        points, inside, letters = _characters(lower[start : start + BLOCK])
        end = len(points)
        if start + end < len(lower):  # end the block at the last character outside words
            after = int(inside[::-1].argmin())
            end -= after if not inside[end - 1 - after] else 0
        blocks.append(_numbers(points[:end], inside[:end], letters[letters < end]))
        start += end
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.uint64)


def _characters(
    lower: str,
) -> tuple[NDArray[np.uint8 | np.uint32], NDArray[np.bool_], NDArray[np.int64]]:
    """Returns the code points, a mask of those in ASCII words, the positions of other letters."""
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
    """Returns the hashes of the words.

    `inside` marks the code points of ASCII words; `letters` are the positions of other letters.
    """
    around = np.zeros(len(inside) + 2, dtype=np.bool_)
    around[1:-1] = inside
    borders = np.flatnonzero(around[1:] != around[:-1])
    starts, ends = borders[::2], borders[1::2]
    if len(letters):
        starts = np.sort(np.concatenate((starts, letters)))
        ends = np.sort(np.concatenate((ends, letters + 1)))
    sums = np.zeros(len(points) + 1, dtype=np.uint64)
    np.cumsum(points * _POWERS[: len(points)], out=sums[1:])
    # Sums and differences are modulo 2^64, where every odd number has an inverse.
    return (sums[ends] - sums[starts]) * _INVERSES[starts]


def _are_letters(points: NDArray[np.uint8 | np.uint32]) -> NDArray[np.bool_]:
    kinds, which = np.unique(points, return_inverse=True)
    known = np.array([chr(point).isalpha() for point in kinds.tolist()], dtype=bool)
    return known[which] if len(kinds) else np.zeros(0, dtype=bool)


def shingles(numbers: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each run of `size` words; a shorter text is a single run."""
    size = min(size, len(numbers))
    runs = np.zeros(max(len(numbers) - size + 1, 0) if size else 0, dtype=np.uint64)
    for at in range(size):
        runs = (runs + numbers[at : at + len(runs)] + np.uint64(1)) * np.uint64(_FACTOR)
        runs ^= runs >> np.uint64(29)
    return runs
