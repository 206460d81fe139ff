"""Defines the facets by which the viewer filters samples, and the numbers by which it sorts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from builder.audit.failures import ERROR, is_error
from builder.codes import meaning, meaning_of_change
from builder.conversation import LEVEL_MEANINGS, LEVELS, Json
from builder.dataset.rows import DatasetRow
from builder.dataset.store import as_stored, characters, content, messages
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.render import RESPONSE_CLOSE, RESPONSE_OPEN
from builder.readers.toolkit.narrow import as_str
from builder.sample import Sample
from builder.text import number, shorten

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


# -- what a row contains ---------------------------------------------------------------------------

_CALL = re.compile(r'<tool_call>\s*(?:\{"name": ("(?:[^"\\]|\\.)*")|<function=([^<>\n]{1,400})>)')


@dataclass(slots=True)
class RowCounts:
    """The assistant turns of a row, the names of the called tools, and how many calls failed."""

    turns: int = 0
    calls: list[str] = field(default_factory=list)
    errors: int = 0


def row_counts(row: DatasetRow) -> RowCounts:
    """Counts a row, whatever it contains."""
    logged = row.failed_calls
    counts = RowCounts(errors=sum(failure == ERROR for failure in (logged or {}).values()))
    for message in messages(content(row)):
        role, written = message.get("role"), as_str(message.get("content"))
        if role == "assistant":
            counts.turns += 1
            counts.calls += _calls(written) if "<tool_call>" in written else ()
        elif role == "tool" or (role == "user" and written.startswith(RESPONSE_OPEN)):
            counts.errors += sum(map(is_error, _responses(written) if logged is None else ()))
    return counts


def _calls(written: str) -> Iterator[str]:
    for match in _CALL.finditer(written):
        if match[2]:
            yield match[2]
            continue
        try:
            yield as_str(loads(match[1].encode("utf-8", "surrogatepass")))
        except JsonFault:
            continue


def _responses(written: str) -> list[str]:
    if not written.startswith(RESPONSE_OPEN):
        return [written]
    pieces = written.split(RESPONSE_OPEN)[1:]
    return [piece.rpartition(RESPONSE_CLOSE)[0].strip("\n") for piece in pieces]
