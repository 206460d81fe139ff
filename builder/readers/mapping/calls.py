"""Finds calls, their results and definitions of tools in messages, by names and by structure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from builder.conversation import Json
from builder.jsonio import loads_text
from builder.readers.mapping.names import is_usual, meaning, rank
from builder.readers.mapping.spec import value_at
from builder.readers.toolkit.narrow import as_dict
from builder.readers.toolkit.tool_forms import is_type_name, name_of
from builder.readers.toolkit.unknown_keys import has_words

_TOOL = re.compile(r"[^\W\d][\w.:/-]{0,63}")
"""A name of a tool: an identifier, or several that are joined."""
_KINDS = ("type", "kind", "role", "status", "state", "id", "model", "level", "source", "from")
"""Keys whose values are identifiers, but name no tool."""
_DEPTH = 3
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "schema", "args_schema")
_PARAMETERS = ("params", "args", "arguments", "inputs")
"""Keys of the parameters of a definition, and of the arguments of a call."""
_DESCRIPTIONS = frozenset({"description", "desc", "tool_description"})

_KEYED, _NONE = 3, 0
"""Ranks of the evidence for a shape: from names that the log defines, to structure alone."""


@dataclass(frozen=True, slots=True)
class CallShape:
    """Where calls stand.

    path  from a message to its calls; None: messages of a role are themselves calls
    name, arguments  paths from a call
    items  the calls that were found
    messages  the messages that have them, if the calls are found by key
    evidence  3: the names are those of defined tools, 2 or 1: usual names, 0: structure alone
    """

    path: str | None
    name: str
    arguments: str | None
    items: Sequence[Json]
    evidence: int
    messages: Sequence[Json] = ()


def part(key: str) -> str:
    """Returns a key as a part of a path: quoted, if it is not an identifier."""
    return (
        key
        if key.isidentifier() and key.isascii()
        else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )


def decoded(value: Json, path: str) -> tuple[Json, str]:
    """Returns the value of JSON text and the path to it, or both unchanged."""
    inner = loads_text(value) if isinstance(value, str) and value[:1] in "[{" else value
    return (value, path) if inner is value else (inner, f"json({path})")


def objects_in(
    value: Json, path: str = "", depth: int = _DEPTH
) -> Iterator[tuple[str, list[Json]]]:
    """Yields (path, objects) of the objects, and lists of objects, below an object."""
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        inner, full = decoded(item, f"{path}.{part(key)}" if path else part(key))
        if isinstance(inner, dict):
            if has_ids(inner) and all(isinstance(one, dict) for one in inner.values()):
                yield f"values({full})", [*inner.values()]
                continue
            yield full, [inner]
            if depth:
                yield from objects_in(inner, full, depth - 1)
        elif isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner):
            yield full, inner


def has_ids(value: dict[str, Json]) -> bool:
    """Returns whether the keys of an object are ids, and not names: each has a digit."""
    return bool(value) and all(any(map(str.isdigit, key)) for key in value)


def definitions(value: Json) -> list[Json]:
    """Returns the definitions of tools that a value is, in a list or by name; else []."""
    items: list[Json] = value if isinstance(value, list) else []
    if isinstance(value, dict) and not any(
        as_dict(one).keys().isdisjoint((*_SCHEMAS, *_PARAMETERS)) for one in value.values()
    ):
        items = [{"name": name, **as_dict(item)} for name, item in value.items()]
    return items if all(_defined(item) and _has_schema(item) for item in items) else []


def _has_schema(item: Json) -> bool:
    inner = item.get("function", item) if isinstance(item, dict) else None
    if not isinstance(inner, dict):
        return False
    for key in (*_SCHEMAS, *_PARAMETERS):
        if key in inner:
            value, _ = decoded(inner[key], key)
            return _describes(value, is_schema=key in _SCHEMAS)
    return not inner.keys().isdisjoint(_DESCRIPTIONS)


def _describes(value: Json, *, is_schema: bool) -> bool:
    """Returns whether a value describes parameters, and is not the arguments of a call.

    `is_schema`: under its key, a schema may be empty, and parameters may have no type.
    """
    if isinstance(value, list):
        return all(isinstance(one, dict) and {"name", "type"} <= one.keys() for one in value)
    if not isinstance(value, dict):
        return is_schema
    if "properties" in value or (is_schema and "type" in value):
        return True
    if all(isinstance(one, dict) for one in value.values()):
        return is_schema or (bool(value) and all("type" in as_dict(one) for one in value.values()))
    return bool(value) and all(is_type_name(one) for one in value.values())


def _defined(item: Json) -> str:
    """Returns the name of a definition, or ""."""
    inner = item.get("function", item) if isinstance(item, dict) else None
    return name_of(inner) or "" if isinstance(inner, dict) else ""


def find_tools(rows: Sequence[Json]) -> tuple[str | None, set[str]]:
    """Returns the path of the definitions of tools in rows, and the names of the tools."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for path in dict.fromkeys(path for path, _ in objects_in(row)):
            if names := {_defined(item) for item in definitions(value_at(path, row))}:
                found.setdefault(path, set()).update(names)
    best = max(found, key=lambda path: (len(found[path]), -path.count(".")), default=None)
    return best, found[best] if best is not None else set()


