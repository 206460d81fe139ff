"""Finds paths of roles, calls and tools in a log by the names of keys (names.toml)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any
from unicodedata import combining, normalize

from builder.conversation import Json
from builder.jsonio import dumps, loads_text
from builder.readers.mapping.spec import value_at
from builder.readers.toolkit.narrow import as_dict, as_list, one_or_many
from builder.readers.toolkit.tool_forms import SCHEMAS, by_name, name_of

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LAST = re.compile(r'"((?:[^"\\]|\\.)*)"[\])]*$|([\w-]+)[\])]*$')
"""The last key of a path."""
_SUFFIX = {
    "session": re.compile(r"_(?:id|uid|uuid|key|no|number)$"),
    "order": re.compile(
        r"_(?:id|idx|index|no|num|number|order|ms|ns|us|utc|unix)$|^(?:message|msg|event)_"
    ),
}
"""Endings and beginnings of names that say nothing of what they name."""
_UNKNOWN = 999


def questions() -> Mapping[str, str]:
    """Returns the questions about what is counted in conversations, by what is counted."""
    return _names_file()["questions"]


@cache
def _names_file() -> dict[str, dict[str, str]]:
    return tomllib.loads((files(__package__) / "names.toml").read_text("utf-8"))


@cache
def _table(section: str) -> Mapping[str, Mapping[str, int]]:
    return {key: {snake(name): at for at, name in reversed([*enumerate(names.split())])}
            for key, names in _names_file()[section].items()}  # fmt: skip


@lru_cache(4096)
def snake(name: str) -> str:
    """Returns a name in snake case, without accents: `toolCallId` as `tool_call_id`."""
    if not name.isascii():
        name = "".join(one for one in normalize("NFKD", name) if not combining(one))
    return re.sub(r"[\W_]+", "_", _HUMP.sub("_", name.strip()).lower()).strip("_")


def last_key(path: str) -> str:
    """Returns the last key of a path, as in the log."""
    found = _LAST.search(path)
    return path if found is None else (found[1] or found[2] or "").replace('\\"', '"')


def rank(key: str, path: str) -> int:
    """Returns the position of a path's last key among the usual names; 999 if it is none."""
    names, name = _table("keys")[key], snake(last_key(path))
    if key in _SUFFIX and name not in names:
        name = _SUFFIX[key].sub("", name) or name
    return names.get(name, _UNKNOWN)


def is_usual(key: str, path: str) -> bool:
    """Returns whether a path's last key is a usual name for the key."""
    return rank(key, path) < _UNKNOWN


def has_word(kind: str, path: str) -> bool:
    """Returns whether a word of a path's last key, or all of it, is one of a kind."""
    name = snake(last_key(path))
    return not _table("words")[kind].keys().isdisjoint((name, *name.split("_")))


@lru_cache(4096)
def meaning(value: str) -> str:
    """Returns the role that a value usually means, or "" if it is unknown.

    Of a name of several words, those of tools decide before those of a person or a model:
    `tool_end` and `system_result` are results, `tool_start` is a call.
    """
    roles, words = _table("roles"), _table("words")
    name = snake(value)
    for role, names in roles.items():
        if name in names:
            return role
    parts = {*name.split("_")}
    if parts & words["tools"].keys():
        if parts & words["ends"].keys():
            return "tool"
        if parts & words["starts"].keys():
            return "call"
        if parts <= words["tools"].keys() | {"message", "msg"}:
            return "tool"
    if parts & roles["system"].keys():
        if parts & {"result", "results", "output", "observation", "return"}:
            return "tool"
        return "system" if parts <= roles["system"].keys() | words["asked"].keys() else ""
    if parts & {"called", "calls"}:
        return "call"
    for role, spoken in (("user", "asked"), ("assistant", "answered")):
        own = parts & roles[role].keys()
        if own and parts <= own | words[spoken].keys():
            return role
    if "observation" in parts or name.endswith(("result", "results")):
        return "tool"
    return "thought" if parts & roles["thought"].keys() else ""


_KEYS, _PATHS = 300, 1_000
"""Keys of an object, and of all objects, that are examined."""
_TOOL = re.compile(r"[^\W\d][\w.:/-]{0,63}")
"""A name of a tool: an identifier, or several that are joined."""

