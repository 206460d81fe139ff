"""What worker processes that verify find loaded; light, for the command line imports it first."""

from __future__ import annotations

from builder.parallel.pool import Preload


def preloading(tokenizer: str) -> Preload:
    """Returns what worker processes that verify against this tokenizer should find loaded."""
    return Preload(__name__, "preload", tokenizer)


def preload(tokenizer: str) -> None:
    """Loads a tokenizer and the libraries of the checks, so that forked workers share them."""
    import jsonschema_rs  # noqa: F401, PLC0415 - used by the checks of arguments

    from builder.qwen3.tokenizer import target_for  # noqa: PLC0415 - heavy

    target_for(tokenizer).prepare()
