"""Predicts what `datasets.load_dataset` would change in a sample, before it is written.

Measured with datasets 4.7 and 5.2 on files with the features that our card declares. Tool
definitions pass through pandas' ujson, which writes ten decimals, reads some short ones as their
neighbours (0.7 as 0.7000000000000001, depending on its version), and supports neither negative zero
nor integers beyond 64 bits. Arrow's JSON reader infers timestamps if all texts of a block look like
one, so a single content that does not makes a sample safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from builder.conversation import Json
from builder.jsonio import dumps
from builder.jsonio import loads as exact
from builder.sample import Sample

_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?\s*(Z|[+-]\d\d(:?\d\d)?)?)?"
)


def loader_fault(sample: Sample) -> str | None:
    """Returns what a loader would change in the sample, or None."""
    for definition in sample.definitions:
        if (fault := _number_fault(definition)) is not None:
            return fault
    if all(_TIMESTAMP.fullmatch(content) for _, content in sample.messages):
        return "every content looks like a date: Arrow reads such a column as timestamps"
    return None


def _numbers(value: Json) -> Iterator[int | float]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield item


def _is_plain(number: int | float) -> bool:
    """Returns whether a number is a small integer, which the loader keeps; 1.0 is one too."""
    if isinstance(number, int):
        return -(2**53) < number < 2**53
    return number.is_integer() and 1 <= abs(number) < 1e9


@lru_cache(maxsize=1024)
def _number_fault(text: str) -> str | None:
    """Returns how the loader changes a number in a definition, or None."""
    if all(map(_is_plain, _numbers(exact(text)))):
        return None
    import pandas  # noqa: PLC0415 - takes half a second

    loads, writes = pandas.io.json.ujson_loads, pandas.io.json.ujson_dumps
    try:
        once = loads(text)
        for loaded in (dumps(once), dumps(loads(writes(once)))):
            if loaded != text:
                return f"a number in a tool definition: the loader makes {_around(text, loaded)}"
    except (ValueError, OverflowError) as error:
        return f"a number in a tool definition: the loader refuses it: {error}"[:200]
    return None


def _around(was: str, now: str) -> str:
    offset = next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), 0)
    return (
        f"{now[max(offset - 20, 0) : offset + 20]!r} of {was[max(offset - 20, 0) : offset + 20]!r}"
    )