Columns = dict[str, list[Any]]
"""The values at each path of some objects, without those that are null or empty."""


def part(key: str) -> str:
    """Returns a key as a part of a path: quoted, if it is not an identifier."""
    if key.isidentifier() and key.isascii():
        return key
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def columns(items: Iterable[Json], depth: int = 2) -> Columns:
    """Returns the columns of objects, and of the objects in them.

    JSON text of an object or a list is a column, and so is its value, under `json(path)`.
    """
    found: Columns = {}
    for item in items:
        _add(as_dict(item), "", depth, found)
    return found


def _add(value: dict[str, Json], before: str, depth: int, found: Columns) -> None:
    if all(
        isinstance(one, dict | list) and any(map(str.isdigit, key)) for key, one in value.items()
    ):
        return  # objects by their ids
    for key, item in islice(value.items(), _KEYS):
        if item in (None, "", []) or (item == {} and not is_usual("arguments", key)):
            continue
        if has_word("worse", key) and not isinstance(item, bool | int | float):
            continue  # the answer of a pair that is not to be given
        path = before + part(key)
        if len(found) >= _PATHS and path not in found:
            continue
        found.setdefault(path, []).append(item)
        inner = loads_text(item) if isinstance(item, str) and item[:1] in "[{" else item
        if inner is not item and not isinstance(inner, str):
            path = f"json({path})"
            found.setdefault(path, []).append(inner)
        if isinstance(inner, dict) and depth:
            _add(inner, f"{path}.", depth - 1, found)


def ranked(found: Iterable[str], key: str) -> list[str]:
    """Returns paths, the likeliest for a key first."""
    return sorted(found, key=lambda path: (rank(key, path), path.count(".")))


def pick(
    found: Mapping[str, Sequence[Json]],
    key: str,
    types: type | tuple[type, ...] = str,
    *,
    without: Collection[str] = (),
) -> str | None:
    """Returns the path with the likeliest usual name for a key, whose values have a type.

    `without`: paths that are read already, with all that is inside them. Decoded text is no text.
    """
    usual = [
        path
        for path, values in found.items()
        if is_usual(key, path)
        and not is_inside(path, without)
        and all(isinstance(one, types) for one in values)
    ]
    return next(iter(ranked(usual, key)), None)


def is_inside(path: str, places: Collection[str]) -> bool:
    """Returns whether a path is one of some places, or leads into one."""
    plain = path.replace("json(", "").replace(")", "")
    read = [one.replace("json(", "").replace(")", "") for one in places]
    return any(plain == one or plain.startswith((f"{one}.", f"{one}[")) for one in read)


def plain(value: Json) -> str:
    """Returns a value of a role as `roles` names it."""
    if isinstance(value, str):
        return value
    return dumps(value) if isinstance(value, bool | int) else ""


@dataclass(frozen=True, slots=True)
class Calls:
    """Where calls stand: the path from a message to them (None: it is itself one), and their parts.

    items  the calls that were found
    """

    path: str | None
    name: str
    arguments: str
    items: Sequence[Json]


def find_calls(messages: Sequence[Json], without: Collection[str] = ()) -> Calls | None:
    """Returns the likeliest place of calls in messages: objects with a usual name and arguments.

    A message may be a call itself, or have its parts beside its own. `without` are paths of what
    is no call.
    """
    best: list[tuple[Any, Calls]] = []
    for path, values in columns(messages).items():
        items = [one for value in values for one in one_or_many(value)]
        if is_inside(path, without) or has_word("results", path) or not is_call(items):
            continue
        if path.endswith(")") and path.count("(") == 1:
            path = path[5:-1]  # noqa: PLW2901 - a list of calls is decoded when it is read
        place = (not is_usual("calls", path), rank("calls", path), path.count("."))
        best.append((place, Calls(path, *next(_call_paths(items)), items)))
    for name, arguments in _call_paths(messages, without):
        having = [one for one in messages if value_at(name, one) and
                  value_at(arguments, one) is not None]  # fmt: skip
        is_each = len(having) == len(messages)
        is_nested = not is_each and "." in name
        own = None if is_each else f"[@][?{name} && {arguments} != null]"
        place = (is_nested, 1_000 if is_nested else -1, 0)
        best += [(place, Calls(own, name, arguments, having))] if having else []
    return min(best, key=lambda one: one[0], default=(None, None))[1]


