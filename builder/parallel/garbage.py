"""Sets up the garbage collector for a program that creates many small values and few cycles.

With its defaults it traverses decoded logs over and over, which takes a third of a build's time.
"""

from __future__ import annotations

import gc

from builder.parallel.host import is_own_process


def collect_seldom() -> None:
    """Lets a process create many values before the collector runs."""
    gc.set_threshold(100_000, 20, 100)


def keep_loaded() -> None:
    """Exempts everything imported and loaded so far from collection, in a process of our own."""
    if is_own_process():
        gc.freeze()
