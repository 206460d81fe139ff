"""Limits what a proposal examines of records with many keys, or with long lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from builder.conversation import Json

_KEYS = 300
"""Keys of records, and keys of the objects in their lists: the most frequent ones."""
_ITEMS, _ALL_ITEMS = 2_000, 5_000
"""Objects of a list, and of all lists together."""
_DEPTH = 3
"""How deep lists are looked for in a record."""


def sample_of(rows: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """Returns the first of the rows, without rare keys and the ends of long lists.

    Rows within the limits are returned as they are.
    """
    first: list[dict[str, Json]] = []
    count = 0
    for row in rows:
        if count >= _ALL_ITEMS:
            break
        first.append({key: _cut(value) for key, value in row.items()})
        count += sum(1 for value in row.values() for _ in _items(value))
    rare_of_items = _rare([one for row in first for value in row.values() for one in _items(value)])
    if rare_of_items:
        first = [{key: _without(value, rare_of_items) for key, value in row.items()}
                 for row in first]  # fmt: skip
    rare = _rare(first)
    return [{key: value for key, value in row.items() if key not in rare} for row in first]


def _cut(value: Json, depth: int = _DEPTH) -> Json:
    if isinstance(value, list) and len(value) > _ITEMS:
        return value[:_ITEMS]
    if isinstance(value, dict) and depth:
        return {key: _cut(item, depth - 1) for key, item in value.items()}
    return value


def _items(value: Json, depth: int = _DEPTH) -> Iterator[dict[str, Json]]:
    """Yields the objects that a proposal examines of the lists in a value."""
    if isinstance(value, list):
        yield from (one for one in value[:_ITEMS] if isinstance(one, dict))
    elif isinstance(value, dict) and depth:
        for item in value.values():
            yield from _items(item, depth - 1)


def _without(value: Json, keys: Collection[str], depth: int = _DEPTH) -> Json:
    """Returns a value whose lists have objects without some keys."""
    if isinstance(value, list):
        return [
            {key: item for key, item in one.items() if key not in keys}
            if isinstance(one, dict)
            else one
            for one in value
        ]
    if isinstance(value, dict) and depth:
        return {key: _without(item, keys, depth - 1) for key, item in value.items()}
    return value


def _rare(objects: Sequence[dict[str, Json]]) -> set[str]:
    """Returns the keys of objects that are beyond the limit."""
    counts = Counter(key for one in objects for key in one)
    return {key for key, _ in counts.most_common()[_KEYS:]}
