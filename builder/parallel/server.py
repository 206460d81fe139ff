"""Starts the fork server for as long as workers need it, and restores what it changes here.

Python has one fork server for each program, and it may be the caller's: then it is used as it is,
and stays. One that was started here is ended with the last pool, since the caller's own processes
would otherwise be forked from a server that ignores Ctrl-C and has loaded our tokenizer.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker, spawn
from typing import Any

from builder.parallel.host import PRELOAD, environment, is_own_process, sigint_blocked

# -- handles a resource tracker that the system kills ----------------------------------------------

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


_lock = threading.Lock()
_users = 0
_started: contextlib.ExitStack | None = None


@contextlib.contextmanager
def fork_server(load: dict[str, str] | None) -> Iterator[None]:
    """Keeps the fork server running meanwhile; a process of our own keeps it until it ends.

    Raises OSError or EOFError if it cannot be started.
    """
    global _users  # noqa: PLW0603 - the server is one for the whole process
    ensure_running(load)
    with _lock:
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users and not is_own_process():
                _end()


def ensure_running(load: dict[str, str] | None) -> None:
    """Starts the fork server, unless one is running, also one that was killed.

    `load` has the fields of a `builder.parallel.pool.Preload`, what it loads for all workers.
    Raises OSError or EOFError.
    """
    global _started  # noqa: PLW0603 - as above
    instructions = json.dumps(
        {
            "load": load,
            "main": _main_module(),
            "driver": os.getpid(),
            # For the kernel, a process loses its parent when the thread that started it ends.
            "dies": threading.current_thread() is threading.main_thread(),
        }
    )
    server = _server()
    with _lock:
        is_ours = _started is not None
        if not is_ours:
            _started = contextlib.ExitStack()
            _started.enter_context(followed_resource_tracker())
        assert _started is not None
        with sigint_blocked():
            check_resource_tracker()  # unblocks SIGINT after it has started its process
        before = (_pid(server), server._preload_modules)
        multiprocessing.get_context("forkserver").set_forkserver_preload(["builder.parallel.pool"])
        try:
            with sigint_blocked(), environment(**{PRELOAD: instructions}):
                forkserver.ensure_running()
        finally:
            server._preload_modules = before[1]
        if not is_ours and _pid(server) != before[0]:
            _started.callback(_kill, server)


def _end() -> None:
    global _started  # noqa: PLW0603 - as above
    if _started is not None:
        _started.close()
        _started = None


def _kill(server: Any) -> None:
    """Kills the server, unless it has started processes for others that still run."""
    others = multiprocessing.active_children()
    if any(
        getattr(getattr(child, "_popen", None), "method", "") == "forkserver" for child in others
    ):
        return
    pid = _pid(server)
    if pid is not None:
        # Not by closing its pipe alone, which another child of this process may have inherited.
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):  # another part of the program has reaped it
            server._stop()
        server._forkserver_pid = None


def _server() -> Any:
    return forkserver._forkserver  # CPython has no public access


def _pid(server: Any) -> int | None:
    pid: int | None = server._forkserver_pid
    return pid


def _main_module() -> tuple[str | None, str | None]:
    data = spawn.get_preparation_data("")
    return data.get("init_main_from_name"), data.get("init_main_from_path")