def find_calls(
    messages: Sequence[Json], tools: Collection[str], *, role: str, followed: bool
) -> CallShape | None:
    """Returns the likeliest place of calls in messages.

    `tools` are names of defined tools, `role` is the path of the role. `followed`: something comes
    after them that may be their results, so that structure alone is evidence.
    """
    places: dict[str, list[Json]] = {}
    for message in messages:
        for path, items in objects_in(message):
            if path != role and not definitions(items):
                places.setdefault(path, []).extend(items)
    found: list[CallShape] = []
    for path, items in places.items():
        shape = _shape(path, items, tools) or _shape_of_kind(path, items, tools)
        if shape is not None and (shape.evidence > _NONE or followed):
            having = [one for one in messages if value_at(path, one) is not None]
            found.append(replace(shape, messages=having))
    own = [one for one in messages if isinstance(one, dict)]
    top = _top_shape(own, tools, role) if own else None
    if top is not None:
        found.append(top)
    return max(
        found,
        key=lambda one: (
            one.evidence,
            -rank("calls", one.path or ""),
            one.path is None,
            -(one.path or "").count("."),
        ),
        default=None,
    )


def makes_call(shape: CallShape, message: Json) -> bool:
    """Returns whether a message has a call of a shape."""
    found = message if shape.path is None else decoded(value_at(shape.path, message), "")[0]
    return any(
        value_at(shape.name, one) is not None
        and (shape.arguments is None or value_at(shape.arguments, one) is not None)
        for one in (found if isinstance(found, list) else [found])
    )


def _top_shape(messages: Sequence[Json], tools: Collection[str], role: str) -> CallShape | None:
    """Returns the shape of messages that have the parts of a call beside their own."""
    keys = dict.fromkeys(part(key) for one in messages for key in as_dict(one))
    usual = [key for key in keys if is_usual("call_name", key) and key not in ("method", "api")]
    for name in sorted(usual, key=lambda key: rank("call_name", key)):
        having = [one for one in messages if isinstance(one, dict) and _is_tool(one.get(name))]
        if not having or name == role:
            continue
        arguments = _arguments(having, name)
        if arguments is None or not is_usual("arguments", arguments):
            continue
        named = {value_at(name, one) for one in having} <= {*tools}
        path = None if len(having) == len(messages) else f"[@][?{name} && {arguments} != null]"
        having = [one for one in having if value_at(arguments, one) is not None]
        return CallShape(path, name, arguments, having, 3 if tools and named else 2)
    return None


def _shape_of_kind(path: str, items: Sequence[Json], tools: Collection[str]) -> CallShape | None:
    """Returns the shape of those items of a list that have one type, e.g. "tool_use"."""
    for key in ("type", "kind"):
        kinds = dict.fromkeys(
            kind for one in items if isinstance(kind := value_at(key, one), str) and "'" not in kind
        )
        for kind in kinds:
            chosen = [one for one in items if value_at(key, one) == kind]
            if meaning(kind) != "tool" and (shape := _shape(path, chosen, tools)) is not None:
                return CallShape(f"{path}[?{key} == '{kind}']", shape.name, shape.arguments,
                                 shape.items, shape.evidence)  # fmt: skip
    return None


