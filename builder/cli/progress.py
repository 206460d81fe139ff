"""Shows the progress of a build on a terminal: a bar, or a line for phases without a total."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any

from builder.api import Progress

_PHASES = ("read", "write", "audit", "report")
"""The phases of a build, in the order in which `builder.build.job` reports them."""

_TITLES = {
    "read": "reading and verifying",
    "write": "choosing and writing samples",
    "audit": "auditing, loading again",
    "report": "writing card and report",
}
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
        self._last = Progress("", 0)
        self._rate = RecentRate(time.monotonic())

    def __call__(self, progress: Progress) -> None:
        """Shows a step of the build."""
        if not self._visible:
            return
        if progress.phase != self._last.phase:
            self._open(progress)
        last, self._last = self._last, progress
        same = last.phase == progress.phase
        if progress.phase != "read":
            self._bar.update(progress.done - (last.done if same else 0))
            return
        done, total = progress.bytes, progress.total_bytes
        left = remaining(done, total, self._rate.after(done, time.monotonic()))
        counts = f"{progress.samples} samples, {progress.rejects} rejects"
        self._bar.set_postfix_str(counts + (f", {left} left" if left else ""), refresh=False)
        self._bar.update(done - (last.bytes if same else 0))

    def close(self) -> None:
        """Removes the bar from the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _open(self, progress: Progress) -> None:
        from tqdm import tqdm  # noqa: PLC0415 - only on a terminal

        self.close()
        name = progress.phase
        is_reading = name == "read"
        total = progress.total_bytes if is_reading else progress.total
        if is_reading:
            self._rate = RecentRate(time.monotonic())
        title = f"[{_PHASES.index(name) + 1}/{len(_PHASES)}] {_TITLES[name]}"
        known = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
        layout = known if total else "{desc} [{elapsed}]"
        self._bar = tqdm(
            desc=title,
            total=total,
            file=sys.stderr,
            leave=False,
            bar_format=layout,
            mininterval=0.2,
            unit="B" if is_reading else " samples",
            unit_scale=is_reading,
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
