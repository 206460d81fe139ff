"""Finds and removes the nulls that rows of JSON have from a table.

In Arrow all structs of a column have the same keys, and null where a row has no value. A file of
JSON that was written from a table has them too. Nulls of parents stay, for they mark roots, and so
do those in arguments of calls: a tool's schema may require them (builder.normalize.padding).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from builder.conversation import Json

_ROWS = 24
"""Rows that are looked at: Arrow pads all rows of a file alike."""
_LEAST = 4
"""Keys of rows that must be null in some of them: requests without an answer have two or three."""
_OBJECTS = 4000
"""Objects of a column that are looked at."""

ROW = ""
"""Stands for the rows themselves among their keys."""

_NAMES = ("name", "tool", "tool_name", "toolName", "function_name")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "params", "kwargs")


@dataclass(frozen=True, slots=True)
class Padding:
    """Where rows have the nulls of a table.

    columns  keys of the rows whose values have them; ROW among them stands for the rows themselves
    calls    the arguments of calls have them too: several tools share their keys
    """

    columns: frozenset[str] = frozenset()
    calls: bool = False


def padding_of(rows: Sequence[Json]) -> Padding:
    """Returns where the rows have the nulls of Arrow's structs.

    In the value of a padded column, all objects at the same place have the same keys, in the same
    order, and a key is null in one and not in another. Of the rows' own keys, most must be so.
    """
    objects = [row for row in rows[:_ROWS] if isinstance(row, dict)]
    if not objects or any(row.keys() != objects[0].keys() for row in objects):
        return Padding()
    columns = {key: [row[key] for row in objects] for key in objects[0]}
    found = {key: structs for key, values in columns.items() if (structs := _structs(values))}
    padded = frozenset(key for key, structs in found.items() if any(map(_varies, structs.values())))
    partly = sum(0 < values.count(None) < len(values) for values in columns.values())
    calls = any(
        _varies(struct) and len(struct.names) > 1
        for key in padded
        for struct in found[key].values()
    )
    return Padding(padded | {ROW} if partly >= max(_LEAST, len(columns) / 2) else padded, calls)


def without_padding(row: Json, columns: Collection[str]) -> Json:
    """Returns a row, or a list of rows, without its own nulls and those of the columns.

    Without columns it is returned as it is.
    """
    if columns and isinstance(row, list):
        return [without_padding(item, columns) for item in row]
    if not columns or not isinstance(row, dict):
        return row
    return {
        key: without_nulls(item) if key in columns else item
        for key, item in row.items()
        if item is not None or _is_parent(key)
    }


def without_nulls(value: Json) -> Json:
    """Returns a value without the nulls of its objects, except those in arguments of calls."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = arguments_of(value)
    return {
        key: item if key in kept else without_nulls(item)
        for key, item in value.items()
        if item is not None or _is_parent(key)
    }


def arguments_of(value: Mapping[str, Json]) -> tuple[str, ...]:
    """Returns the keys that hold arguments, if an object is a call and no definition of a tool."""
    if value.get("description") is not None:
        return ()
    keys = tuple(key for key in _ARGUMENTS if isinstance(value.get(key), dict))
    return keys if keys and any(isinstance(value.get(name), str) for name in _NAMES) else ()


def _is_parent(key: str) -> bool:
    """Returns whether a key names the node above: a null says that there is none."""
    return key.lower().startswith("parent")


@dataclass(slots=True)
class _Struct:
    """What the objects at one place have: keys, those null and not null, names of their tools."""

    keys: list[str]
    nulls: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def _varies(struct: _Struct) -> bool:
    return not struct.nulls.isdisjoint(struct.values)


def _structs(values: Sequence[Json]) -> dict[tuple[str, ...], _Struct]:
    """Returns the structs below the values by place; {} if objects at one place differ in keys."""
    structs: dict[tuple[str, ...], _Struct] = {}
    names: dict[tuple[str, ...], set[str]] = {}
    for path, value in islice(_objects(values), _OBJECTS):
        keys = list(value)
        struct = structs.setdefault(path, _Struct(keys))
        if struct.keys != keys:
            return {}
        for key, item in value.items():
            (struct.nulls if item is None else struct.values).add(key)
        for key in arguments_of(value):
            tools = names.setdefault((*path, key), set())
            tools.update(name for field in _NAMES if isinstance(name := value.get(field), str))
    for path, tools in names.items():
        if path in structs:
            structs[path].names = tools
    return structs


def _objects(
    values: Sequence[Json], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Json]]]:
    """Yields (keys that lead to it, object) of the objects in lists and objects."""
    for value in values:
        if isinstance(value, dict):
            yield path, value
            for key, item in value.items():
                if isinstance(item, dict | list):
                    yield from _objects([item], (*path, key))
        elif isinstance(value, list):
            yield from _objects(value, (*path, "[]"))
