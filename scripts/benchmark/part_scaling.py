"""Measures scaling: twice the workers, ten times the input."""

from __future__ import annotations

from benchmark.rounds import Bench, Command, build, cpu, peak
from benchmark.tables import over, show, show_costs

TEN = 10


def run(bench: Bench) -> None:
    """Measures and prints."""
    copies = max(bench.copies // TEN, 1)
    small, large = bench.copied(copies), bench.copied(copies * TEN)
    print(f"\nscaling: {small.size / 1e6:.2f} MB and {large.size / 1e6:.2f} MB of logs")
    out = bench.scratch / "scaled"
    names = {1: "1 worker", 2: "2 workers"} if bench.workers > 1 else {1: "1 worker"}
    found = bench.alternate(
        {
            f"{size}, {name}": Command(build(logs.folder, out, workers, "--fresh"))
            for size, logs in (("1 x", small), ("10 x", large))
            for workers, name in names.items()
        }
    )
    show_costs("Builds", found)
    rows = [["", "ratio", "target"]]
    if bench.workers > 1:
        rows.append(
            [
                "time of 1 worker / 2 workers",
                over(found, "10 x, 1 worker", "10 x, 2 workers"),
                ">= 1.8",
            ]
        )
    else:
        print("2 workers: skipped, there is only one core")
    for name in names.values():
        one, ten = f"1 x, {name}", f"10 x, {name}"
        rows += [
            [f"time of {ten} / {one}", over(found, ten, one), "<= 10.5"],
            [f"CPU of {ten} / {one}", over(found, ten, one, cpu), "<= 10.5"],
            [f"peak memory of {ten} / {one}", over(found, ten, one, peak), "<= 1.2"],
        ]
    show("Scaling: the median of the rounds (lowest to highest)", rows)
