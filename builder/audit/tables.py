"""Makes the tables and histograms of the counts over a dataset."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from builder.audit.counts import FIELDS, Counts
from builder.audit.failures import PATTERNS
from builder.audit.result import AuditTable, Histogram, Pick
from builder.codes import meaning_of_change
from builder.ledger import ranked
from builder.qwen3.render import MODES
from builder.trainers.table import DEFAULT_LENGTHS, TRAINERS

Row = tuple[str | int | float | None, ...]

_PERCENTILES = (50, 90, 95, 99)
SHOWN = 50
_TITLES = {
    "format": "Samples by format",
    "model": "Samples by model",
    "tools_source": "Sources of tool definitions",
    "reasoning": "Samples by reasoning",
    "unit": "Samples by unit",
    "license": "Samples by licence",
    "split": "Samples by split",
}
_KEYS = {"tools_source": "tools_source", "reasoning": "reasoning"}
_COUNTERS = (
    ("context", "Trained turns by level of context", "level", "turns", "docs/context.md"),
    ("missing", "Trained turns by what their context lacks", "missing", "turns", "docs/context.md"),
    ("recorded", "Samples compared with the tokens in the log", "tokens", "samples",
     "docs/parity.md"),
    ("edges", "Edge cases of the template", "case", "samples", ""),
    ("languages", "Languages of user turns", "language", "samples", ""),
)  # fmt: skip
"""(field of Counts, title, head of its names, what is counted, page that explains the names)."""


def histograms(counts: Counts) -> tuple[Histogram, ...]:
    """Returns the histograms of tokens (or characters), trained turns and calls per sample."""
    if not counts.samples:
        return ()
    unit = "tokens" if counts.has_tokens else "characters"
    facts = counts.training
    beyond = {DEFAULT_LENGTHS[name]: count for name, count in facts.beyond.items() if count}
    longer = [f"{count:,} over {length:,}" for length, count in sorted(beyond.items())]
    note = f"Trainers' defaults: {', '.join(longer)}" if longer else ""
    return (
        doubling(unit, f"{unit.title()} of a sample", unit, counts.lengths, note),
        doubling("turns", "Trained turns of a sample", "turns", counts.turn_counts),
        doubling("calls", "Calls of a sample", "calls", counts.call_counts),
    )


def tables(counts: Counts, mix: Mapping[str, float] | None = None) -> Iterator[AuditTable]:
    """Yields the tables of the counts that there are; `mix` are wanted shares by pattern."""
    if counts.has_tokens:
        yield _lengths(counts)
        yield _trainers(counts)
    if patterns := counts.by_field.get("pattern"):
        names = [*PATTERNS, *(name for name in sorted(patterns) if name not in PATTERNS)]
        behaviour: tuple[Row, ...] = tuple(
            (name, patterns[name], _share(patterns[name], counts)) for name in names
        )
        shares = ("pattern", "samples", "share")
        target = tuple((mix or {}).items())
        yield AuditTable("patterns", "Behaviour", shares, behaviour, bars="share", target=target)
    if counts.turns and counts.parity:
        modes = tuple(
            (mode, counts.parity[mode], counts.turns, round(counts.parity[mode] / counts.turns, 4))
            for mode in MODES
        )
        heads = ("mode", "turns", "trained", "share")
        title = "Trained turns that match inference"
        yield AuditTable("parity", title, heads, modes, bars="share")
    for name, title, head, unit, page in _COUNTERS:
        if counter := getattr(counts, name):
            note = f"{page} explains them." if page else ""
            shown = ranked(counter)[:SHOWN]
            yield AuditTable(name, title, (head, unit), shown, note, unit)
    for name in FIELDS:
        known = counts.by_field.get(name, Counter())
        if name in _TITLES and len(known) > (name in ("split", "unit", "reasoning")):
            yield _field(name, known, counts)
    if counts.changes:
        rows = tuple((code, n, meaning_of_change(code)) for code, n in ranked(counts.changes))
        columns = ("code", "places", "meaning")
        yield AuditTable("changes", "Changes to logged text", columns, rows, bars="places")


def _field(name: str, known: Counter[str], counts: Counts) -> AuditTable:
    head = name.replace("_", " ")
    columns = (head, "samples", "tokens") if counts.has_tokens else (head, "samples")
    tokens = counts.tokens_of[name]
    rows = tuple((value, n, tokens[value])[: len(columns)] for value, n in ranked(known)[:SHOWN])
    notes = [f"{len(known)} in all, the {SHOWN} with most samples"] if len(known) > SHOWN else []
    if known.total() > counts.samples:
        notes.append("a sample of several models counts for each of them")
    title, key = _TITLES[name], _KEYS.get(name, f"{name}s")
    return AuditTable(key, title, columns, rows, "; ".join(notes), "samples")


def _share(samples: int, counts: Counts) -> float:
    return round(samples / max(counts.samples, 1), 4)


def _lengths(counts: Counts) -> AuditTable:
    """Returns percentiles of the tokens by part."""
    rows: list[Row] = []
    for name, values in {"sample": counts.lengths, **counts.parts}.items():
        spread = _percentiles(values, (*_PERCENTILES, 100))
        rows.append((name, sum(values), round(sum(values) / max(counts.tokens, 1), 4), *spread))
    heads = ("part", "tokens", "share", *(f"p{n}" for n in _PERCENTILES), "max")
    note = "The parts add up to the sample; the template's are markers of turns and empty blocks."
    return AuditTable("lengths", "Tokens by part", heads, tuple(rows), note, "share")


def _trainers(counts: Counts) -> AuditTable:
    """Returns each trainer's default length, and the setting that cuts no sample."""
    facts = counts.training
    rows = tuple(
        (name, most, facts.beyond[name], _share(facts.beyond[name], counts),
         TRAINERS[name].length(facts))
        for name, most in sorted(DEFAULT_LENGTHS.items())
    )  # fmt: skip
    columns = ("trainer", "default", "longer", "share", "setting to use")
    title = "Samples beyond a trainer's default length"
    return AuditTable("trainers", title, columns, rows, bars="share")


def picks(counts: Counts) -> Iterator[Pick]:
    """Yields notable samples: of median length, the longest, the first of each kind."""
    if not counts.samples:
        return
    (median,) = _percentiles(counts.lengths, (50,))
    yield Pick("typical", counts.lengths.index(median))
    most = {"longest": counts.lengths, "most calls": counts.call_counts}
    for reason, numbers in {**most, "most turns": counts.turn_counts}.items():
        if highest := max(numbers):
            yield Pick(reason, numbers.index(highest))
    for reason, (_, row) in sorted(counts.most.items()):
        yield Pick(f"most {reason}", row)
    for reason in sorted(counts.first, key=lambda kind: (kind not in PATTERNS, kind)):
        yield Pick(reason, counts.first[reason])
    yield from (Pick("every doubling", (1 << at) >> 1) for at in range(counts.samples.bit_length()))
    yield Pick("every doubling", counts.samples - 1)


def _percentiles(values: array[int], shares: Sequence[int]) -> list[int]:
    """Returns the percentiles by the nearest-rank method; 0 if there are no values."""
    ordered = np.sort(np.frombuffer(values, dtype=np.uint32)) if values else np.zeros(1, np.uint32)
    return [int(ordered[max(-(-len(ordered) * share // 100) - 1, 0)]) for share in shares]


def doubling(key: str, title: str, unit: str, values: Iterable[int], note: str = "") -> Histogram:
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
    return Histogram(key, title, unit, edges[first:], tuple(counts[first:]), note, extent)
