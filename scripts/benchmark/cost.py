"""Measures the cost of a command: seconds, and CPU and memory of all processes it starts.

Workers may outlive their parents, so that no process waits for them. On Linux this process becomes
the subreaper that adopts such orphans, and so learns all CPU seconds. On other systems they are
unknown.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

PR_SET_CHILD_SUBREAPER = 36
INTERVAL = 0.1
"""Seconds between memory samples, once a command has run for that long."""
SHARE = 30
"""The pause after a sample is at least this multiple of its duration, to limit the load."""
PATIENCE = 20
"""Seconds that orphaned processes of a command have to end."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run of a command.

    seconds  wall-clock time until the command itself ended
    cpu      CPU seconds of all its processes; None: unknown on this system
    peak     peak memory of its processes in bytes (PSS: shared pages are divided among the
             processes that share them); None: unknown on this system
    printed  what it wrote to stdout
    """

    seconds: float
    cpu: float | None
    peak: int | None
    printed: str = ""

    @property
    def reported(self) -> dict[str, Any]:
        """The JSON object in the last printed line."""
        text: dict[str, Any] = json.loads(self.printed.splitlines()[-1])
        return text


class Failed(Exception):
    """A command ended with an unexpected exit code; the message contains its output."""


def adopt_orphans() -> bool:
    """Makes this process adopt orphans; returns False if the system does not support it."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end_on_sigterm() -> None:
    """Makes SIGTERM end this process like an error, so that children and files are cleaned up."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def measure(
    line: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    accepted: Sequence[int] = (0,),
) -> Cost:
    """Runs a command in the folder until it and all its descendants have ended. Raises Failed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(line, env=environment, cwd=folder, stdout=out, stderr=err)
        with _watched() as watch:
            try:
                code, cpu = _wait(process)
                seconds = time.perf_counter() - started
                cpu += _reap()
            except BaseException:
                kill_all()
                raise
        if code not in accepted:
            text = (_text(out) + _text(err)).strip()[-2000:]
            raise Failed(f"exit {code}: {' '.join(line)[:300]}\n{text}")
        known = sys.platform == "linux"
        return Cost(seconds, cpu if known else None, watch.peak, _text(out))


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Returns (exit code, CPU seconds of the process and of those that it waited for)."""
    if not hasattr(os, "wait4"):
        return process.wait(), 0.0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def _reap() -> float:
    """Waits for the orphans of the command; returns their CPU seconds."""
    if sys.platform != "linux":
        return 0.0
    cpu = 0.0
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu
        if pid:
            cpu += usage.ru_utime + usage.ru_stime
            continue
        if time.monotonic() > deadline:
            kill_all()
        time.sleep(0.01)


def kill_all() -> None:
    """Kills all descendants of this process (Linux)."""
    for pid in below(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """Returns the children of a process, adopted ones included, that still exist (Linux)."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # the process has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def below(pid: int) -> list[int]:
    """Returns all descendants of a process (Linux)."""
    return [item for child in children(pid) for item in (child, *below(child))]


@dataclass(slots=True)
class _Watch:
    peak: int | None = None


@contextlib.contextmanager
def _watched() -> Iterator[_Watch]:
    """Samples the memory of all descendants in a thread until the context ends."""
    watch = _Watch()
    ended = threading.Event()

    def sample() -> None:
        pause = INTERVAL / 10
        while True:
            started = time.perf_counter()
            sizes = [size for pid in below(os.getpid()) if (size := pss(pid)) is not None]
            if sizes:
                watch.peak = max(watch.peak or 0, sum(sizes))
            took = time.perf_counter() - started
            if ended.wait(max(pause, SHARE * took)):
                return
            pause = min(pause * 2, INTERVAL)

    thread = threading.Thread(target=sample, daemon=True)
    if sys.platform == "linux":
        thread.start()
    try:
        yield watch
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()


def pss(pid: int) -> int | None:
    """Returns the PSS of the process in bytes, swap included; None: unknown."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
    except OSError:
        return None
    found = re.findall(rb"^(?:Pss|SwapPss):\s+(\d+) kB", rollup, re.MULTILINE)
    return sum(map(int, found)) * 1024 if found else None


def _text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")
