"""Reads the manifest of a built folder for commands; it is not trusted."""

from __future__ import annotations

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.output.folder import MANIFEST
from builder.paths import expand_home
from builder.problem import UsageError
from builder.qwen3.reference import EMBEDDED
from builder.readers.toolkit.narrow import as_dict, as_str


def manifest_of(dataset: str) -> dict[str, Json]:
    """Returns the manifest of a built folder; {} for any other dataset."""
    try:
        return as_dict(loads((expand_home(dataset) / MANIFEST).read_bytes()))
    except (OSError, JsonFault):
        return {}


def tokenizer_of(manifest: dict[str, Json], tokenizer: str | None) -> str:
    """Returns the requested tokenizer, or else the embedded one.

    A manifest may come from anywhere, so no other tokenizer is loaded just because it names it.
    Raises UsageError if the dataset was proven against another one and none is requested.
    """
    named = as_str(as_dict(manifest.get("tokenizer")).get("name"))
    if tokenizer is None and named not in ("", EMBEDDED):
        raise UsageError(f"the dataset was proven against {named!r}: name it with --tokenizer")
    return tokenizer or EMBEDDED
