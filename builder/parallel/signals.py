"""Ends a run in time: signals to the driver, and workers that must not outlive it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache

from builder.parallel import watchdog

PRELOAD = "BUILDER_PRELOAD"
"""The environment variable with the instructions for the fork server, as JSON: what to `load`
(`builder.parallel.pool.Preload`), the pid of the `driver`, and whether the server `dies` with it.
"""

_PR_SET_PDEATHSIG = 1
"""prctl(2): sets the signal that the kernel sends to a process when its parent ends."""


def interrupt_on_sigterm(*, is_watched: bool = True) -> None:
    """Makes SIGTERM end the run like Ctrl-C: finished work is kept, nothing is half-written.

    Python runs signal handlers only between its own instructions, so a long call into a library
    delays them. If `is_watched`, the watchdog then kills the process, also after Ctrl-C. Does
    nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    if is_watched and sys.platform != "win32":
        signal.set_wakeup_fd(_watchdog(os.getpid()), warn_on_full_buffer=False)


@cache
def _watchdog(driver: int) -> int:
    """Starts the watchdog; returns the pipe to which Python writes signal numbers."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # In a session of its own, since Ctrl-C reaches all processes in the terminal's group.
    process = subprocess.Popen(  # noqa: S603 - this interpreter and a script of our own
        [sys.executable, "-I", "-S", watchdog.__file__, str(driver)],
        stdin=reading,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # it ends after this process, which Python would warn of
    os.close(reading)
    return writing


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """Blocks SIGINT in this thread, and for good in the processes that it starts meanwhile.

    Otherwise a helper process would print a traceback if Ctrl-C came before it ignores SIGINT. This
    process receives the signal afterwards.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_with_parent() -> None:
    """Lets the kernel kill this process when its parent ends, on Linux; otherwise does nothing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            import ctypes  # noqa: PLC0415 - only workers need it

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
