"""Measures the small job: a build of data/, beyond the imports that any such program needs."""

from __future__ import annotations

import sys

from benchmark.rounds import ROOT, Bench, Command, build, cpu, differences
from benchmark.tables import show_costs, spread

IMPORTS = "import transformers, datasets"


def run(bench: Bench) -> None:
    """Measures and prints."""
    line = build(ROOT / "data", bench.scratch / "small", bench.workers, "--fresh")
    commands = {"build of data/": Command(line), IMPORTS: Command([sys.executable, "-c", IMPORTS])}
    found = bench.alternate(commands)
    show_costs("The small job", found)
    built, imported = found.values()
    beyond = differences(built, imported, cpu)
    print(f"beyond the imports: {spread(beyond)} s of CPU (target: <= 1)")
