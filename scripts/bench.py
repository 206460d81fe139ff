"""Measures speed against what users do today: medians and ratios over alternating rounds.

    scripts/bench.py [LOGS…] [--copies N] [--rounds 5] [--workers CORES] [--only PART,…]
                     [--teich PATH]

The input is made from LOGS (default: data/): each file is copied, with different ids and texts in
every copy (benchmark/logs.py). All commands run below one process on the same cores, one after the
other in each round. The parts:

- ratios: building from raw logs (fresh and repeated) and verifying the samples, relative to H:
  `apply_chat_template(messages, tools=tools, tokenize=True)` in `datasets.map(num_proc)` over the
  finished samples. `fast` uses gigatoken, which is hidden otherwise, as the extra `secrets` is.
  `floor` only renders the samples with the template. `H, map alone` excludes start-up and loading
- small: a build of data/ and one of 7 MB, in one process
- stages: CPU seconds per MB of log in each stage of a build with one worker, and how much text
  passes it
- readers: MB of raw logs per CPU second, for each format in the corpus
- scaling: one worker and two, the input and ten times the input
- startup: the help of each command, and its work on a log of a few lines
- peer: the Claude Code files through `teich convert` (https://pypi.org/project/teich), if PATH
  names its command; this script never installs it

Figures are the median of the rounds, with the lowest and the highest. Seconds are wall-clock time
including start-up; on a busy machine only CPU seconds can be compared. They and memory cover all
processes of a command, including workers; memory is the sum of their PSS, sampled ten times a
second (less often if sampling is slow). Both are measured on Linux only. Not part of the tests, as
timings depend on the machine.
"""

from __future__ import annotations

import argparse
import compileall
import os
import platform
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmark import (
    part_peer,
    part_ratios,
    part_readers,
    part_scaling,
    part_small,
    part_stages,
    part_startup,
)
from benchmark.cost import Failed, adopt_orphans, end_on_sigterm
from benchmark.logs import survey
from benchmark.rounds import ROOT, Bench

PARTS = {
    "ratios": part_ratios.run,
    "stages": part_stages.run,
    "small": part_small.run,
    "readers": part_readers.run,
    "scaling": part_scaling.run,
    "startup": part_startup.run,
    "peer": part_peer.run,
}
ENOUGH = 8_000_000
"""Minimum total size of the copies in bytes, unless --copies is given."""


def main() -> int:
    options = _options()
    end_on_sigterm()
    compileall.compile_dir(ROOT / "builder", quiet=1)  # as installing does
    cores = _pin(options.workers)
    if not adopt_orphans():
        print("CPU seconds and memory are unknown on this system")
    corpus = survey(options.logs)
    if not corpus.logs:
        print("no file that a reader recognises", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        bench = Bench(
            corpus=corpus,
            scratch=Path(scratch),
            copies=options.copies or max(-(-ENOUGH // corpus.size), 10),
            rounds=options.rounds,
            workers=cores,
            fast=_gigatoken(),
            teich=options.teich and options.teich.absolute(),
        )
        _print_header(bench)
        try:
            for name in options.only:
                PARTS[name](bench)
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("logs", nargs="*", type=Path, default=[ROOT / "data"])
    parser.add_argument("--copies", type=int, help="default: 8 MB, at least 10")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, help="default: the cores")
    parser.add_argument("--only", type=_parts, default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--teich", type=Path, metavar="PATH", help="the peer's command")
    return parser.parse_args()


def _parts(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"no such part: {', '.join(unknown)}")
    return names


def _pin(workers: int | None) -> int:
    """Pins this process and its children to `workers` cores; returns the number of workers."""
    if not hasattr(os, "sched_setaffinity"):
        return workers or os.cpu_count() or 1
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:workers])
    return workers or len(cores)


def _gigatoken() -> str | None:
    try:
        return version("gigatoken")
    except PackageNotFoundError:
        return None


def _print_header(bench: Bench) -> None:
    """Prints the machine, the versions and the input."""
    made = bench.copied(bench.copies)
    names = ("transformers", "tokenizers", "datasets")
    used = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in names)]
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores; {', '.join(used)}")
    print(f"{bench.workers} workers on as many cores, {bench.rounds} rounds")
    if bench.fast:
        print(f"fast: gigatoken {bench.fast}")
    else:
        print("fast: gigatoken is not installed, so its measurements are skipped")
    corpus = bench.corpus
    print(
        f"input: {len(corpus.logs)} files, {corpus.size / 1e6:.2f} MB, {bench.copies} copies:"
        f" {made.files} files, {made.size / 1e6:.2f} MB of logs"
    )
    if corpus.left_out:
        size = sum(path.stat().st_size for path in corpus.left_out)
        kinds = sorted({path.suffix or path.name for path in corpus.left_out})
        print(
            f"left out: {len(corpus.left_out)} files claimed by no reader, or by several"
            f" ({size / 1e6:.2f} MB: {', '.join(kinds)})"
        )
    if made.unvaried:
        kinds = [f"{count} of {suffix}" for suffix, count in sorted(made.unvaried.items())]
        print(f"copied verbatim, so that their samples are duplicates: {', '.join(kinds)}")


if __name__ == "__main__":
    sys.exit(main())
