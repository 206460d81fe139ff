"""Collects a proposed mapping, and finds paths by the usual names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builder.conversation import Json
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.names import is_usual, rank
from builder.readers.mapping.spec import value_at
from builder.readers.toolkit.unknown_keys import has_words


@dataclass(slots=True)
class Proposal:
    """Collects the section `message`, and what the user has to decide.

    taken  paths from a message that are read already
    apart  paths of the id and the order of a conversation, which link no calls and results
    conversations  their messages
    mixed  a key that holds calls in some messages, and texts in others
    """

    section: dict[str, Any] = field(default_factory=dict)
    decisions: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    apart: Sequence[str] = ()
    conversations: Sequence[Sequence[Json]] = ()
    mixed: str | None = None

    def is_taken(self, path: str) -> bool:
        """Returns whether something is read at a path, or above it."""
        return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in self.taken)


def usual_path(
    rows: Sequence[Json],
    key: str,
    *,
    shared: bool = False,
    whole: bool = False,
    inside: Sequence[str] = (),
) -> str | None:
    """Returns the likeliest path for a key: a usual name that occurs outside the paths `inside`.

    `shared`: with repeated values; `whole`: in all rows. The values of a text are texts or lists.
    """
    objects = [row for row in rows if isinstance(row, dict)]
    paths = dict.fromkeys(path for row in objects for path in key_paths(row) if "[" not in path)
    taken = Proposal(taken=[one for one in inside if one])
    usual = [path for path in paths if is_usual(key, path) and path.count(".") < 3]
    usual = [path for path in usual if not taken.is_taken(path)]
    for path in sorted(usual, key=lambda path: (rank(key, path), path.count("."))):
        values = [value for row in objects if (value := value_at(path, row)) is not None]
        if whole and len(values) < len(objects):
            continue
        if not values or any(isinstance(value, _UNSUITED.get(key, ())) for value in values):
            continue
        if not shared or len({*map(str, values)}) < len(values):
            return path
    return None


_UNSUITED: Mapping[str, tuple[type, ...]] = {
    "text": (dict, bool, int, float), "system": (dict,), "model": (dict, list), "id": (dict, list),
    "stop": (dict, list), "order": (dict, list), "call_id": (dict, list),
    "result_name": (dict, list, int), "prompt": (dict, int),
}  # fmt: skip
"""Types of values that a key does not have."""


def short_texts(items: Sequence[Json]) -> list[str]:
    """Returns the paths of texts of any length."""
    paths = dict.fromkeys(path for item in items for path in key_paths(item))
    return [path for path in paths if any(isinstance(value_at(path, one), str) for one in items)]


def prose_paths(items: Sequence[Json]) -> list[str]:
    """Returns the paths of texts with words, the longest texts first."""
    lengths: Counter[str] = Counter()
    for item in items:
        for path in key_paths(item):
            value = value_at(path, item)
            if isinstance(value, str) and (has_words(value) or is_usual("text", path)):
                lengths[path] += len(value) + 1
    return [path for path, _ in lengths.most_common()]
