"""Reads the manifest of a built folder for commands; it is not trusted."""

from __future__ import annotations

from builder.conversation import Json
from builder.paths import expand_home
from builder.problem import UsageError
from builder.qwen3.tokenizer import EMBEDDED
from builder.report.facts import as_object, as_text
from builder.report.report import MANIFEST, read_manifest


def manifest_of(dataset: str) -> dict[str, Json]:
    """Returns the manifest of a built folder; {} for any other dataset."""
    path = expand_home(dataset) / MANIFEST
    try:
        return read_manifest(path.read_bytes())
    except OSError:
        return {}


def tokenizer_of(manifest: dict[str, Json], tokenizer: str | None) -> str:
    """Returns the requested tokenizer, or else the embedded one.

    A manifest may come from anywhere, so no other tokenizer is loaded just because it names it.
    Raises UsageError if the dataset was proven against another one and none is requested.
    """
    named = as_text(as_object(manifest.get("tokenizer")).get("name"))
    if tokenizer is None and named not in ("", EMBEDDED):
        raise UsageError(f"the dataset was proven against {named!r}: name it with --tokenizer")
    return tokenizer or EMBEDDED
