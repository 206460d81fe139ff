"""Kill builds at random moments of every stage, go on each time, and compare the bytes.

    scripts/kill_test.py [LOGS…] [--copies 150] [--kills 50] [--workers 1,2,4]
                         [--engine local|ray] [--seed 0]

The input is made of LOGS (default: data/) as for scripts/bench.py; an undisturbed run should take
about ten seconds. Each kill is aimed at a stage, drawn by the seed (STAGES: the parts most often),
and falls after a random share of the time that the stage took undisturbed. It is SIGKILL

- tree: to all processes of the run
- driver: to the first process alone; the next run begins while its workers may still be there
- worker: to one process of the pool, or one at a task of Ray; the run is left to go on

Only kills of a live run count. In which stage it was is read from what it left behind. Before a
kill among the parts about half of the finished ones are removed, or they would soon all be done. A
run that ends by itself, and the last one, which is left alone, must give the output of the
undisturbed run byte for byte, but for `run` in the manifest. A run may end with exit code 2 only if
one of its workers was killed. Not part of the tests: it takes minutes. Linux only.
"""

from __future__ import annotations

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
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.cost import adopt_orphans, below, children, end_on_sigterm, kill_all
from bench.logs import make, survey

ROOT = Path(__file__).parents[1]
STAGES = ("start", "convert", "write", "checks", "report", "publish", "end")
"""checks: the audits and the loading of what was written; end: after the last file is in place."""
AIMED = (*STAGES, "convert", "convert", "convert", "convert", "checks", "checks", "publish")
"""The stages of so many kills; then again, in another order."""
LOOK = 0.001
"""Seconds between two looks at what a run has written."""
LIMIT = 600.0
"""Seconds after which a run that does not get further has failed."""


def command(logs: Path, out: Path, workers: int, engine: str) -> list[str]:
    return [
        *(sys.executable, "-m", "builder", "build", str(logs), "-o", str(out), "--allow-eval"),
        *("--workers", str(workers), "--engine", engine, "--quiet"),
    ]


def contents(out: Path) -> dict[str, bytes]:
    """The output, without what may differ."""
    found = {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and ".state" not in path.parts
    }
    manifest = json.loads(found["manifest.json"])
    del manifest["run"]
    return {**found, "manifest.json": json.dumps(manifest).encode()}


