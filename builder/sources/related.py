"""Finds files that belong to a source but stand in other places."""

from __future__ import annotations

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


def file_version(path: Path | None) -> tuple[int, int] | None:
    """Returns (bytes, modification time in ns) of a file, which change with it; None without."""
    try:
        status = path.stat() if path is not None else None
    except OSError:
        return None
    return None if status is None else (status.st_size, status.st_mtime_ns)
