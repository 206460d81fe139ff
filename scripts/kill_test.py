"""Kill a build at random moments, its driver and its workers, until it ends; compare the bytes.

python scripts/kill_test.py INPUT [--kills 50] [--workers 1,2,4] [--seed 0] [--engine local|ray]

Not part of the tests: it takes minutes. A run is killed with SIGKILL (in turn the whole process
group, or one worker) and started again; the last one is left alone. Its output folder must equal
that of an undisturbed run byte for byte, but for `run` in the manifest.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def command(source: str, out: Path, workers: int, engine: str = "local") -> list[str]:
    return [
        *(sys.executable, "-m", "builder", "build", source, "-o", str(out)),
        *("--workers", str(workers), "--engine", engine, "--quiet"),
    ]


def contents(out: Path) -> dict[str, bytes]:
    found = {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and ".state" not in path.parts
    }
    manifest = json.loads(found["manifest.json"])
    del manifest["run"]
    return {**found, "manifest.json": json.dumps(manifest).encode()}


def below(pid: int) -> list[int]:
    """All processes that this one, or one below it, has started."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in path.read_text().split():
                found += [int(child), *below(int(child))]
    return found


def is_worker(pid: int) -> bool:
    """Is it one of the pool, or a Ray worker at a task?"""
    with contextlib.suppress(OSError):
        told = Path(f"/proc/{pid}/cmdline").read_bytes()
        return told.startswith(b"ray::_do") or (b"forkserver" in told and not below(pid))
    return False


def disturbed(
    line: list[str], out: Path, kills: int, seconds: float, pick: random.Random
) -> tuple[int, int]:
    """(runs killed whole, workers killed)."""
    whole = single = 0
    for number in range(kills):
        process = subprocess.Popen(line, start_new_session=True)
        time.sleep(pick.uniform(0.2, seconds))
        found = [pid for pid in below(process.pid) if is_worker(pid)] if number % 2 else []
        if found and process.poll() is None:
            with contextlib.suppress(OSError):
                os.kill(pick.choice(found), signal.SIGKILL)
                single += 1
            time.sleep(pick.uniform(0, seconds / 2))
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
                whole += 1
        process.wait()
        if number % 10 == 9:
            shutil.rmtree(out / ".state" / "parts", ignore_errors=True)  # or it is soon done
    return whole, single


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--engine", default="local")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    pick = random.Random(options.seed)  # noqa: S311 - moments, not secrets
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        subprocess.run(command(options.source, Path(folder) / "whole", 2), check=True)
        seconds = time.monotonic() - began
        if options.engine == "ray":  # which takes its time to start
            began = time.monotonic()
            line = command(options.source, Path(folder) / "ray", 2, "ray")
            subprocess.run(line, check=True)
            seconds = time.monotonic() - began
        wanted = contents(Path(folder) / "whole")
        for workers in map(int, options.workers.split(",")):
            out = Path(folder) / f"out{workers}"
            line = command(options.source, out, workers, options.engine)
            whole, single = disturbed(line, out, options.kills, seconds, pick)
            code = subprocess.run(line, check=False).returncode
            equal = code == 0 and contents(out) == wanted
            failed |= not equal
            print(
                f"{workers} workers: {whole} runs and {single} workers killed,"
                f" then {'the same bytes' if equal else f'OTHER BYTES (exit {code})'}"
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
