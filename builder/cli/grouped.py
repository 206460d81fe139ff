"""Groups faults by their code, so that many of a kind are a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from builder.codes import meaning
from builder.ledger import ranked
from builder.text import counted

EXAMPLES = 2
"""Examples of each code that are shown."""


class Grouped:
    """Counts faults by code and keeps the first examples of each; `meaning` explains a code."""

    def __init__(self, meaning: Callable[[str], str] = meaning) -> None:
        self.meaning = meaning
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def add(self, code: str, example: str) -> None:
        """Counts a fault; `example` shows it, in one or more lines."""
        self.counts[code] += 1
        examples = self._examples.setdefault(code, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    def lines(self, noun: str, more: str) -> Iterator[str]:
        """Yields the lines to print; `more` says how to see all that have a code."""
        for code, count in ranked(self.counts):
            yield counts_line(code, count, noun, self.meaning)
            for example in self._examples[code]:
                yield from (f"  {line}" for line in example.splitlines())
            if left := count - len(self._examples[code]):
                yield f"  … {left:,} more{f' ({more})' if more else ''}"


def counts_line(code: str, count: int, noun: str, meaning: Callable[[str], str] = meaning) -> str:
    """Returns a code with its number and its meaning in words."""
    words = meaning(code).replace("`", "")
    return f"{code}: {counted(count, noun)}{f' ({words})' if words else ''}"