def _call_paths(items: Sequence[Json], without: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yields the paths of the name of a tool, and of the arguments beside it, the likeliest first.

    A name in the arguments of a call is none.
    """
    found = columns(items, 1)
    for name in sorted(found, key=lambda path: (path.count("."), rank("call_name", path))):
        before = name.rpartition(".")[0]
        beside = {path: values for path, values in found.items()
                  if path.rpartition(".")[0] == before and path != name}  # fmt: skip
        arguments = pick(beside, "arguments", (dict, str), without=without)
        is_argument = is_usual("arguments", before or "-") and not is_usual("text", before)
        is_name = is_usual("call_name", name) and all(
            isinstance(one, str) and _TOOL.fullmatch(one) for one in found[name]
        )
        if is_name and arguments is not None and not is_argument and not is_inside(name, without):
            yield name, arguments


def is_call(value: Json) -> bool:
    """Returns whether a value is like calls: objects with a usual name and arguments."""
    items = one_or_many(value)
    if not items or not all(isinstance(one, dict) for one in items) or definitions(items):
        return False
    name = next((path for path, _ in _call_paths(items)), None)
    return name is not None and all(value_at(name, one) for one in items)


def definitions(value: Json) -> list[Json]:
    """Returns the definitions of tools that a value is, in a list or by name; else []."""
    value = by_name(loads_text(value))
    items = [as_dict(as_dict(one).get("function", one)) for one in as_list(value)]
    return as_list(value) if all(name_of(one) and _has_schema(one) for one in items) else []


def _has_schema(item: dict[str, Json]) -> bool:
    if not item.keys().isdisjoint(("description", "desc", "tool_description")):
        return item.keys().isdisjoint(("id", "call_id", "tool_call_id"))
    schemas = [as_dict(loads_text(item[key])) for key in SCHEMAS if key in item]
    return any("properties" in one or "type" in one for one in schemas)


def find_tools(rows: Sequence[Json]) -> str | None:
    """Returns the path of the definitions of tools in rows, those of the most tools."""
    counts = {
        path: sum(len(definitions(value)) for value in values)
        for path, values in columns(rows).items()
        if not path.startswith("json(") or not path.endswith(")")
    }
    best = max(counts, key=lambda path: (counts[path], -path.count(".")), default=None)
    return best if best is not None and counts[best] else None


def link(
    calls: Sequence[Sequence[Json]], results: Sequence[Sequence[Json]], without: Collection[str]
) -> tuple[str, str] | None:
    """Returns the paths of the ids, in calls and in results, that link these.

    Both are listed by conversation. Each result has the id of a call of its conversation; ids
    without a usual name are unique in it. `without` are paths that hold no ids.
    """
    best = []
    for first, ids in _ids(calls, without):
        for second, refs in _ids(results, without):
            several = len({one for group in refs for one in group}) > 1
            is_known = is_usual("result_id", second) or (several and is_usual("call_id", first))
            if not is_known and (last_key(first) != last_key(second) or not first.endswith("id")):
                continue
            # What is one value in a whole conversation, such as its own name, is no id.
            is_shared = any(len(one) > 1 and len({*one}) == 1 for one in ids)
            if not is_shared and all({*ref} <= {*one} for one, ref in zip(ids, refs, strict=True)):
                best.append((rank("call_id", first) + rank("result_id", second), first, second))
    return min(best)[1:] if best else None


def _ids(
    groups: Sequence[Sequence[Json]], without: Collection[str]
) -> Iterator[tuple[str, list[list[str]]]]:
    """Yields the paths of texts and whole numbers, and their values in each conversation."""
    for path, values in columns((one for group in groups for one in group), 1).items():
        is_id = all(isinstance(one, str | int) and not isinstance(one, bool) for one in values)
        if is_id and not is_inside(path, without):
            found = ([value_at(path, one) for one in group] for group in groups)
            yield path, [[str(one) for one in ids if one not in (None, "")] for ids in found]
