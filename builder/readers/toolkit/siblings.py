"""Reads what a session needs from the file of another session in the same folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, cast

from builder.sources.source import Source

T = TypeVar("T")

_SESSIONS = 32
"""Number of other sessions to remember: one may have hundreds of sub-agents or forks."""


def from_sibling(source: Source, name: str, extract: Callable[[Source], T]) -> T | None:
    """Returns what `extract` finds in the file `name` next to the source; None without the file.

    The result is remembered until the file changes: `extract` must be a function of a module, or
    a value that is equal for equal results.
    """
    return _from(source.sibling(name) if name else None, extract)


def from_related(source: Source, pattern: str, extract: Callable[[Source], T]) -> T | None:
    """Returns what `extract` finds in the first file that a pattern matches (`Source.related`).

    The result is remembered as in `from_sibling`.
    """
    return _from(source.related(pattern), extract)


def _from(other: Source | None, extract: Callable[[Source], T]) -> T | None:
    if other is None or other.path is None:
        return None
    try:
        changed = other.path.stat().st_mtime_ns
    except OSError:
        return None
    return cast("T", _extracted(extract, other.path, other.max_record_bytes, changed))


@lru_cache(maxsize=_SESSIONS)
def _extracted(
    extract: Callable[[Source], object], path: Path, max_record_bytes: int, changed: int
) -> object:
    return extract(Source(path.name, path, max_record_bytes=max_record_bytes))
