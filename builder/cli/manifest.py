"""Reads the manifest of a built folder for commands; it is not trusted."""

from __future__ import annotations

from builder.output.manifest import Manifest
from builder.problem import UsageError
from builder.qwen3.reference import EMBEDDED


def tokenizer_of(manifest: Manifest, tokenizer: str | None) -> str:
    """Returns the requested tokenizer, or else the embedded one.

    A manifest may come from anywhere, so no other tokenizer is loaded just because it names it.
    Raises UsageError if the dataset was proven against another one and none is requested.
    """
    named = manifest.tokenizer.name
    if tokenizer is None and named not in ("", EMBEDDED):
        raise UsageError(f"the dataset was proven against {named!r}: name it with --tokenizer")
    return tokenizer or EMBEDDED
