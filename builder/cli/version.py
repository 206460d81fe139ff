"""Implements `builder --version`."""

from __future__ import annotations

from importlib import metadata

from builder.cli.terminal import warn
from builder.distribution import DISTRIBUTION


def print_version() -> None:
    """Prints the version, and on standard error each conflicting distribution."""
    print(f"{DISTRIBUTION} {_version()}")
    for name in others():
        warn(
            f"the distribution {name!r} also installs a module `builder`, and one hides the other:"
            " install each in an environment of its own"
        )


def _version() -> str:
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def others() -> list[str]:
    """Returns other installed distributions with a top-level module `builder`."""
    distributions = metadata.packages_distributions().get("builder", [])
    return sorted({name for name in distributions if name.replace("_", "-") != DISTRIBUTION})
