"""Compares building and verifying a dataset with what users do today."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from benchmark.cost import Cost
from benchmark.rounds import (
    ROOT,
    Bench,
    Command,
    Costs,
    build,
    builder,
    child,
    cpu,
    ratios,
    seconds,
)
from benchmark.tables import RATIO_HEADS, ratio_rows, show, show_costs, spread

MAP = "H, map alone"


def run(bench: Bench) -> None:
    """Measures and prints."""
    logs = bench.copied(bench.copies).folder
    out, other, cache = (bench.scratch / name for name in ("finished", "fresh", "cache"))
    samples = bench.run(Command(build(logs, out, bench.workers))).reported["samples"]
    once = bench.run(Command(build(bench.copied(1).folder, other, bench.workers))).reported[
        "samples"
    ]
    tokens = _tokens(out)
    print(f"\nbuilt from it: {samples} samples, {_size(out) / 1e6:.1f} MB, {tokens} tokens")
    print(f"one copy gives {once}, so {once * bench.copies} are expected of {bench.copies} copies")
    workers = "--workers" in bench.run(Command(builder("verify", "--help"))).printed
    found = bench.alternate(_commands(bench, logs, out, other, cache, workers=workers))
    found[MAP] = [_map_alone(cost) for cost in found["H"]]
    if any(cost.reported["tokens"] != tokens for cost in found["H"]):
        print(f"H gives {found['H'][0].reported['tokens']} tokens, the build counts {tokens}")
    show("Ratios: the median of the rounds (lowest to highest)", [RATIO_HEADS, *_rows(found)])
    show_costs(f"Build and verify, {bench.workers} workers unless stated otherwise", found)
    if not workers:
        print("verify has no --workers: it runs in one process")


def _commands(
    bench: Bench, logs: Path, out: Path, other: Path, cache: Path, *, workers: bool
) -> dict[str, Command]:
    tokenizer = ROOT / "builder" / "qwen3" / "assets"
    fresh = build(logs, other, bench.workers, "--fresh")
    alone = builder("verify", out, "-q", *(["--workers", "1"] if workers else []))
    verify = [*alone[:-1], str(bench.workers)] if workers else alone
    commands = {
        "H": Command(child("today", out, tokenizer, str(bench.workers), cache), clear=cache)
    }
    if bench.fast:
        commands["build, fast"] = Command(fresh)
        commands["verify, fast"] = Command(verify)
    return commands | {
        "build": Command(fresh, fast=False),
        "verify": Command(verify, fast=False),
        "verify, 1 worker": Command(alone),
        "floor, 1 worker": Command(child("floor", out)),
        "build again": Command(build(logs, out, bench.workers)),
        "audit": Command(builder("audit", out, "-q")),
    }


def _rows(found: Costs) -> list[list[str]]:
    rows = ratio_rows(
        found,
        [
            ("build, fast", "H", "<= 0.45"),
            ("build", "H", "<= 1.5"),
            ("verify, fast", "H", "<= 0.14"),
            ("verify", "H", ""),
            ("build, fast", MAP, ""),
            ("build", MAP, ""),
            ("verify, fast", MAP, ""),
            ("build again", "H", ""),
            ("audit", "H", ""),
        ],
    )
    pair = found["verify, 1 worker"], found["floor, 1 worker"]
    return [
        *rows,
        ["verify / floor, 1 worker", *(spread(ratios(*pair, of)) for of in (cpu, seconds)), "<= 2"],
    ]


def _map_alone(cost: Cost) -> Cost:
    known = None if cost.cpu is None else cost.reported["cpu"]
    return replace(cost, seconds=cost.reported["seconds"], cpu=known, peak=None)


def _size(out: Path) -> int:
    return sum(path.stat().st_size for path in (out / "data").iterdir())


def _tokens(out: Path) -> int:
    tokens = 0
    for path in (out / "meta").iterdir():
        with path.open("rb") as lines:
            tokens += sum(json.loads(line)["tokens"] for line in lines)
    return tokens
