"""What a command costs: seconds, the CPU and the memory of every process that it starts.

Workers may outlive their parents, and then nobody waits for them: on Linux this process is made
the one that orphans are handed to, so that it gets all CPU seconds. Elsewhere they are not known.
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
"""Seconds between two looks at the memory, once a command has run for so long."""
SHARE = 30
"""A look that takes long is followed by a pause of so many times that, or it would be the load."""
PATIENCE = 20
"""Seconds that processes left behind by a command have to end."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run of a command.

    seconds  by the clock, until the command itself ended
    cpu      CPU seconds of all its processes; None: not known on this system
    peak     the most bytes that its processes held at once (PSS: shared pages are divided among
             those that share them); None: not known on this system
    printed  what it wrote to stdout
    """

    seconds: float
    cpu: float | None
    peak: int | None
    printed: str = ""

    @property
    def reported(self) -> dict[str, Any]:
        """The JSON object in the last line that it printed."""
        text: dict[str, Any] = json.loads(self.printed.splitlines()[-1])
        return text


class Failed(Exception):
    """A command ended with another exit code than wanted; the message shows what it said."""


def adopt_orphans() -> bool:
    """Become the parent of processes whose own has ended. False: this system cannot."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end_on_sigterm() -> None:
    """Let SIGTERM end this process as an error does: what it started and made is removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def measure(
    line: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    accepted: Sequence[int] = (0,),
) -> Cost:
    """Run a command in the folder, to its end and to that of all it started. Raises Failed."""
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
    """(exit code, CPU seconds of the process and of those that it waited for)."""
    if not hasattr(os, "wait4"):
        return process.wait(), 0.0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def _reap() -> float:
    """CPU seconds of the processes that the command left behind, once they have ended."""
    if sys.platform != "linux":
        return 0.0
    cpu = 0.0
    patience = time.monotonic() + PATIENCE
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu
        if pid:
            cpu += usage.ru_utime + usage.ru_stime
            continue
        if time.monotonic() > patience:
            kill_all()
        time.sleep(0.01)


def kill_all() -> None:
    """Kill all processes below this one (Linux)."""
    for pid in below(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The processes that this one has started, or adopted, and not yet waited for (Linux)."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def below(pid: int) -> list[int]:
    """The processes below this one, those of its children among them (Linux)."""
    return [item for child in children(pid) for item in (child, *below(child))]


@dataclass(slots=True)
class _Watch:
    peak: int | None = None


@contextlib.contextmanager
def _watched() -> Iterator[_Watch]:
    """Look at the memory of all processes below this one, in a thread, until the end."""
    watch = _Watch()
    ended = threading.Event()

    def look() -> None:
        pause = INTERVAL / 10
        while True:
            started = time.perf_counter()
            held = [size for pid in below(os.getpid()) if (size := pss(pid)) is not None]
            if held:
                watch.peak = max(watch.peak or 0, sum(held))
            took = time.perf_counter() - started
            if ended.wait(max(pause, SHARE * took)):
                return
            pause = min(pause * 2, INTERVAL)

    thread = threading.Thread(target=look, daemon=True)
    if sys.platform == "linux":
        thread.start()
    try:
        yield watch
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()


def pss(pid: int) -> int | None:
    """The bytes that the process holds, its part of those that it shares; None: not known."""
    try:
        reported = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
    except OSError:
        return None
    found = re.findall(rb"^(?:Pss|SwapPss):\s+(\d+) kB", reported, re.MULTILINE)
    return sum(map(int, found)) * 1024 if found else None


def _text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")
