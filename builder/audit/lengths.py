"""Measures the lengths of samples and their parts, and how many exceed trainers' defaults."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from builder.audit.notes import AuditRow
from builder.audit.result import AuditTable, Histogram, Pick
from builder.qwen3.parts import PARTS
from builder.trainers import COMMON_LENGTHS, DEFAULT_LENGTHS, TRAINERS
from builder.trainers.record import Facts, over_limits, training_split, wider

PERCENTILES = (50, 90, 95, 99)
PARTS_NOTE = "The parts add up to the sample; the template's are markers of turns and empty blocks."


class LengthAudit:
    """Collects lengths; takes four bytes for each sample and part."""

    def __init__(self) -> None:
        self.tokens = array("I")
        self._widest = 0
        self._splits: Counter[str] = Counter()
        self._parts = {part: array("I") for part in PARTS}

    def add(self, row: AuditRow) -> None:
        """Counts a sample."""
        self.tokens.append(row.meta.tokens)
        self._splits[row.split] += 1
        turns = sum(role == "assistant" for role, _ in row.sample.messages)
        self._widest = max(self._widest, wider(row.meta.tokens, turns))
        for part in PARTS:
            self._parts[part].append(row.meta.tokens_by_part.get(part, 0))

    def merge(self, later: LengthAudit) -> None:
        """Adds the counts of the samples that follow."""
        self.tokens += later.tokens
        self._splits += later._splits
        self._widest = max(self._widest, later._widest)
        for part in PARTS:
            self._parts[part] += later._parts[part]

    def tables(self) -> list[AuditTable]:
        """Returns percentiles by part, and each trainer's default."""
        total = sum(self.tokens)
        rows = [_line("sample", self.tokens, total)]
        rows += [_line(part, self._parts[part], total) for part in PARTS]
        heads = ("part", "tokens", "share", *(f"p{n}" for n in PERCENTILES), "max")
        lengths = self.lengths()
        samples = max(lengths.samples, 1)
        cut = tuple(
            (
                name,
                default,
                lengths.beyond[name],
                round(lengths.beyond[name] / samples, 4),
                TRAINERS[name].length(lengths),
            )
            for name, default in sorted(DEFAULT_LENGTHS.items())
        )
        columns = ("trainer", "default", "longer", "share", "setting to use")
        return [
            AuditTable("lengths", "Tokens by part", heads, tuple(rows), PARTS_NOTE, "share"),
            AuditTable(
                "trainers", "Samples beyond a trainer's default length", columns, cut, bars="share"
            ),
        ]

    def lengths(self) -> Facts:
        """Returns the values that configurations of trainers depend on."""
        beyond = {
            name: sum(tokens > default for tokens in self.tokens)
            for name, default in DEFAULT_LENGTHS.items()
        }
        longest = max(self.tokens, default=0)
        train = self._splits[training_split(sorted(self._splits))]
        over = over_limits(self.tokens)
        return Facts(len(self.tokens), longest, self._widest, beyond, train=train, over=over)

    def histogram(self) -> Histogram:
        """Returns a histogram of samples by tokens, in doubling bins."""
        return token_histogram(self.tokens)

    def picks(self) -> list[Pick]:
        """Returns the longest sample, and the first of median length."""
        if not self.tokens:
            return []
        (median,) = percentiles(self.tokens, (50,))
        longest = max(self.tokens)
        return [
            Pick("typical", self.tokens.index(median)),
            Pick("longest", self.tokens.index(longest)),
        ]


def token_histogram(tokens: Iterable[int]) -> Histogram:
    """Returns a histogram of the tokens of samples, with the lengths that trainers cut at."""
    marks = (*COMMON_LENGTHS, *sorted(DEFAULT_LENGTHS.items()))
    return doubling("tokens", "Tokens of a sample", "tokens", tokens, marks)


def turn_histograms(turns: Sequence[int], calls: Sequence[int]) -> list[Histogram]:
    """Returns the histograms of assistant turns and of calls per sample."""
    return [
        doubling("turns", "Assistant turns of a sample", "turns", turns),
        doubling("calls", "Calls of a sample", "calls", calls),
    ]


def _line(name: str, values: array[int], total: int) -> tuple[str | int | float, ...]:
    spread = percentiles(values, (*PERCENTILES, 100))
    return (name, sum(values), round(sum(values) / max(total, 1), 4), *spread)


def percentiles(values: array[int], shares: Sequence[int]) -> list[int]:
    """Returns the percentiles by the nearest-rank method; 0 if there are no values."""
    ordered = np.sort(np.frombuffer(values, dtype=np.uint32)) if values else np.zeros(1, np.uint32)
    return [int(ordered[max(-(-len(ordered) * share // 100) - 1, 0)]) for share in shares]


def doubling(
    key: str, title: str, unit: str, values: Iterable[int], marks: tuple[tuple[str, int], ...] = ()
) -> Histogram:
    """Returns a histogram with the edges 0, 1, 2, 4, 8 and so on."""
    counts: list[int] = [0]
    lowest = highest = None
    for value in values:
        lowest = value if lowest is None else min(lowest, value)
        highest = value if highest is None else max(highest, value)
        bits = value.bit_length()
        counts += [0] * (bits + 1 - len(counts))
        counts[bits] += 1
    edges = (0, *(1 << at for at in range(len(counts))))
    first = next((at for at, count in enumerate(counts) if count), 0)
    extent = None if lowest is None or highest is None else (lowest, highest)
    return Histogram(key, title, unit, edges[first:], tuple(counts[first:]), marks, extent=extent)
