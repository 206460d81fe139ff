"""Starts the fork server for as long as workers need it, and restores what it changes here.

On Linux the server of a command is a fork of the command's own process, as long as that has one
thread: both share what it has imported and loaded. Elsewhere it starts on its own.

Python has one fork server for each program, and it may be the caller's: then it is used as it is,
and stays. One that was started here is ended with the last pool, since the caller's own processes
would otherwise be forked from a server that ignores Ctrl-C and has loaded our tokenizer.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from multiprocessing import forkserver, resource_tracker, spawn, util
from types import TracebackType
from typing import Any

from builder.parallel.host import (
    PRELOAD,
    SERVER,
    die_with_parent,
    environment,
    is_own_process,
    keep_loaded,
    own_process,
    sigint_blocked,
)

_STDERR = 2

_lock = threading.Lock()
_users = 0
_is_ours: list[bool] = []
"""Whether the server that pools here use was started here; [] before the first pool."""


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
    Raises OSError or EOFError if it cannot be started.
    """
    instructions = {
        "load": load,
        "main": _main_module(),
        "driver": os.getpid(),
        # For the kernel, a process loses its parent when the thread that started it ends.
        "dies": threading.current_thread() is threading.main_thread(),
    }
    server = _server()
    with _lock:
        with sigint_blocked():
            resource_tracker.ensure_running()  # unblocks SIGINT when it has started its process
        before = (_pid(server), server._preload_modules)
        image = _image(instructions) if before[0] is None else contextlib.nullcontext()
        multiprocessing.get_context("forkserver").set_forkserver_preload(
            ["builder.parallel.pool", __name__]
        )
        try:
            with sigint_blocked(), environment(**{PRELOAD: json.dumps(instructions)}), image:
                forkserver.ensure_running()
        finally:
            server._preload_modules = before[1]
        if not _is_ours:
            _is_ours.append(_pid(server) != before[0])


def _image(instructions: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
    """Loads what the server loads into this process; returns what makes the server a fork of it.

    Does nothing in a caller's program, or where there are threads that a fork would lack.
    """
    if sys.platform == "linux" and is_own_process() and _is_only_thread():
        _preload(instructions)
        if _is_only_thread():
            return _forking(instructions)
    return contextlib.nullcontext()


def _is_only_thread() -> bool:
    return len(os.listdir("/proc/self/task")) == 1


@contextlib.contextmanager
def _forking(instructions: dict[str, Any]) -> Iterator[None]:
    """Makes `forkserver.ensure_running` fork this process instead of starting another."""

    def fork(_: object, __: object, kept: Sequence[int]) -> int:
        sys.stdout.flush()  # else the workers would print it, too
        sys.stderr.flush()
        if pid := os.fork():
            return pid
        try:
            # What this process has open, such as the other end of the pipe that ends the server.
            for number in map(int, os.listdir("/proc/self/fd")):
                if number > _STDERR and number not in kept:
                    with contextlib.suppress(OSError):
                        os.close(number)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _become_server({**instructions, "load": None})
            serve(*kept, [])
        finally:
            os._exit(0)

    serve: Any = forkserver.main
    library: Any = util
    start, library.spawnv_passfds = library.spawnv_passfds, fork
    try:
        yield
    finally:
        library.spawnv_passfds = start


def _end() -> None:
    """Kills the server if it was started here, and nobody else has processes of it."""
    if not _is_ours or not _is_ours.pop():
        return
    server = _server()
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


# -- does the preloading that a pool requests, in the fork server ----------------------------------


def _report(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Prints an exception of a worker that starts, unless it shows that the driver has ended.

    A driver that is interrupted removes the semaphores that a worker then opens (an error that
    names no file) and closes the pipe that it then reads.
    """
    is_semaphore = isinstance(error, FileNotFoundError) and error.filename is None
    if not (is_semaphore or isinstance(error, EOFError)):
        sys.__excepthook__(kind, error, traceback)


def _preload(instructions: dict[str, Any]) -> None:
    """Loads what workers share; a fault shows when the work itself meets it."""
    if wanted := instructions["load"]:
        with contextlib.suppress(Exception):
            load = getattr(importlib.import_module(wanted["module"]), wanted["function"])
            load(wanted["argument"])
    keep_loaded()


def _become_server(instructions: dict[str, Any]) -> None:
    """Prepares this process as a fork server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the driver handles Ctrl-C
    own_process()
    # There are as many workers as cores, so their libraries need no threads of their own.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    # Called for what a forked worker raises before it begins its work.
    sys.excepthook = _report
    if instructions["dies"]:
        die_with_parent()
    if os.getppid() != instructions["driver"]:
        os._exit(1)  # it ended before `die_with_parent`: no signal will come
    # Workers take the main module for imported, since they need nothing of it: otherwise each would
    # run the user's script again, up to the call that starts workers.
    SERVER[:] = [os.getpid()]
    name, path = instructions["main"]
    if name:
        sys.modules["__main__"].__spec__ = ModuleSpec(name, None)
    if path:
        sys.modules["__main__"].__file__ = path
    _preload(instructions)


if PRELOAD in os.environ:  # elsewhere an import changes nothing
    _become_server(json.loads(os.environ[PRELOAD]))
