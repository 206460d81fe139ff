"""Handles a resource tracker that the system kills: one line for the user, and no traceback.

Python's `multiprocessing` registers each semaphore with a helper process, the resource tracker, and
starts a new one if it was killed. Results do not depend on it: it only removes semaphores that a
process leaves behind. But the new tracker prints the traceback of a KeyError when it is asked to
unregister a semaphore that was registered with the old one.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Any

MESSAGE = (
    "builder: warning: the system killed a helper process (Python's resource tracker), perhaps for"
    " lack of memory; the run continues with a new one, and its result is not affected"
)

_last: list[int | None] = []
"""The process id of the last known tracker, if any."""


def check_resource_tracker() -> int | None:
    """Returns the process id of the tracker, and starts it if it is not running.

    Prints one line if the last known tracker is gone, instead of Python's warning for developers.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "resource_tracker: process died", UserWarning)
        resource_tracker.ensure_running()
    pid: int | None = getattr(resource_tracker._resource_tracker, "_pid", None)
    if _last and _last[0] not in (None, pid):
        print(MESSAGE, file=sys.stderr)
    _last[:] = [pid]
    return pid


@contextlib.contextmanager
def followed_resource_tracker() -> Iterator[None]:
    """Makes unregistering ignore objects that were registered with a tracker that is gone."""
    register, unregister = resource_tracker.register, resource_tracker.unregister
    trackers: dict[tuple[Any, str], int | None] = {}

    def registered(name: Any, rtype: str) -> None:
        tracker = check_resource_tracker()
        register(name, rtype)
        trackers[name, rtype] = tracker

    def unregistered(name: Any, rtype: str) -> None:
        tracker = check_resource_tracker()
        if trackers.pop((name, rtype), tracker) == tracker:
            unregister(name, rtype)

    _last.clear()
    resource_tracker.register, resource_tracker.unregister = registered, unregistered
    try:
        yield
    finally:
        if resource_tracker.register is registered:
            resource_tracker.register, resource_tracker.unregister = register, unregister
