"""Does the preloading that `builder.parallel.pool` requests, when the fork server imports it.

It must leave no thread running, since forked processes would lack it. Failures are ignored here:
the workers meet them again and report them.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
from importlib.machinery import ModuleSpec
from types import TracebackType
from typing import Any

from builder.parallel.garbage import keep_loaded
from builder.parallel.host import own_process
from builder.parallel.signals import PRELOAD, die_with_parent


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
    """Prepares this process as a fork server; raises whatever the preloading raises."""
    if instructions["dies"]:
        die_with_parent()
    if os.getppid() != instructions["driver"]:
        os._exit(1)  # it ended before `die_with_parent`: no signal will come
    # Workers take the main module for imported, since they need nothing of it: otherwise each would
    # run the user's script again, up to the call that starts workers.
    name, path = instructions["main"]
    if name:
        sys.modules["__main__"].__spec__ = ModuleSpec(name, None)
    if path:
        sys.modules["__main__"].__file__ = path
    if wanted := instructions["load"]:
        load = getattr(importlib.import_module(wanted["module"]), wanted["function"])
        load(wanted["argument"])
    keep_loaded()


if PRELOAD in os.environ:  # elsewhere an import changes nothing
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the driver handles Ctrl-C
    own_process()
    # There are as many workers as cores, so their libraries need no threads of their own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    # Called for what a forked worker raises before it begins its work.
    sys.excepthook = _report
    with contextlib.suppress(Exception):
        _preload(json.loads(os.environ[PRELOAD]))
