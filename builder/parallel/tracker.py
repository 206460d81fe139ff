"""A resource tracker that was killed: its successor is not told of what it has never heard.

Python's `multiprocessing` registers each semaphore with a helper process, the resource tracker, and
starts another one if that was killed. Unregistering at the new one what the old one had makes it
print the traceback of a KeyError.
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
