"""Measures small jobs in one process: a build of data/, and one of 7 MB."""

from __future__ import annotations

import sys
from itertools import accumulate

from benchmark.logs import make
from benchmark.rounds import ROOT, Bench, Command, build
from benchmark.tables import show, show_costs, spread

DATA, MIDDLE = "build of data/", "build of 7 MB"
LEAST = 7_000_000
TARGETS = {DATA: "<= 2.0", MIDDLE: "<= 4.5"}


def run(bench: Bench) -> None:
    """Measures and prints."""
    sizes = accumulate(log.size for log in bench.corpus.logs)
    logs = bench.corpus.logs[: sum(size < LEAST for size in sizes) + 1]
    copies = -(-LEAST // sum(log.size for log in logs))
    made = make(logs, copies, bench.scratch / "small-logs")
    sources = {DATA: ROOT / "data", MIDDLE: made.folder}
    commands = {
        name: Command(build(folder, bench.scratch / f"small-{at}", 1, "--fresh"))
        for at, (name, folder) in enumerate(sources.items())
    }
    commands["import transformers, datasets"] = Command(
        [sys.executable, "-c", "import transformers, datasets"]
    )
    found = bench.alternate(commands)
    show_costs(f"Small jobs in one process ({made.size / 1e6:.1f} MB)", found)
    rows = [
        [name, spread([cost.cpu for cost in found[name] if cost.cpu is not None]), target]
        for name, target in TARGETS.items()
    ]
    show("Small jobs, CPU s", [["", "CPU s", "target"], *rows])
