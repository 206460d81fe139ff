"""Preloads workers that convert. Imports little itself: the command line imports it first."""

from __future__ import annotations

from builder.parallel.pool import Preload
from builder.verify import preload as verifying


def preloading(tokenizer: str) -> Preload:
    """Returns the preloading for workers of a build against this tokenizer."""
    return Preload(__name__, "preload", tokenizer)


def preload(tokenizer: str) -> None:
    """Loads what workers need to convert and verify, so that forked workers share it."""
    verifying.preload(tokenizer, _imports)


def _imports() -> None:
    """Imports the readers and their dependencies, which takes each process half a second of CPU."""
    from builder.build import task  # noqa: F401, PLC0415 - heavy
    from builder.readers import readers  # noqa: PLC0415 - heavy

    readers()
