"""Restores what a library call changes in the program that made it.

Commands and worker processes are processes of our own: they call `own_process`, and keep what makes
later steps faster or quieter.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

_QUIET = {
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}
"""Environment variables that silence transformers and the Hub client."""

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
