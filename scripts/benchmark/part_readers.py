"""Measures megabytes of raw logs per CPU second, for each reader and for the whole build."""

from __future__ import annotations

from benchmark.logs import Copies, make
from benchmark.rounds import TINY, Bench, Command, Costs, build, child, cpu, median
from benchmark.tables import number, show

WANTED_BYTES = 3_000_000
MOST_FILES = 1000
"""The size of a run's input: enough to measure, in a limited number of files."""


def run(bench: Bench) -> None:
    """Measures and prints."""
    made = {name: _made(bench, name) for name in sorted({log.format for log in bench.corpus.logs})}
    commands = {"tiny": Command(build(TINY, bench.scratch / "tiny", 1, "--fresh"))}
    for name, logs in made.items():
        commands[f"read {name}"] = Command(child("reading", logs.folder, name))
        line = build(logs.folder, bench.scratch / f"built-{name}", 1, "--fresh")
        # 1: nothing could be built, which does not affect the measurement
        commands[f"build {name}"] = Command(line, accepted=(0, 1))
    found = bench.alternate(commands)
    heads = ["reader", "files", "MB", "conversations", "samples"]
    heads += ["read, MB/s", "recognise and read", "whole build"]
    rows = [[name, *_row(name, logs, found)] for name, logs in made.items()]
    show("MB of raw logs per CPU second (builds without start-up)", [heads, *rows])
    print("(a document parsed for recognition is not parsed again for reading)")


def _made(bench: Bench, name: str) -> Copies:
    logs = bench.corpus.of(name)
    size = sum(log.size for log in logs)
    copies = max(min(-(-WANTED_BYTES // max(size, 1)), MOST_FILES // len(logs)), 1)
    return make(logs, copies, bench.scratch / f"logs-{name}")


def _row(name: str, logs: Copies, found: Costs) -> list[str]:
    reads, builds = found[f"read {name}"], found[f"build {name}"]
    reading = median(reads, lambda cost: cost.reported["reading"])
    both = median(reads, lambda cost: cost.reported["reading"] + cost.reported["recognising"])
    start, whole = median(found["tiny"], cpu), median(builds, cpu)
    net = None if start is None or whole is None else whole - start
    rates = [number(_rate(logs.size, spent), 1) for spent in (reading, both, net)]
    sizes = [str(logs.files), f"{logs.size / 1e6:.1f}"]
    return [
        *sizes,
        str(reads[0].reported["conversations"]),
        str(builds[0].reported["samples"]),
        *rates,
    ]


def _rate(size: int, spent: float | None) -> float | None:
    """Returns MB per second; None: unknown, or too short to measure."""
    return size / 1e6 / spent if spent is not None and spent > 0.002 else None
