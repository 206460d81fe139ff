"""Computes the identity of a run: a digest of its code, its dependencies and its tokenizer."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

from builder.conversation import Json
from builder.distribution import DISTRIBUTION
from builder.jsonio import dumps
from builder.readers import ENTRY_POINT_GROUP

PACKAGES = (
    *(DISTRIBUTION, "transformers", "tokenizers", "jinja2", "orjson", "jmespath"),
    *("kingfisher-secret-scanner", "phonenumberslite", "python-stdnum", "jsonschema"),
    *("jsonschema-rs", "google-re2", "ahocorasick-rs", "gigatoken", "datasets", "pyarrow"),
    *("pyyaml", "numpy", "pandas", "brotli", "msgpack"),
)
"""The distributions whose version a result depends on, where they are installed."""

OTHER_ROOMS = (
    *("api", "capture", "card", "cli", "config", "export", "output", "push", "report", "trainers"),
    "view",
)
"""The rooms that no result depends on: a change in them keeps finished work.

They come before the tasks or after them. The tests compare them with the imports of the tasks.
"""


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
    """Returns a digest of the modules and data that make results, and of others' readers.

    The embedded tokenizer is not in it: the identity has the digests of its files.
    """
    digest = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for path in result_files(folder):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.value):
        digest.update(f"{entry.value} {entry.dist.version if entry.dist else ''}\n".encode())
    return digest.hexdigest()


def result_files(folder: Path) -> list[Path]:
    """Returns the files of the package in `folder` that results depend on, in order."""
    return [
        path
        for path in sorted(folder.rglob("*.*"))
        if path.is_file()
        and path.suffix != ".pyc"
        and path.parent.name != "assets"
        and path.relative_to(folder).parts[0] not in OTHER_ROOMS
    ]


def job_identity(tokenizer_files: dict[str, str], template: str) -> str:
    """Returns a digest of what a result depends on in addition to its input and its options."""
    python = ".".join(map(str, sys.version_info[:2]))  # its Unicode tables, its `re`
    parts: Json = [python, versions(), code_digest(), dict(tokenizer_files), template]
    return hashlib.sha256(dumps(parts).encode()).hexdigest()
