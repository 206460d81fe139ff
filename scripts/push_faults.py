"""Prints the outcome of a push under every fault, on both upload paths (a Hub on loopback).

`--path lfs|xet` runs one path in this process, `--json` prints one object per line, `--only TEXT`
selects the faults whose names contain TEXT.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from support.hub.scenarios import LFS, XET, run_all  # noqa: E402 - found through the line above


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", choices=[LFS, XET])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.path is None:
        for path in (LFS, XET):
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--path", path], check=True)
        return
    if not options.json:
        print("| path | fault | exit | attempts | waits, s | commits | twice | bytes sent twice |")
        print("|---|---|---|---|---|---|---|---|")
    for item in run_all(options.path, lambda scenario: options.only in scenario.name):
        if options.json:
            print(json.dumps(dataclasses.asdict(item)), flush=True)
            continue
        waits = ", ".join(f"{wait:g}" for wait in item.waits) or "none"
        cells = [item.path, item.scenario, item.code, item.attempts, waits]
        cells += [item.commits, item.duplicates, item.twice]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
