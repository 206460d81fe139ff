"""Keeps a restarted resource tracker from printing a traceback.

Python's `multiprocessing` registers each semaphore with a helper process, the resource tracker, and
starts a new one if that was killed. The new tracker prints the traceback of a KeyError when it is
asked to unregister a semaphore that was registered with the old one.
"""

from __future__ import annotations

from functools import cache
from multiprocessing import resource_tracker
from typing import Any


@cache
def follow_resource_tracker() -> None:
    """Makes unregistering skip what was registered with a tracker that is gone."""
    register, unregister = resource_tracker.register, resource_tracker.unregister
    trackers: dict[tuple[Any, str], int | None] = {}

    def current() -> int | None:
        """Returns the process id of the tracker, which is started if it does not run."""
        resource_tracker.ensure_running()
        pid: int | None = getattr(resource_tracker._resource_tracker, "_pid", None)
        return pid

    def registered(name: Any, rtype: str) -> None:
        register(name, rtype)
        trackers[name, rtype] = current()

    def unregistered(name: Any, rtype: str) -> None:
        tracker = current()
        if trackers.pop((name, rtype), tracker) == tracker:
            unregister(name, rtype)

    resource_tracker.register, resource_tracker.unregister = registered, unregistered
