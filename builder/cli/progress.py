"""Shows the progress of a build on a terminal: a bar, or a line for phases without a total."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from builder.build.convert import Task
from builder.build.engine import Done
from builder.build.results import ResultSummary
from builder.sources.source import Source

PHASES = ("read", "write", "audit", "report")
"""The phases of a build, in the order in which `builder.build.job` reports them."""

_TITLES = {
    "read": "reading and proving",
    "write": "choosing and writing samples",
    "audit": "auditing, loading again",
    "report": "writing card and report",
}
_AGAIN = "reading again, with the tools of all sessions"
_CERTAIN = 0.1
"""The share of the bytes after which the remaining time is shown: large chunks come first, and do
not count until they are finished.
"""

_RECENT_SECONDS = 5.0
_RECENT_SHARE = 1 / 3
"""The rate is measured over the last third of the time, but at least five seconds."""


class BuildProgress:
    """Shows the phase of a build, its progress, and the remaining time once it can be estimated."""

    def __init__(self, *, visible: bool) -> None:
        self._visible = visible and sys.stderr.isatty()
        self._bar: Any = None
        self._has_read = False

    def read(self, tasks: list[Task]) -> Done:
        """Begins the first phase; returns the callback for finished tasks.

        A build may call it twice: a second pass reads inputs again with the tools of all sessions.
        """
        if not self._visible:
            return lambda _task, _summary: None
        sizes = {id(task): _size(task.source) for task in tasks}
        total = sum(sizes.values())
        self._open("read", total=total, unit="B", unit_scale=True)
        samples = rejects = done = 0
        rate = RecentRate(time.monotonic())

        def step(task: Task, summary: ResultSummary) -> None:
            nonlocal samples, rejects, done
            samples += summary.samples
            rejects += summary.rejects
            done += sizes[id(task)]
            if self._bar is not None:
                left = remaining(done, total, rate.after(done, time.monotonic()))
                counts = f"{samples} samples, {rejects} rejects" + (
                    f", {left} left" if left else ""
                )
                self._bar.set_postfix_str(counts, refresh=False)
                self._bar.update(sizes[id(task)])

        return step

    def phase(self, name: str, total: int | None = None) -> Callable[[int], object]:
        """Begins another phase; returns a callback that takes the number of samples just done."""
        if not self._visible:
            return lambda _: None
        self._open(name, total=total, unit=" samples")
        return self._bar.update  # type: ignore[no-any-return]  # Any: tqdm is imported when needed

    def close(self) -> None:
        """Removes the bar from the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _open(self, name: str, **options: Any) -> None:
        from tqdm import tqdm  # noqa: PLC0415 - only on a terminal

        self.close()
        title = _AGAIN if name == "read" and self._has_read else _TITLES[name]
        self._has_read = True
        title = f"[{PHASES.index(name) + 1}/{len(PHASES)}] {title}"
        known = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
        layout = known if options.get("total") else "{desc} [{elapsed}]"
        self._bar = tqdm(
            desc=title, file=sys.stderr, leave=False, bar_format=layout, mininterval=0.2, **options
        )


class RecentRate:
    """Measures bytes per second over the recent part of a phase.

    A rate over the whole phase would be too low: workers start first, then the largest chunks run.
    """

    def __init__(self, started: float) -> None:
        self._started = started
        self._points = deque([(started, 0)])

    def after(self, done: int, now: float) -> float:
        """Records that `done` bytes are done at `now` (monotonic seconds); returns the rate."""
        self._points.append((now, done))
        recent = now - max(_RECENT_SECONDS, (now - self._started) * _RECENT_SHARE)
        while len(self._points) > 2 and self._points[1][0] <= recent:
            self._points.popleft()
        since, before = self._points[0]
        return (done - before) / (now - since) if now > since else 0.0


def remaining(done: int, total: int, rate: float) -> str:
    """Returns the remaining time, such as `3 min`, or "" if it cannot be estimated yet.

    `rate` is in bytes per second.
    """
    if not total or done < total * _CERTAIN or done >= total or rate <= 0:
        return ""
    left = (total - done) / rate
    return f"{max(round(left), 1)} s" if left < 90 else f"{round(left / 60)} min"


def _size(source: Source) -> int:
    """Returns the stored (compressed) bytes of a source."""
    if source.window is not None:
        return source.window.bytes
    sizes = 0
    for item in source.members or (source,):
        if item.remote is not None:
            sizes += item.remote.size
        with contextlib.suppress(OSError):
            sizes += item.path.stat().st_size if item.path is not None else 0
    return sizes
