"""Kills builds at random moments of every stage, resumes them, and compares the bytes.

    scripts/kill_test.py [LOGS…] [--copies 150] [--kills 50] [--workers 1,2,4]
                         [--engine local|ray] [--seed 0]

The input is made from LOGS (default: data/) as in scripts/bench.py; an undisturbed run should take
about ten seconds. Each kill targets a stage, drawn from the seed (see AIMED: most often the
conversion of chunks), and happens after a random share of the time that the stage takes
undisturbed. SIGKILL is sent to

- tree: all processes of the run
- driver: only the first process; the next run starts while its workers may still exist
- worker: one process of the pool, or one that runs a Ray task; the run continues

Only kills of a live run count. The stage of a kill is derived from the files that the run left.
Before a kill during conversion, about half of the finished chunks are removed; otherwise all would
soon be finished. A run that ends on its own, and the last one, which is not killed, must give the
output of the undisturbed run byte for byte, except for `run` in the manifest. A run may
exit with code 2 only if one of its workers was killed. Not part of the tests: it takes minutes.
Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
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

from benchmark.cost import adopt_orphans, below, children, end_on_sigterm, kill_all
from benchmark.logs import make, survey

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from support.runs.builds import files  # noqa: E402 - found through the line above

STAGES = ("start", "convert", "write", "checks", "report", "publish", "end")
"""checks: audits and loading the written rows; end: after the last file is in place."""
AIMED = (*STAGES, "convert", "convert", "convert", "convert", "checks", "checks", "publish")
"""The target stages of one series of kills; each later series has another order."""
POLL_SECONDS = 0.001
"""Seconds between checks of what a run has written."""
LIMIT_SECONDS = 600.0
"""Seconds after which a run without progress has failed."""


def command(logs: Path, out: Path, workers: int, engine: str) -> list[str]:
    return [
        *(sys.executable, "-m", "builder", "build", str(logs), "-o", str(out), "--allow-eval"),
        *("--workers", str(workers), "--engine", engine, "--quiet"),
    ]


class Run:
    """A running build; its files show its progress."""

    def __init__(self, line: list[str], out: Path, text: Path) -> None:
        self.out = out
        self.work = out / ".state" / "work"
        self.killed_worker = False
        self._begun = False
        # An open folder keeps its inode number, so the new run's work folder cannot get the same
        # one.
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
        """Returns the stage that the run is in, or was in when it was killed."""
        number = _number(self.work)
        if number is None or (self._old is not None and number == os.fstat(self._old).st_ino):
            return "end" if self._begun else "start"
        self._begun = True
        new = self.work / "new"
        if not new.is_dir():
            return "convert"
        if (new / "manifest.json").exists() or (new / "report.html").exists():
            return "publish"
        if (new / "assets").is_dir():  # charts of the audit
            return "report"
        if (new / "rejects.jsonl").exists():
            return "checks"
        published = _number(self.out / "manifest.json") not in (None, self._manifest)
        return "end" if published else "write"

    def wait(self, seconds: float, stage: str | None = None) -> bool:
        """Waits up to `seconds`, or until the run has reached a stage.

        Returns False if the run has ended or has not reached the stage.
        """
        until = time.monotonic() + seconds
        while self.process.poll() is None:
            now = self.stage()
            if stage is not None and STAGES.index(now) >= STAGES.index(stage):
                return True
            if time.monotonic() > until:
                return stage is None
            time.sleep(POLL_SECONDS)
        return False

    def wait_for_workers(self) -> None:
        """Waits until the run has workers or has finished conversion."""
        while self.process.poll() is None and self.stage() == "convert" and not self.workers():
            time.sleep(POLL_SECONDS * 10)

    def workers(self) -> list[int]:
        """Returns the workers of the pool, or the processes that run Ray tasks."""
        found = []
        for pid in below(self.process.pid):
            line = _command_line(pid)
            if line.startswith(b"ray::_run_remote"):
                found.append(pid)
            elif b"forkserver" in line:  # the server and its workers have the same command line
                found += [child for child in children(pid) if b"forkserver" in _command_line(child)]
        return found

    def kill(self, kind: str, pick: random.Random) -> bool:
        """Kills the run or one of its workers; returns False if it had already ended."""
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
        """Closes the file descriptor that was kept open."""
        if self._old is not None:
            os.close(self._old)
            self._old = None


def _number(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_ino
    return None


def _command_line(pid: int) -> bytes:
    """Returns the command line of a process; b"" if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def undisturbed(line: list[str], out: Path, text: Path) -> dict[str, float]:
    """Returns the seconds that each stage takes undisturbed. Raises SystemExit if the run fails."""
    run = Run(line, out, text)
    begun = {}
    for stage in STAGES:
        run.wait(LIMIT_SECONDS, stage)
        begun[stage] = time.monotonic()
    code = run.process.wait()
    run.close()
    if code:
        raise SystemExit(f"exit {code}: {text.read_text(errors='replace')}")
    ends = [*list(begun.values())[1:], time.monotonic()]
    return {stage: end - start for (stage, start), end in zip(begun.items(), ends, strict=True)}


