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

    A source whose records are inside a list (`Source.unwrap`) has a result of its own.

    The cache is separate from the sources, so that it is not sent to workers with them.
    """
    results: WeakKeyDictionary[Source, dict[bool, _T]] = WeakKeyDictionary()

    @wraps(compute)
    def cached(source: Source) -> _T:
        known = results.setdefault(source, {})
        is_list = source.wrapped is not None
        if is_list not in known:
            known[is_list] = compute(source)
        return known[is_list]

    return cached
