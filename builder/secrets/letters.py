"""Measures how well the characters of a value follow each other as in words and names.

The table `letter_pairs.txt` has a row for each first character and a column for each second one
(`A-Z`, `a-z`, a digit). A cell is the binary logarithm of how much more often the pair occurs in
the names of CPython's standard library than by chance, from -12 (`A`) to 8 (`U`). It is written by
scripts/letter_pairs.py.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from itertools import accumulate, pairwise
from string import ascii_lowercase, ascii_uppercase

WINDOW = 6
"""Adjacent pairs that are weighed together: drawn letters may follow a word (`quartzKfWpXbTz`)."""
DRAWN = -9
"""Sum of the logarithms of `WINDOW` pairs from which on they were drawn at random.

Of 52,000 names of letters in both cases in installed packages 2.1 % have such a window, among them
many strings in base64. So do 90 % of words with eight random letters after them, 94 % of ten random
letters, and 99 % of fourteen.
"""
_DIGIT = re.compile("[0-9]")


@cache
def _odds() -> dict[str, int]:
    """Returns the logarithms by pair; a digit is `0`."""
    rows = (files("builder.secrets") / "letter_pairs.txt").read_text(encoding="ascii").split()
    alphabet = f"{ascii_uppercase}{ascii_lowercase}0"
    return {
        first + second: ord(cell) - ord("M")
        for first, row in zip(alphabet, rows, strict=True)
        for second, cell in zip(alphabet, row, strict=True)
    }


def has_drawn_letters(text: str) -> bool:
    """Returns whether a part of the text follows no word and no name, in letters of both cases.

    Pairs with other characters than ASCII letters and digits count as neutral.
    """
    if text == text.lower() or text == text.upper():
        return False
    odds = _odds()
    pairs = [odds.get(a + b, 0) for a, b in pairwise(_DIGIT.sub("0", text))]
    sums = [0, *accumulate(pairs)]
    last = max(1, len(sums) - WINDOW)
    return min(sums[min(at + WINDOW, len(pairs))] - sums[at] for at in range(last)) <= DRAWN
