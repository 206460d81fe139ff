"""Measures small jobs in one process: a build of data/, and one of 7 MB."""

from __future__ import annotations

from itertools import accumulate

from benchmark.logs import make
from benchmark.rounds import ROOT, Bench, Command, build
from benchmark.tables import show_costs

LEAST = 7_000_000


def run(bench: Bench) -> None:
    """Measures and prints."""
    sizes = accumulate(log.size for log in bench.corpus.logs)
    logs = bench.corpus.logs[: sum(size < LEAST for size in sizes) + 1]
    copies = -(-LEAST // sum(log.size for log in logs))
    made = make(logs, copies, bench.scratch / "small-logs")
    jobs = {"data/, CPU <= 2.0": ROOT / "data", "7 MB, CPU <= 4.5": made.folder}
    commands = {
        name: Command(build(folder, bench.scratch / f"small-{at}", 1, "--fresh"))
        for at, (name, folder) in enumerate(jobs.items())
    }
    size = made.size / 1e6
    show_costs(f"Builds in one process ({size:.1f} MB)", bench.alternate(commands))