def _shape(path: str, items: Sequence[Json], tools: Collection[str]) -> CallShape | None:
    """Returns the shape of objects that are all calls."""
    if tools and all(
        isinstance(one, dict) and len(one) == 1 and {*one} <= {*tools} for one in items
    ):
        return CallShape(path, "keys(@)[0]", "values(@)[0]", items, _KEYED)
    paths = dict.fromkeys(
        inner
        for one in items
        if isinstance(one, dict)
        for key, value in one.items()
        for inner in (
            part(key),
            *(f"{part(key)}.{part(name)}" for name in (value if isinstance(value, dict) else ())),
        )
    )
    names = [key for key in paths if all(_is_tool(value_at(key, one)) for one in items)]
    defined = [key for key in names if {value_at(key, one) for one in items} <= {*tools}]
    usual = [key for key in names if is_usual("call_name", key)]
    other = [key for key in names if "." not in key and key not in _KINDS and key[-2:] != "id"]
    for name in (defined or sorted(usual, key=lambda key: rank("call_name", key)) or other)[:1]:
        arguments = _arguments(items, name)
        if arguments is None:
            continue
        is_known = is_usual("call_name", name) + is_usual("arguments", arguments)
        if name in defined:
            return CallShape(path, name, arguments, items, 3)
        if is_known == 0 and len(other) > 1:
            return None
        evidence = is_known if is_known == 2 or is_usual("calls", path) else min(is_known, 0)
        evidence = max(evidence, int(is_usual("calls", path)))
        return CallShape(path, name, arguments, items, evidence)
    return None


def _arguments(items: Sequence[Json], name: str) -> str | None:
    """Returns the path of the arguments beside a name."""
    prefix = f"{name.rpartition('.')[0]}." if "." in name else ""
    inner = (as_dict(value_at(prefix[:-1], one) if prefix else one) for one in items)
    keys = dict.fromkeys(f"{prefix}{part(key)}" for one in inner for key in one)
    likely = [
        key
        for key in keys
        if key != name
        and (values := [v for one in items if (v := value_at(key, one)) is not None])
        and (
            all(isinstance(decoded(value, key)[0], dict) for value in values)
            or (is_usual("arguments", key) and all(isinstance(v, str | dict) for v in values))
        )
        and not is_usual("results", key)
    ]
    return min(likely, key=lambda key: rank("arguments", key), default=None)


def _is_tool(value: Json) -> bool:
    return isinstance(value, str) and _TOOL.fullmatch(value) is not None


def scalar_paths(rows: Sequence[Json]) -> list[str]:
    """Returns the paths of texts and whole numbers in objects, at most one level deep."""
    found: dict[str, None] = {}
    for row in rows:
        for key, value in row.items() if isinstance(row, dict) else ():
            inner = value if isinstance(value, dict) else {}
            for path, item in ((part(key), value), *((f"{part(key)}.{part(k)}", v)
                                                     for k, v in inner.items())):  # fmt: skip
                if isinstance(item, str | int) and not isinstance(item, bool) and item != "":
                    found[path] = None
    return [*found]


def perhaps_roles(messages: Sequence[Json], taken: Collection[str | None]) -> Iterator[str]:
    """Yields a decision for each path, but those taken, with 2 to 6 names: is it the role?"""
    for path in (one for one in scalar_paths(messages) if one not in taken):
        values = [value for one in messages if isinstance(value := value_at(path, one), str)]
        names = [*dict.fromkeys(values)]
        is_full = len(values) == len(messages) > len(names) and not any(map(has_words, names))
        if is_full and 2 <= len(names) <= 6:
            asked = f"does {path!r} ({', '.join(map(repr, names))}) say who speaks? If so, name it"
            yield f"message.role: {asked} and its values in roles; if not, all are the assistant's"


