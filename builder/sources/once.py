"""Caches results that several readers need of a source."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from builder.sources.source import Source

_T = TypeVar("_T")


def once(compute: Callable[[Source], _T]) -> Callable[[Source], _T]:
    """Caches the result of `compute` for each source; it must not depend on what was read.

    The cache is separate from the sources, so that it is not sent to workers with them.
    """
    results: WeakKeyDictionary[Source, _T] = WeakKeyDictionary()

    @wraps(compute)
    def cached(source: Source) -> _T:
        if source not in results:
            results[source] = compute(source)
        return results[source]

    return cached
