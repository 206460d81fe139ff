"""Prints the results of `builder verify --masks`: which tokens the trainers' defaults train."""

from __future__ import annotations

from collections.abc import Mapping

from builder.conversation import Json
from builder.text import counted
from builder.trainers import MASKS
from builder.trainers.mask_counts import REGIONS, Comparison


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


def print_masks(comparisons: Mapping[str, Comparison]) -> None:
    """Prints the number of trained tokens by region, ours and each trainer's, with remarks."""
    names = ["ours", *comparisons]
    columns = [
        next(iter(comparisons.values())).ours,
        *(item.theirs for item in comparisons.values()),
    ]
    widths = [max(len(name), 12) for name in names]
    print(f"\n{'trained tokens':24}" + "".join(map(_right, names, widths)))
    for region in REGIONS:
        cells = [f"{column[region]:,}" for column in columns]
        print(f"{region:24}" + "".join(map(_right, cells, widths)))
    print()
    for name, item in comparisons.items():
        trainer = MASKS[name]
        print(f"{name}: {trainer.summary}")
        notes = [f"exactly the tokens of meta.spans in {item.same} of {item.samples} samples"]
        if item.other_text:
            notes.append(f"another text than the verified one in {item.other_text}")
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
