"""Writes builder/secrets/letter_pairs.txt: how often one character follows another in names.

The names and words are those of CPython's standard library, read from its source code, without
hexadecimal numbers. Run with CPython 3.11, as the file was.
"""

import math
import re
import string
import sysconfig
from collections import Counter
from itertools import pairwise
from pathlib import Path

TARGET = Path(__file__).parent.parent / "builder" / "secrets" / "letter_pairs.txt"
ALPHABET = f"{string.ascii_uppercase}{string.ascii_lowercase}0"
LEAST, MOST = -12, 8
WORD = re.compile("[A-Za-z0-9]{3,40}")
HEX = re.compile("0x.*|[0-9a-f]+|[0-9A-F]+")


def words(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        if "site-packages" not in path.parts:
            found.update(WORD.findall(path.read_text(encoding="utf-8", errors="replace")))
    return {word for word in found if not HEX.fullmatch(word) and not word.isdigit()}


def main() -> None:
    counts: Counter[str] = Counter()
    for word in words(Path(sysconfig.get_path("stdlib"))):
        counts.update(a + b for a, b in pairwise(re.sub("[0-9]", "0", word)))
    pairs = len(ALPHABET) ** 2
    total = counts.total() + pairs  # each pair counts once more, so that none is impossible

    def cell(first: str, second: str) -> str:
        odds = math.log2((counts[first + second] + 1) / total * pairs)
        return chr(ord("A") - LEAST + min(MOST, max(LEAST, round(odds))))

    rows = ("".join(cell(first, second) for second in ALPHABET) for first in ALPHABET)
    TARGET.write_text("".join(f"{row}\n" for row in rows), encoding="ascii")


if __name__ == "__main__":
    main()
