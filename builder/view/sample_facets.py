"""Defines the facets by which the viewer filters samples, and the numbers by which it sorts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from builder.codes import meaning, meaning_of_change
from builder.conversation import LEVEL_MEANINGS, LEVELS, Json
from builder.dataset.rows import DatasetRow
from builder.dataset.store import as_stored, characters, content, messages
from builder.jsonio import dumps
from builder.report.html import shorten
from builder.sample import Sample
from builder.text import number
from builder.view.tally import RowCounts

FACETS = MappingProxyType(
    {
        "review": "Review",
        "split": "Split",
        "form": "Converted from",
        "problem": "No sample because",
        "format": "Format",
        "model": "Model",
        "tool": "Tool called",
        "pattern": "Behaviour",
        "outcome": "Outcome",
        "context": "Context level",
        "length": "Length",
        "code": "Changes",
        "source": "Source",
    }
)
"""{facet: title}; "review" is not indexed, because reviews change."""

NUMBERS = ("length", "turns", "calls", "errors", "id")

SORTS = MappingProxyType(
    {
        "": "the dataset's order",
        "-length": "longest first",
        "length": "shortest first",
        "-turns": "most turns first",
        "turns": "fewest turns first",
        "-calls": "most calls first",
        "calls": "fewest calls first",
        "-errors": "most errors first",
        "errors": "fewest errors first",
        "outcome": "outcome",
        "-outcome": "outcome, from the end",
        "context": "context level",
        "-context": "context level, from the end",
        "source": "source",
        "-source": "source, from the end",
        "model": "model",
        "-model": "model, from the end",
    }
)
"""{order: title}: the name of a number or a facet, descending after a minus."""

_BOUNDS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
_PER_TOKEN = 4
"""Assumed characters of a token, for the bounds of lengths in characters."""


def _names(unit: str, bounds: Sequence[int]) -> tuple[str, ...]:
    between = (f"{number(low)} to {number(high)}" for low, high in pairwise(bounds))
    names = (f"under {number(bounds[0])}", *between, f"{number(bounds[-1])} and more")
    return tuple(f"{name} {unit}" for name in names)


_TOKENS = _names("tokens", _BOUNDS)
_CHARACTERS = _names("characters", [_PER_TOKEN * bound for bound in _BOUNDS])
ORDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"length": (*_TOKENS, *_CHARACTERS), "context": LEVELS}
)
"""{facet: its values in their own order}; values of other facets are ordered by frequency."""

_MEANINGS = {
    "pattern": {
        "direct_answer": "no turn makes a call",
        "single_call": "one turn makes one call",
        "chain": "calls in several turns, with no question between them",
        "parallel": "a turn makes several calls",
        "clarification": "the model asks before its first call",
        "error_recovery": "a call failed, and a later turn makes another",
    },
    "context": LEVEL_MEANINGS,
}
"""{facet: {value: what it means}}."""

_MAX_VALUE = 160
_MAX_VALUES = 200
_MAX_NUMBER = 1 << 62


def sample_values(row: DatasetRow, counts: RowCounts) -> dict[str, list[str]]:
    """Returns {facet: values}, without the facets that have none."""
    meta, changes = row.meta, row.reading.changes if row.foreign else {}
    values = {
        "split": [row.split],
        "form": _texts(row.reading.form) if row.converted is not None else [],
        "problem": _texts(row.reading.code) if row.foreign else [],
        "format": _texts(meta.format),
        "model": [name for name in meta.every_model if name],
        "tool": list(dict.fromkeys(counts.calls))[:_MAX_VALUES],
        "pattern": _texts(meta.pattern),
        "outcome": list(_outcome(meta.outcome or {})),
        "context": _texts(meta.context.level if meta.context else None),
        "length": [_length(row)],
        "code": [*meta.changes, *changes][:_MAX_VALUES],
        "source": _texts(meta.source),
    }
    return {name: [facet_value(value) for value in own] for name, own in values.items() if own}


def facet_meaning(facet: str, value: str) -> str:
    """Returns what a value of a facet means in a few words, or ""."""
    if facet == "code":
        return meaning_of_change(value)
    if facet == "problem":
        return meaning(value)
    return _MEANINGS.get(facet, {}).get(value, "")


@lru_cache(maxsize=4096)
def facet_value(value: str) -> str:
    """Shortens a value for lists and URLs, and replaces lone surrogates."""
    return shorten(value, _MAX_VALUE).encode("utf-8", "replace").decode()


def sample_numbers(row: DatasetRow, counts: RowCounts) -> dict[str, int]:
    """Returns the NUMBERS of a row; the length is in characters if tokens are not known."""
    meta = row.meta
    answers = (message.get("role") == "assistant" for message in messages(content(row)))
    numbers = {
        "length": meta.tokens or characters(row),
        "turns": meta.assistant_turns or sum(answers),
        "calls": meta.calls or len(counts.calls),
        "errors": counts.errors,
    }
    bounded = {name: max(0, min(value, _MAX_NUMBER)) for name, value in numbers.items()}
    return {**bounded, "id": id_digest(sample_id(row))}


def sample_id(row: DatasetRow) -> str:
    """Returns the id in meta/, or else the one that a build would assign."""
    if row.meta.id:
        return row.meta.id
    if isinstance(row.sample, Sample):
        return row.sample.id
    return hashlib.sha256(dumps(as_stored(row)).encode("utf-8", "replace")).hexdigest()


def id_digest(sample: str) -> int:
    """Returns a 64-bit hash of an id, by which the index finds it."""
    data = sample.encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


def _texts(value: str | None) -> list[str]:
    return [value] if value else []


def _length(row: DatasetRow) -> str:
    if row.meta.tokens:
        return _TOKENS[sum(row.meta.tokens >= bound for bound in _BOUNDS)]
    length = characters(row)
    return _CHARACTERS[sum(length >= _PER_TOKEN * bound for bound in _BOUNDS)]


def _outcome(value: Mapping[str, Json]) -> Iterator[str]:
    """Yields `key: value` for the first texts, numbers and booleans of an outcome."""
    for key, item in list(value.items())[:8]:
        if isinstance(item, bool):
            yield f"{key}: {'yes' if item else 'no'}"
        elif isinstance(item, int | float):
            yield f"{key}: {item:.3g}" if isinstance(item, float) else f"{key}: {str(item)[:40]}"
        elif isinstance(item, str) and item:
            yield f"{key}: {item}"
