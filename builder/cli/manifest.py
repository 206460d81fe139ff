"""Reads what commands need from the manifest of a built folder, which is not trusted."""

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
    """Returns the requested tokenizer, or the embedded one if the dataset was proven against it.

    A manifest may come from anywhere, so another tokenizer that it names is never loaded without
    being requested; UsageError is raised instead.
    """
    named = as_text(as_object(manifest.get("tokenizer")).get("name"))
    if tokenizer is None and named not in ("", EMBEDDED):
        raise UsageError(f"the dataset was proven against {named!r}: name it with --tokenizer")
    return tokenizer or EMBEDDED