def linked(
    name: str,
    calls: Sequence[Json],
    results: Sequence[Json],
    apart: Collection[str],
    arguments: str | None = None,
    conversations: Sequence[Sequence[Json]] = (),
) -> tuple[str, str] | None:
    """Returns the paths of the ids, in calls and in results, that link these; None: no ids do.

    `name` and `apart` are paths that hold no ids, and neither do the arguments of calls. Ids may
    start again in each of the `conversations`, which hold the calls, and in each of their turns.
    """
    first = _linked(name, calls, results, apart, arguments, {})
    for by_turn in (False, True) if first is None else ():
        places = _places(conversations, calls if by_turn else (), results)
        if first is None and len({*places.values()}) > 1:
            first = _linked(name, calls, results, apart, arguments, places)
    return first


def _linked(
    name: str,
    calls: Sequence[Json],
    results: Sequence[Json],
    apart: Collection[str],
    arguments: str | None,
    places: Mapping[int, int],
) -> tuple[str, str] | None:
    """Returns the paths of ids that are unique within each place; {}: within the whole log."""
    best: list[tuple[int, str, str]] = []
    at_calls, at_results = ([places.get(id(one), -1) for one in them] for them in (calls, results))
    for own in scalar_paths(calls):
        ids = _placed(own, calls, at_calls)
        is_argument = arguments is not None and own.startswith(f"{arguments}.")
        if own in (name, *apart) or is_argument or len({*ids}) < len(ids):
            continue
        # What is one value in each place, such as the name of the conversation, is no id.
        if places and len({place for place, _ in ids}) == len(ids):
            continue
        for theirs in scalar_paths(results):
            values = _placed(theirs, results, at_results)
            is_id = is_usual("call_id", own) or is_usual("result_id", theirs)
            is_id = is_id or (own == theirs and own.lower().endswith("id"))
            # Two equal numbers mean something only under one key, and if each is there once.
            is_once = len({*values}) == len(values)
            is_id = is_id or (own == theirs and is_once and (bool(places) or len(values) > 1))
            is_id = is_id or not any(value.isdigit() for _, value in values)
            if is_id and theirs not in apart and values and {*values} <= {*ids}:
                best.append((rank("call_id", own) + rank("result_id", theirs), own, theirs))
    return min(best)[1:] if best else None


def _placed(path: str, items: Sequence[Json], places: Sequence[int]) -> list[tuple[int, str]]:
    """Returns (place, value) of the items that have a value at a path."""
    found = ((place, value_at(path, one)) for place, one in zip(places, items, strict=True))
    return [(place, str(value)) for place, value in found if value is not None]


def _places(
    conversations: Sequence[Sequence[Json]], calls: Sequence[Json], results: Sequence[Json]
) -> dict[int, int]:
    """Returns {id() of an object: number of its conversation}, of its turn if `calls` are given.

    A turn begins with a call that follows a result.
    """
    calling, answering = ({id(one) for one in items} for items in (calls, results))
    places: dict[int, int] = {}
    number = 0
    for conversation in conversations:
        number += 1
        is_answered = False
        for message in conversation:
            inside = {id(message), *(id(one) for _, items in objects_in(message) for one in items)}
            if is_answered and inside & calling:
                number += 1
                is_answered = False
            is_answered = is_answered or bool(inside & answering)
            places |= dict.fromkeys(inside, number)
    return places


def filtered(path: str, condition: str) -> str:
    """Returns the path of those items of a list that meet a condition too."""
    return f"{path[:-1]} && {condition}]" if "[?" in path else f"{path}[?{condition}]"


def results_of_kind(messages: Sequence[Json], path: str) -> tuple[str, list[Json]] | None:
    """Returns the path, and the items, of a list's results, which a type names."""
    items = [one for message in messages if isinstance(value := value_at(path, message), list)
             for one in value]  # fmt: skip
    for key in ("type", "kind"):
        for kind in dict.fromkeys(value_at(key, one) for one in items):
            if isinstance(kind, str) and meaning(kind) == "tool" and "'" not in kind:
                chosen = [one for one in items if value_at(key, one) == kind]
                return f"{path}[?{key} == '{kind}']", chosen
    return None
