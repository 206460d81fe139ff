"""Settings of the garbage collector for a program that creates many small values and few cycles.

With its defaults it goes over decoded logs again and again, a third of the time of a build.
"""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Let a process make many values before the collector looks at them."""
    gc.set_threshold(100_000, 20, 100)


def keep_loaded() -> None:
    """What was imported and loaded so far stays: no collection need look at it."""
    gc.freeze()