class Run:
    """A build under way; its files tell how far it is."""

    def __init__(self, line: list[str], out: Path, text: Path) -> None:
        self.out = out
        self.work = out / ".state" / "work"
        self.killed_worker = False
        self._begun = False
        # An open folder keeps its number: the new run's work folder cannot get the old one's.
        self._old = os.open(self.work, os.O_RDONLY) if self.work.is_dir() else None
        self._manifest = _number(out / "manifest.json")
        with text.open("wb") as stream:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self.process = subprocess.Popen(
                line,
                cwd=ROOT,
                env=environment,
                start_new_session=True,
                stdout=stream,
                stderr=stream,
            )

    def stage(self) -> str:
        """Where it is, or was when it was killed."""
        number = _number(self.work)
        if number is None or (self._old is not None and number == os.fstat(self._old).st_ino):
            return "end" if self._begun else "start"
        self._begun = True
        new = self.work / "new"
        if not new.is_dir():
            return "convert"
        if (new / "manifest.json").exists() or (new / "report.html").exists():
            return "publish"
        if (new / "assets").is_dir():  # pictures of what the audits found
            return "report"
        if (new / "rejects.jsonl").exists():
            return "checks"
        published = _number(self.out / "manifest.json") not in (None, self._manifest)
        return "end" if published else "write"

    def wait(self, seconds: float, stage: str | None = None) -> bool:
        """Wait so long, or until it is at a stage or further. False: it is over, or not there."""
        until = time.monotonic() + seconds
        while self.process.poll() is None:
            now = self.stage()
            if stage is not None and STAGES.index(now) >= STAGES.index(stage):
                return True
            if time.monotonic() > until:
                return stage is None
            time.sleep(LOOK)
        return False

    def wait_for_workers(self) -> None:
        """Wait until it has workers, or is past the parts."""
        while self.process.poll() is None and self.stage() == "convert" and not self.workers():
            time.sleep(LOOK * 10)

    def workers(self) -> list[int]:
        """The processes of the pool that work, or Ray's at a task."""
        found = []
        for pid in below(self.process.pid):
            reported = _told(pid)
            if reported.startswith(b"ray::_do"):
                found.append(pid)
            elif b"forkserver" in reported:  # the server and its workers are called the same
                found += [child for child in children(pid) if b"forkserver" in _told(child)]
        return found

    def kill(self, kind: str, pick: random.Random) -> bool:
        """Kill it, or one of its workers. False: it had ended."""
        pid = self.process.pid
        if kind == "worker":
            with contextlib.suppress(IndexError, ProcessLookupError):  # it has just ended
                os.kill(pick.choice(self.workers()), signal.SIGKILL)
                self.killed_worker = True
            return self.killed_worker
        for one in (pid, *(below(pid) if kind == "tree" else ())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        return self.process.wait() == -signal.SIGKILL

    def close(self) -> None:
        """Let go of what was kept open."""
        if self._old is not None:
            os.close(self._old)
            self._old = None


def _number(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_ino
    return None


def _told(pid: int) -> bytes:
    """The command line; empty of a process that has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def undisturbed(line: list[str], out: Path, text: Path) -> dict[str, float]:
    """Seconds that each stage of a run takes. Raises SystemExit if the run fails."""
    run = Run(line, out, text)
    begun = {}
    for stage in STAGES:
        run.wait(LIMIT, stage)
        begun[stage] = time.monotonic()
    code = run.process.wait()
    run.close()
    if code:
        raise SystemExit(f"exit {code}: {text.read_text(errors='replace')}")
    ends = [*list(begun.values())[1:], time.monotonic()]
    return {stage: end - start for (stage, start), end in zip(begun.items(), ends, strict=True)}


class Series:
    """Kills of one command's runs, each of which goes on where the last one was killed."""

    def __init__(
        self, line: list[str], out: Path, wanted: dict[str, bytes], pick: random.Random
    ) -> None:
        self.line = line
        self.out = out
        self.wanted = wanted
        self.pick = pick
        self.log = out.with_suffix(".log")
        self.kinds: Counter[str] = Counter()
        self.stages: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.faults: list[str] = []

    def disturb(self, kills: int, seconds: dict[str, float]) -> None:
        """Kill so many times, then let the last run be."""
        run: Run | None = None
        aims = self._aims()
        while self.kinds.total() < kills:
            stage = next(aims)
            run = run or self._start(stage)
            if run.wait(LIMIT, stage):
                share = 1 / 2 if stage == "convert" else 1  # of which half are there
                run.wait(self.pick.uniform(0, seconds[stage] * share))
                if stage == "convert" and self.pick.random() < 1 / 2:
                    run.wait_for_workers()
                    run.wait(self.pick.uniform(0, seconds[stage] * share / 2))
            elif run.process.poll() is None:
                self.faults.append(f"a run did not reach {stage} in {LIMIT:.0f} seconds")
            if not self._kill(run):
                self._look(run)
                run = None
            elif run.process.returncode is not None:
                run.close()
                run = None
        self._look(run or self._start("end"))

    def _aims(self) -> Iterator[str]:
        while True:
            aims = list(AIMED)
            self.pick.shuffle(aims)
            yield from aims

    def _start(self, stage: str) -> Run:
        """A run; before a kill among the parts some of those that are done are removed."""
        if stage == "convert":
            for path in sorted((self.out / ".state" / "results").glob("??/*")):
                if self.pick.random() < 1 / 2:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        _reap()
        return Run(self.line, self.out, self.log)

    def _kill(self, run: Run) -> bool:
        """Kill the run or a worker of it, and count that. False: it had ended."""
        kind = self.pick.choice(("tree", "driver"))
        if not run.killed_worker and run.workers():  # two kills may cost a part its sample
            kind = self.pick.choice((kind, "worker"))
        stage = run.stage()
        if not run.kill(kind, self.pick):
            return run.process.poll() is None
        stage = stage if kind == "worker" else run.stage()
        self.kinds[kind] += 1
        self.stages[stage] += 1
        print(f"kill {self.kinds.total()}: {kind}, in {stage}", file=sys.stderr, flush=True)
        return True

    def _look(self, run: Run) -> None:
        """Look at what a run that ends by itself has made."""
        code = run.process.wait()
        run.close()
        if code == 0:
            self.ended["whole"] += 1
            if contents(self.out) != self.wanted:
                self.faults.append("a run ended with other bytes")
        elif code == 2 and run.killed_worker:
            self.ended["for want of a worker"] += 1
        else:
            text = self.log.read_text(errors="replace").strip()[-1000:]
            self.faults.append(f"a run ended with exit code {code}: {text}")


def _reap() -> None:
    """Wait for orphans that have ended; a run is waited for before."""
    for pid in children(os.getpid()):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def main() -> int:
    options = _options()
    if not adopt_orphans():
        print("this needs Linux", file=sys.stderr)
        return 2
    end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="kill-", ignore_cleanup_errors=True) as scratch:
        try:
            return int(_test(options, Path(scratch)))
        finally:
            kill_all()  # a run that was broken off; what drivers left that were killed alone


def _test(options: argparse.Namespace, folder: Path) -> bool:
    """Was there a fault?"""
    pick = random.Random(options.seed)  # noqa: S311 - moments, not secrets
    failed = False
    made = make(survey(options.logs).logs, options.copies, folder / "logs")
    print(f"{made.files} files, {made.size / 1e6:.2f} MB; seed {options.seed}")
    whole = folder / "whole"
    undisturbed(command(made.folder, whole, 1, "local"), whole, folder / "whole.log")
    wanted = contents(whole)
    for workers in map(int, options.workers.split(",")):
        out = folder / f"out-{workers}"
        line = command(made.folder, out, workers, options.engine)
        seconds = undisturbed(line, out, folder / "out.log")
        reported = ", ".join(f"{stage} {took:.2f}" for stage, took in seconds.items())
        print(
            f"{workers} workers, {options.engine}: {sum(seconds.values()):.1f} s ({reported})",
            flush=True,
        )
        series = Series(line, out, wanted, pick)
        series.disturb(options.kills, seconds)
        failed |= bool(series.faults)
        _tell(series)
    return failed


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("logs", nargs="*", type=Path, default=[ROOT / "data"])
    parser.add_argument("--copies", type=int, default=150)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _tell(series: Series) -> None:
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(series.kinds.items()))
    stages = ", ".join(f"{stage} {series.stages[stage]}" for stage in STAGES)
    ended = ", ".join(f"{count} {how}" for how, count in sorted(series.ended.items()))
    print(f"  {series.kinds.total()} kills: {kinds}")
    print(f"  in: {stages}")
    print(f"  runs that ended by themselves: {ended}")
    for fault in dict.fromkeys(series.faults):
        print(f"  FAULT ({series.faults.count(fault)} times): {fault}")
    if not series.faults:
        print("  the same bytes each time", flush=True)


if __name__ == "__main__":
    sys.exit(main())
