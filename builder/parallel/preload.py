"""Does the preloading that `builder.parallel.pool` requests, when the fork server imports it.

No thread may remain here, because a fork would lose it. Failures are left to the workers, which
report them.
"""

import contextlib
import importlib
import json
import os
import signal

from builder.parallel.garbage import keep_loaded
from builder.parallel.signals import PRELOAD, die_with_parent

signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the driver handles Ctrl-C
# There are as many workers as cores: their libraries need no threads of their own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

with contextlib.suppress(Exception):
    instructions = json.loads(os.environ[PRELOAD])
    if instructions["dies"]:
        die_with_parent()
    if os.getppid() != instructions["driver"]:
        os._exit(1)  # it ended before the kernel was asked: no signal will come
    if wanted := instructions["load"]:
        load = getattr(importlib.import_module(wanted["module"]), wanted["function"])
        load(wanted["argument"])
    keep_loaded()
