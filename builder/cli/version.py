"""Implements `builder --version`."""

from __future__ import annotations

import sys
from importlib import metadata

DISTRIBUTION = "toolcall-dataset-builder"


def print_version() -> None:
    """Prints the version, and on standard error whether another distribution conflicts."""
    print(f"{DISTRIBUTION} {_version()}")
    for name in others():
        print(
            f"builder: the distribution {name!r} installs a module `builder` too, so that one hides"
            " the other: use an environment of its own for each",
            file=sys.stderr,
        )


def _version() -> str:
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def others() -> list[str]:
    """Returns the other installed distributions that have a top-level module `builder`."""
    found = metadata.packages_distributions().get("builder", [])
    return sorted({name for name in found if name.replace("_", "-") != DISTRIBUTION})
