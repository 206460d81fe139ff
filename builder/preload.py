"""What the server of worker processes loads before it forks them (`builder.pool`).

Nothing here may leave a thread behind: a fork would lose it. What fails is left to the workers,
who say why.
"""

import contextlib
import os
import signal

from builder.pool import PRELOADED

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's affair
# Workers are as many as cores: their libraries need no threads of their own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

with contextlib.suppress(Exception):
    import jsonschema  # noqa: F401 - used by the checks of arguments

    from builder.memory import keep_loaded
    from builder.work import target_for

    if os.environ[PRELOADED]:
        target_for(os.environ[PRELOADED]).prepare()
    keep_loaded()