class Series:
    """A series of kills; each run resumes where the previous one was killed."""

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
        """Kills the given number of times, then lets the last run finish."""
        run: Run | None = None
        aims = self._aims()
        while self.kinds.total() < kills:
            stage = next(aims)
            run = run or self._start(stage)
            if run.wait(LIMIT_SECONDS, stage):
                # Half of the chunks are already finished.
                share = 1 / 2 if stage == "convert" else 1
                run.wait(self.pick.uniform(0, seconds[stage] * share))
                if stage == "convert" and self.pick.random() < 1 / 2:
                    run.wait_for_workers()
                    run.wait(self.pick.uniform(0, seconds[stage] * share / 2))
            elif run.process.poll() is None:
                self.faults.append(f"a run did not reach {stage} in {LIMIT_SECONDS:.0f} seconds")
            if not self._kill(run):
                self._check_end(run)
                run = None
            elif run.process.returncode is not None:
                run.close()
                run = None
        self._check_end(run or self._start("end"))

    def _aims(self) -> Iterator[str]:
        while True:
            aims = list(AIMED)
            self.pick.shuffle(aims)
            yield from aims

    def _start(self, stage: str) -> Run:
        """Starts a run; before a kill during conversion removes some of the finished chunks."""
        if stage == "convert":
            for path in sorted((self.out / ".state" / "results").glob("??/*")):
                if self.pick.random() < 1 / 2:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        _reap()
        return Run(self.line, self.out, self.log)

    def _kill(self, run: Run) -> bool:
        """Kills the run or a worker and counts it; returns False if the run had already ended."""
        kind = self.pick.choice(("tree", "driver"))
        if not run.killed_worker and run.workers():  # two kills may cost a chunk its samples
            kind = self.pick.choice((kind, "worker"))
        stage = run.stage()
        if not run.kill(kind, self.pick):
            return run.process.poll() is None
        stage = stage if kind == "worker" else run.stage()
        self.kinds[kind] += 1
        self.stages[stage] += 1
        print(f"kill {self.kinds.total()}: {kind}, in {stage}", file=sys.stderr, flush=True)
        return True

    def _check_end(self, run: Run) -> None:
        """Checks the output of a run that ended on its own."""
        code = run.process.wait()
        run.close()
        if code == 0:
            self.ended["whole"] += 1
            if files(self.out) != self.wanted:
                self.faults.append("a run gave different bytes")
        elif code == 2 and run.killed_worker:
            self.ended["after the loss of a worker"] += 1
        else:
            text = self.log.read_text(errors="replace").strip()[-1000:]
            self.faults.append(f"a run ended with exit code {code}: {text}")


def _reap() -> None:
    """Waits for orphans that have ended; the run itself has been waited for."""
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
            kill_all()  # an interrupted run, and workers of drivers that were killed alone


def _test(options: argparse.Namespace, folder: Path) -> bool:
    """Runs all series; returns whether there was a fault."""
    pick = random.Random(options.seed)  # noqa: S311 - moments, not secrets
    failed = False
    made = make(survey(options.logs).logs, options.copies, folder / "logs")
    print(f"{made.files} files, {made.size / 1e6:.2f} MB; seed {options.seed}")
    whole = folder / "whole"
    undisturbed(command(made.folder, whole, 1, "local"), whole, folder / "whole.log")
    wanted = files(whole)
    for workers in map(int, options.workers.split(",")):
        out = folder / f"out-{workers}"
        line = command(made.folder, out, workers, options.engine)
        seconds = undisturbed(line, out, folder / "out.log")
        stages = ", ".join(f"{stage} {took:.2f}" for stage, took in seconds.items())
        print(
            f"{workers} workers, {options.engine}: {sum(seconds.values()):.1f} s ({stages})",
            flush=True,
        )
        series = Series(line, out, wanted, pick)
        series.disturb(options.kills, seconds)
        failed |= bool(series.faults)
        _print_series(series)
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


def _print_series(series: Series) -> None:
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
