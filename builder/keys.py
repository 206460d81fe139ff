"""Declares the keys of JSON objects as the fields of dataclasses: each key once, on one line.

`scripts/docs.py` lists them in docs/output.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Generic, TypeGuard, TypeVar

from builder.conversation import Json

Item = TypeVar("Item")
Value = TypeVar("Value")


def plain(value: Any) -> Json:
    """Returns the value of a key as JSON."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if keys_of(type(value)):
        return write_keys(value)
    return {item.name: plain(getattr(value, item.name)) for item in fields(value)}


@dataclass(frozen=True, slots=True)
class Kind(Generic[Value]):
    """A type of values: its name for people, how one is read from any JSON value, and written."""

    name: str
    read: Callable[[Json], Value]
    write: Callable[[Value], Json] = plain


@dataclass(frozen=True, slots=True)
class Key:
    """A declared key. `optional`: it is not written if it has its default."""

    name: str
    kind: Kind[Any]
    meaning: str
    optional: bool


def key(kind: Kind[Value], meaning: str, *, optional: bool = False) -> Value:
    """Declares a field of a dataclass as the key of that name."""
    metadata = {"kind": kind, "meaning": meaning, "optional": optional}
    return field(default_factory=lambda: kind.read(None), metadata=metadata)


@cache
def _declared(kind: Any) -> tuple[Key, ...]:
    declared = (item for item in fields(kind) if "kind" in item.metadata)
    return tuple(Key(item.name, **item.metadata) for item in declared)


def keys_of(kind: Any) -> tuple[Key, ...]:
    """Returns the declared keys of a dataclass, in order."""
    return _declared(kind)


def read_keys(kind: type[Item], value: Json | Mapping[str, Json]) -> Item:
    """Returns a `kind` from any JSON value."""
    found = value if isinstance(value, Mapping) else {}
    known = (one for one in keys_of(kind) if one.name in found)
    return kind(**{one.name: one.kind.read(found[one.name]) for one in known})


def write_keys(item: object) -> dict[str, Json]:
    """Returns the JSON object of an item with declared keys."""
    written: dict[str, Json] = {}
    for one in keys_of(type(item)):
        value = getattr(item, one.name)
        if not one.optional or value != one.kind.read(None):
            written[one.name] = one.kind.write(value)
    return written


def wrong_keys(item: object, value: Mapping[str, Json]) -> Iterator[str]:
    """Yields the keys of an object whose values are not of the declared type.

    `item` is what was read from the object.
    """
    for one in keys_of(type(item)):
        if one.name in value and one.kind.write(getattr(item, one.name)) != value[one.name]:
            yield one.name


# -- types of values -----------------------------------------------------------------------------


def is_count(value: object) -> TypeGuard[int]:
    """Returns whether it is a whole number, 0 or above."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _counts(value: Json) -> Mapping[str, int]:
    found = value if isinstance(value, dict) else {}
    return {name: count for name, count in found.items() if is_count(count)}


TEXT = Kind("text", lambda value: value if isinstance(value, str) else "")
TEXT_OR_NULL = Kind("text or null", lambda value: value if isinstance(value, str) else None)
COUNT = Kind("number", lambda value: value if is_count(value) else 0)
COUNTS = Kind("number by code", _counts)
OBJECT: Kind[Mapping[str, Json]] = Kind(
    "object", lambda value: value if isinstance(value, dict) else {}
)
OBJECT_OR_NULL: Kind[Mapping[str, Json] | None] = Kind(
    "object or null", lambda value: value if isinstance(value, dict) else None
)


def each(kind: type[Item]) -> Kind[tuple[Item, ...]]:
    """Returns the type of a list of objects with declared keys."""

    def read(value: Json) -> tuple[Item, ...]:
        return tuple(read_keys(kind, item) for item in value) if isinstance(value, list) else ()

    return Kind(f"list of objects: {_names(kind)}", read)


def one(kind: type[Item]) -> Kind[Item]:
    """Returns the type of an object with declared keys."""
    return Kind(f"object: {_names(kind)}", lambda value: read_keys(kind, value))


def _names(kind: type[Any]) -> str:
    return ", ".join(f"`{item.name}`" for item in keys_of(kind))
