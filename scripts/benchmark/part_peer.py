"""Compares with `teich convert`, which verifies nothing, on the same Claude Code files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from benchmark.logs import Copies, Log, make
from benchmark.rounds import (
    Bench,
    Command,
    Costs,
    Metric,
    build,
    builder,
    child,
    cpu,
    median,
    seconds,
)
from benchmark.tables import RATIO_HEADS, number, ratio_rows, show, show_costs

FORMAT = "claude-code"


def run(bench: Bench) -> None:
    """Measures and prints."""
    if bench.teich is None:
        print("\npeer: skipped; --teich PATH names the command of an installed teich")
        return
    logs = bench.corpus.of(FORMAT)
    read = [log for log in logs if _is_plain(log)]
    if not read:
        print(f"\npeer: skipped, the corpus has no file of {FORMAT} that teich can read")
        return
    made = {
        "once": make(read, 1, bench.scratch / "peer-once"),
        "all": make(read, bench.copies, bench.scratch / "peer-all"),
    }
    print(
        f"\npeer: {len(read)} files of {FORMAT}: once {made['once'].size / 1e6:.2f} MB, all copies"
        f" {made['all'].size / 1e6:.2f} MB; left out: {len(logs) - len(read)} files that teich"
        " fails on (not JSONL, or lines that are no objects)"
    )
    ours = ["reading", "build, 1 worker"]
    if bench.workers > 1:
        ours.append(f"build, {bench.workers} workers")
    rows = {size: bench.scratch / f"peer-{size}.jsonl" for size in made}
    found = bench.alternate(_commands(bench, bench.teich, made, rows))
    show_costs("Peer", found)
    show("Peer: MB of raw logs per second, all copies", _rates(["teich", *ours], made, found))
    pairs = [
        (f"{one}, {size}", f"teich, {size}", "< 1" if one == "reading" else "<= 2.5 of seconds")
        for size in made
        for one in ours
    ]
    pairs.append(("builder --help", "teich --help", "< 1"))
    show(
        "Peer: the median of the rounds (lowest to highest)",
        [RATIO_HEADS, *ratio_rows(found, pairs)],
    )
    _show_results(found, rows)


def _is_plain(log: Log) -> bool:
    """Returns whether the log is JSONL with an object in every line."""
    if not log.name.endswith(".jsonl"):
        return False
    with log.path.open("rb") as lines:
        try:
            return all(isinstance(json.loads(line), dict) for line in lines if line.strip())
        except ValueError:
            return False


def _commands(
    bench: Bench, teich: Path, made: Mapping[str, Copies], rows: Mapping[str, Path]
) -> dict[str, Command]:
    commands = {
        "teich --help": Command([str(teich), "--help"]),
        "builder --help": Command(builder("--help")),
    }
    for size, logs in made.items():
        folder, out = logs.folder, bench.scratch / f"peer-built-{size}"
        line = [str(teich), "convert", str(folder), "--out", str(rows[size])]
        commands[f"teich, {size}"] = Command(line)
        commands[f"reading, {size}"] = Command(child("reading", folder, FORMAT))
        for workers in sorted({1, bench.workers}):
            name = f"build, {workers} worker{'s' if workers > 1 else ''}, {size}"
            commands[name] = Command(build(folder, out, workers, "--fresh"))
    return commands


def _rates(names: list[str], made: Mapping[str, Copies], found: Costs) -> list[list[str]]:
    """Returns MB per second, with start-up (all copies) and without (all copies minus one)."""
    rows = [["", "with start-up", "without", "without, of CPU"]]
    once, whole = made["once"].size, made["all"].size

    def beyond(name: str, of: Metric) -> float | None:
        most, least = median(found[f"{name}, all"], of), median(found[f"{name}, once"], of)
        if most is None or least is None or most <= least:
            return None
        return (whole - once) / 1e6 / (most - least)

    for name in names:
        spent = median(found[f"{name}, all"], seconds)
        rates = whole / 1e6 / spent if spent else None, beyond(name, seconds), beyond(name, cpu)
        rows.append([name, *(number(rate, 1) for rate in rates)])
    return rows


def _show_results(found: Costs, rows: Mapping[str, Path]) -> None:
    """Prints the output sizes of each tool, since times alone are not comparable."""
    table = [["", "rows", "calls", "answered"]]
    for size, path in rows.items():
        with path.open("rb") as lines:
            messages = [json.loads(line)["messages"] for line in lines]
        turns = [turn for row in messages for turn in row]
        calls = sum(len(turn.get("tool_calls") or ()) for turn in turns)
        answers = sum(turn["role"] == "tool" for turn in turns)
        table.append([f"teich, {size}", *map(str, (len(messages), calls, answers))])
        built = found[f"build, 1 worker, {size}"][0].reported
        kept = built["calls"]["kept"]
        table.append([f"build, {size}", *map(str, (built["samples"], kept, kept))])
    show("Peer: results (each call in a built sample is answered)", table)
