"""Finds files that belong to a source but stand in other places."""

from __future__ import annotations

import os
from pathlib import Path


def related_path(path: Path, pattern: str) -> Path | None:
    """Returns the file that `pattern` names, relative to the folder of `path`, if there is one.

    Of several matches it is the first by name. A name that cannot be one of a file matches nothing,
    nor does a folder that cannot be listed.
    """
    try:
        if "*" in pattern:
            return min(path.parent.glob(pattern), default=None)
        other = path.parent / pattern
        return other if other.exists() else None
    except (ValueError, OSError):  # a null character, too long a name, a folder that is gone
        return None


def file_status(path: Path | None) -> os.stat_result | None:
    """Returns the state of a file; None if there is none."""
    try:
        return path.stat() if path is not None else None
    except OSError:
        return None
