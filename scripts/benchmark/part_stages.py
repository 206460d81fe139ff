"""Measures the CPU seconds per MB of log in each stage of a build with one worker."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmark.rounds import Bench, Command, child
from benchmark.tables import show, spread


def run(bench: Bench) -> None:
    """Measures and prints."""
    logs, out = bench.copied(bench.copies).folder, bench.scratch / "staged"
    found = bench.alternate({"stages": Command(child("stages", logs, out))})["stages"]
    reports = [cost.reported for cost in found]
    size = reports[0]["bytes"] / 1e6
    totals = [sum(stage["cpu"] for stage in one["stages"].values()) for one in reports]
    rows = [["", "CPU s per MB of log", "share", "text per byte of log"]]
    rows += [_row(name, reports, size, totals) for name in reports[0]["stages"]]
    whole = spread([total / size for total in totals], 3)
    show(
        f"Stages of a build of {size:.1f} MB with one worker: the median of the rounds"
        " (lowest to highest)",
        [*rows, ["the whole build", whole, "", ""]],
    )


def _row(
    name: str, reports: Sequence[dict[str, Any]], size: float, totals: Sequence[float]
) -> list[str]:
    stages = [one["stages"][name] for one in reports]
    shares = [stage["cpu"] / total for stage, total in zip(stages, totals, strict=True)]
    text = stages[0]["text"]
    return [
        name,
        spread([stage["cpu"] / size for stage in stages], 3),
        f"{statistics.median(shares):.1%}",
        "" if text is None else f"{text / size / 1e6:.2f}",
    ]
