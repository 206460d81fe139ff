"""Judgements that several readers share: made once of each source."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from builder.sources.source import Source

_T = TypeVar("_T")


def once(judge: Callable[[Source], _T]) -> Callable[[Source], _T]:
    """`judge`, asked once of each source, about what does not change while it is read.

    Kept beside the sources and not in them, so that it is not sent to workers with them.
    """
    known: WeakKeyDictionary[Source, _T] = WeakKeyDictionary()

    @wraps(judge)
    def judged(source: Source) -> _T:
        if source not in known:
            known[source] = judge(source)
        return known[source]

    return judged
