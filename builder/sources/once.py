"""Caches results that several readers share, computed once for each source."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from builder.sources.source import Source

_T = TypeVar("_T")


def once(judge: Callable[[Source], _T]) -> Callable[[Source], _T]:
    """Caches the result of `judge` for each source; it must not depend on what was read.

    The cache is separate from the sources, so that it is not sent to workers with them.
    """
    known: WeakKeyDictionary[Source, _T] = WeakKeyDictionary()

    @wraps(judge)
    def judged(source: Source) -> _T:
        if source not in known:
            known[source] = judge(source)
        return known[source]

    return judged
