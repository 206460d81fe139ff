"""Restores what a library call changes in the program that made it.

Commands and worker processes are processes of our own: they call `own_process`, and keep what makes
later steps faster or quieter.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache

_QUIET = {
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Environment variables that silence transformers and the Hub client, and avoid threads."""

_AT_USE = ("TRANSFORMERS_NO_ADVISORY_WARNINGS", "TOKENIZERS_PARALLELISM")
"""Those that libraries read when they work, and not once for all when they are imported."""

_owned: list[bool] = []


def own_process() -> None:
    """Declares this process one of our own, and silences the libraries in it."""
    _owned.append(True)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)


def is_own_process() -> bool:
    """Returns whether this process runs a command or is a worker, and not a caller's program."""
    return bool(_owned)


@contextlib.contextmanager
def environment(**values: str) -> Iterator[None]:
    """Sets environment variables and restores them afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def quiet_transformers() -> contextlib.AbstractContextManager[None]:
    """Silences advice of transformers meanwhile, where the user has not set it otherwise."""
    return environment(**{name: _QUIET[name] for name in _AT_USE if name not in os.environ})


@contextlib.contextmanager
def quiet_datasets() -> Iterator[None]:
    """Hides the progress bars and log messages of `datasets` meanwhile."""
    import datasets  # noqa: PLC0415 - two seconds of import

    log = datasets.utils.logging
    level, has_bars = log.get_verbosity(), not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    log.set_verbosity(log.CRITICAL)
    try:
        yield
    finally:
        log.set_verbosity(level)
        if has_bars:
            datasets.enable_progress_bars()


@contextlib.contextmanager
def quiet_logger(name: str) -> Iterator[None]:
    """Hides the messages of a logger meanwhile, but for critical ones."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


# -- sets up the garbage collector for a program that creates many small values and few cycles -----


def collect_seldom() -> None:
    """Lets a process create many values before the collector runs."""
    gc.set_threshold(100_000, 20, 100)


def keep_loaded() -> None:
    """Exempts everything imported and loaded so far from collection, in a process of our own."""
    if is_own_process():
        gc.freeze()


# -- kills a process that received SIGTERM or SIGINT and has not ended in time ---------------------

_GRACE_SECONDS = 1.5
_SIGNALS = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}
MESSAGE = "builder: {}; finished work is kept, the same command resumes\n"


def main() -> None:
    """Waits for a signal, then for the end of the process; kills it after _GRACE_SECONDS."""
    driver = int(sys.argv[1])
    while data := os.read(0, 64):
        received = next((name for number, name in _SIGNALS.items() if number in data), None)
        if received is None:
            continue
        end = time.monotonic() + _GRACE_SECONDS
        while select.select([0], [], [], max(end - time.monotonic(), 0))[0]:
            if not os.read(0, 64):
                return
        os.kill(driver, signal.SIGKILL)
        sys.stderr.write(MESSAGE.format(received))
        return


if __name__ == "__main__":
    main()


# -- ends a run in time: signals to the driver, and workers that must not outlive it ---------------

PRELOAD = "BUILDER_PRELOAD"
"""The environment variable with the instructions for the fork server, as JSON: what to `load`
(`builder.parallel.pool.Preload`), the pid of the `driver`, and whether the server `dies` with it.
"""

SERVER: list[int] = []
"""The process id of the fork server, in it and in its workers."""

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
        [sys.executable, "-I", "-S", __file__, str(driver)],
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
