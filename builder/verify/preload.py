"""Preloads workers that verify. Imports little itself: the command line imports it first."""

from __future__ import annotations

from builder.parallel.pool import Preload


def preloading(tokenizer: str) -> Preload:
    """Returns the preloading for workers that verify against this tokenizer."""
    return Preload(__name__, "preload", tokenizer)


def preload(tokenizer: str) -> None:
    """Loads a tokenizer and the libraries of the checks, so that forked workers share them."""
    import jsonschema_rs  # noqa: F401, PLC0415 - used by the checks of arguments

    from builder.qwen3.tokenizer import target_for  # noqa: PLC0415 - heavy

    target_for(tokenizer).prepare()
