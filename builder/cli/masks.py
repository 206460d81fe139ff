"""Implements `builder verify --masks`: compares the tokens that trainers train with our spans."""

from __future__ import annotations

from collections.abc import Sequence

from builder.cli.terminal import counted
from builder.conversation import Json
from builder.problem import UsageError, nearest
from builder.trainers import MASKS
from builder.trainers.mask_counts import REGIONS, Comparison, compare
from builder.verify.dataset import checked_rows
from builder.verify.verifier import Verifier

ALL = "all"


def trainers_named(names: Sequence[str]) -> list[str]:
    """Returns the named trainers in the order of MASKS. Raises UsageError for an unknown name."""
    for name in names:
        if name not in (*MASKS, ALL):
            raise UsageError(f"--masks {name!r}: no such trainer{nearest(name, (*MASKS, ALL))}")
    return [name for name in MASKS if ALL in names or name in names]


def compare_masks(
    dataset: str, verifier: Verifier, trainers: Sequence[str], unit: str | None
) -> dict[str, Comparison]:
    """Returns {trainer: comparison} over the proven samples of a dataset. Raises UsageError."""
    found = {name: Comparison(name) for name in trainers}
    for _, sample, verdict in checked_rows(dataset, verifier, unit):
        if sample is not None and not verdict.findings:
            compare(sample, verdict.text, verdict.spans, verifier.target, found.values())
    return found


def as_json(comparison: Comparison) -> dict[str, Json]:
    """Returns the comparison as JSON."""
    ours, theirs = comparison.ours, comparison.theirs
    return {
        "samples": comparison.samples,
        "ours": {region: ours[region] for region in REGIONS},
        "theirs": {region: theirs[region] for region in REGIONS},
        "answers_lost": comparison.answers_lost,
        "same": comparison.same,
        "other_text": comparison.other_text,
        "beyond": comparison.beyond,
        "refused": dict(sorted(comparison.refused.items())),
        "borders": comparison.borders,
    }


def print_masks(found: dict[str, Comparison]) -> None:
    """Prints the number of trained tokens by region, ours and each trainer's, with remarks."""
    names = ["ours", *found]
    columns = [next(iter(found.values())).ours, *(item.theirs for item in found.values())]
    widths = [max(len(name), 12) for name in names]
    print(f"\n{'trained tokens':24}" + "".join(map(_right, names, widths)))
    for region in REGIONS:
        cells = [f"{column[region]:,}" for column in columns]
        print(f"{region:24}" + "".join(map(_right, cells, widths)))
    print()
    for name, item in found.items():
        trainer = MASKS[name]
        print(f"{name}: {trainer.summary}")
        notes = [f"exactly the tokens of meta.spans in {item.same} of {item.samples} samples"]
        if item.other_text:
            notes.append(f"text other than the proven one in {item.other_text}")
        if item.beyond and trainer.cut is not None:
            notes.append(f"cut at {trainer.limit} tokens: {counted(item.beyond, 'sample')}")
        if item.answers_lost:
            notes.append(f"{item.answers_lost:,} tokens of meta.spans not trained")
        notes += [
            f"refused: {counted(count, 'sample')}, {why}"
            for why, count in sorted(item.refused.items())
        ]
        if item.borders:
            notes.append(f"a span border inside a token in {item.borders}")
        for note in notes:
            print(f"    {note}")


def _right(text: str, width: int) -> str:
    return f"  {text:>{width}}"
