"""Runs of words as numbers: what near duplicates and contamination are measured with.

A word is a run of ASCII letters, digits and underscores in lower case, or one other letter (texts
without spaces have words too). Never Python's hash(): it differs from run to run.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD = re.compile(r"[a-z0-9_]+|[^\W\d_]")
_FACTOR = 0x9E3779B97F4A7C15
"""Odd, of 64 bits without a pattern (2^64 by the golden ratio)."""


@lru_cache(maxsize=1 << 16)
def _number(word: str) -> int:
    return zlib.crc32(word.encode())


def word_numbers(text: str) -> NDArray[np.uint64]:
    """A number of 32 bits for each word of the text, in order."""
    import numpy as np  # noqa: PLC0415 - 0.1 s, only where texts are compared

    return np.array([_number(word) for word in _WORD.findall(text.lower())], dtype=np.uint64)


def shingles(numbers: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """A number of 64 bits for each run of `size` words; of a shorter text, one for all of it."""
    import numpy as np  # noqa: PLC0415 - as above

    size = min(size, len(numbers))
    runs = np.zeros(max(len(numbers) - size + 1, 0) if size else 0, dtype=np.uint64)
    for at in range(size):
        runs = (runs + numbers[at : at + len(runs)] + np.uint64(1)) * np.uint64(_FACTOR)
        runs ^= runs >> np.uint64(29)
    return runs
