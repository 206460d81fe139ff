"""Reads the parts of a tool's definition under the names that logs give them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from builder.conversation import Json
from builder.jsonio import loads_text
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str
from builder.readers.toolkit.tables import by_word, words
from builder.readers.toolkit.unknown_keys import unknown_key

_RESULTS = words("tools", "results")
_ARGUMENTS = words("tools", "arguments")
_DEFINING = words("tools", "defining")


def is_execution(item: Json) -> bool:
    """Returns whether an item of a list of tools is a call that ran, not a definition.

    It has arguments and a result (Agno's `tools` of a run), or is a call in OpenAI's form.
    """
    if not isinstance(item, dict):
        return False
    function = item.get("function")
    if isinstance(function, dict):
        is_call = isinstance(function.get("arguments"), str) and _DEFINING.isdisjoint(function)
        return is_call and ("id" in item or "tool_call_id" in item)
    has_result = not _RESULTS.isdisjoint(item) and not _ARGUMENTS.isdisjoint(item)
    return has_result and ("tool_call_id" in item or _DEFINING.isdisjoint(item))


def without_executions(tools: tuple[Json, ...] | None) -> tuple[Json, ...] | None:
    """Returns the definitions of a list of tools; None if it has only calls that ran."""
    kept = tuple(tool for tool in tools or () if not is_execution(tool))
    return tools if not tools else kept or None


SCHEMAS = ("parameters", "params", "input_schema", "inputSchema", "schema", "args_schema")
"""Keys of the parameters of a definition."""


def by_name(value: Json) -> Json:
    """Returns definitions that are an object by their names as a list; other values unchanged."""
    tools: list[Json] = [
        {"name": name, **as_dict(item)}
        for name, item in as_dict(value).items()
        if not as_dict(item).keys().isdisjoint(SCHEMAS)
    ]
    return tools if tools and len(tools) == len(as_dict(value)) else value


_HOLDERS = ("function", "toolSpec", "parameters", "input_schema", "inputSchema")
"""Keys of the objects of a definition."""


def decoded(definition: Json, changes: Counter[str]) -> Json:
    """Returns a definition with the objects in place of schemas and functions that are JSON text.

    `changes` counts `tool_decoded`. Returns None, and names the key, if such a text is no object.
    """
    if not isinstance(definition, dict):
        return definition
    found: dict[str, Json] = {}
    for key in (*_HOLDERS, "properties"):
        value = definition.get(key)
        if isinstance(value, str):
            if not isinstance(value := loads_text(value or "{}"), dict):
                changes[unknown_key(f"tools.{key}")] += 1
                return None
            changes["tool_decoded"] += 1
        if isinstance(value, dict) and key in _HOLDERS:
            value = decoded(value, changes)
            if value is None:
                return None
        if value is not definition.get(key):
            found[key] = value
    return {**definition, **found} if found else definition


_SCHEMA_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})

_TYPE_NAMES = by_word("types")
_ANY = frozenset({"any", "object?", "unknown", "type_unspecified"})
_TYPE_HEAD = re.compile(r"\s*(?:typing\.)?([A-Za-z_]+)\s*(\[(.*)\])?")


_NAMES = ("name", "tool_name", "toolName", "function_name")
_DESCRIPTIONS = ("description", "tool_description", "desc")


def name_of(spec: dict[str, Json]) -> str | None:
    """Returns the name in a definition without its wrapping."""
    return next((name for key in _NAMES if isinstance(name := spec.get(key), str) and name), None)


def described(spec: dict[str, Json]) -> dict[str, Json]:
    """Returns `name` and `description`, if there is one, of a definition without its wrapping."""
    text = next((one for key in _DESCRIPTIONS if isinstance(one := spec.get(key), str)), None)
    found: dict[str, Json] = {"name": name_of(spec)}
    return found if text is None else found | {"description": text}


def described_keys(spec: dict[str, Json]) -> set[str]:
    """Returns the keys of a definition that `described` reads."""
    name = next((key for key in _NAMES if spec.get(key)), "")
    text = next((key for key in _DESCRIPTIONS if isinstance(spec.get(key), str)), "")
    return {name, text}


def parameters_of(spec: dict[str, Json]) -> tuple[Json, str]:
    """Returns (parameters of an unwrapped definition or None, their key)."""
    for key in (
        "parameters", "input_schema", "inputSchema", "parametersJsonSchema",
        "parameters_json_schema", "arguments", "params", "args", "args_schema", "inputs", "schema",
    ):  # fmt: skip
        value = loads_text(spec.get(key))
        if isinstance(value, list) and is_parameter_list(value):
            return value, key
        if isinstance(value, dict):
            inner = value.get("json")
            if key == "inputSchema" and isinstance(inner, dict) and set(value) == {"json"}:
                return inner, key
            return value, key
    return None, "parameters"


def schema_from(parameters: Json) -> Json:
    """Returns parameters as JSON Schema: of a list, of a map of names, or of a schema itself."""
    if isinstance(parameters, list):
        named = [one for one in parameters if isinstance(one, dict)]
        listed = {str(one.get("name")): {k: one[k] for k in one if k != "name"} for one in named}
        if any("required" in one for one in named):
            required = [str(one.get("name")) for one in named if one.get("required") is True]
            properties: dict[str, Json] = {
                name: _map_types({key: one[key] for key in one if key != "required"})
                for name, one in listed.items()
            }
            return object_schema(properties, required)
        return _from_map({**listed})
    if not isinstance(parameters, dict):
        return parameters
    return _from_map(parameters) if is_parameter_map(parameters) else _map_types(parameters)


def is_parameter_list(values: Sequence[Json]) -> bool:
    """Returns whether a list has parameters with their names and types."""
    return all(isinstance(one, dict) and {"name", "type"} <= one.keys() for one in values)


def is_parameter_map(parameters: dict[str, Json]) -> bool:
    """Returns whether it is a map of parameter names without a schema around it (as in xLAM)."""
    if not parameters or "properties" in parameters or isinstance(parameters.get("type"), str):
        return False
    return all(
        is_type_name(value) or (isinstance(value, dict) and isinstance(value.get("type"), str))
        for value in parameters.values()
    )


def _from_map(parameters: dict[str, Json]) -> Json:
    properties: dict[str, Json] = {}
    required: list[str] = []
    for name, value in parameters.items():
        if isinstance(value, str):
            value = {"type": value}  # noqa: PLW2901 - the short form
        assert isinstance(value, dict)
        properties[name] = _map_types({key: value[key] for key in value if key != "required"})
        is_optional = "default" in value or "optional" in str(value["type"]).lower()
        if not is_optional or value.get("required") is True:
            required.append(name)
    return object_schema(properties, required)


def _map_types(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema
    mapped: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type":
            mapped |= _map_type(value)
        elif key in ("properties", "$defs", "definitions", "patternProperties"):
            entries = value.items() if isinstance(value, dict) else ()
            mapped[key] = {name: _map_types(item) for name, item in entries} if entries else value
        elif key in ("items", "additionalProperties", "not") and isinstance(value, dict):
            mapped[key] = _map_types(value)
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            mapped[key] = [_map_types(item) for item in value]
        elif key == "required" and value is None:
            continue
        else:
            mapped[key] = value
    return mapped


def _map_type(value: Json) -> dict[str, Json]:
    """Returns `type`, and `items` if the name includes them, for a logged type name."""
    if not isinstance(value, str) or value in _SCHEMA_TYPES:
        return {"type": value}
    head = _TYPE_HEAD.match(value)
    name = head[1].lower() if head else ""
    inner = head[3] if head and head[3] else ""
    if name in _ANY:
        return {}
    if name in ("optional", "union") and inner:
        return _map_type(inner.split(",")[0].strip())
    if name in _SCHEMA_TYPES:
        return {"type": name}
    kind = _TYPE_NAMES.get(name)
    if kind is None:
        return {"type": value}  # unknown: the check of the schema reports it
    if kind == "array" and inner and "," not in inner:
        return {"type": "array", "items": _map_type(inner.strip())}
    return {"type": kind}


def is_type_name(value: Json) -> bool:
    """Returns whether a value names a type: `string`, `List[int]`, `str, optional`."""
    if not isinstance(value, str):
        return False
    head = _TYPE_HEAD.match(value)
    name = head[1].lower() if head else ""
    is_whole = head is not None and value[head.end() :].strip(" ,").lower() in ("", "optional")
    return is_whole and (name in _SCHEMA_TYPES or name in _TYPE_NAMES or name in _ANY)


def object_schema(properties: dict[str, Json], required: Sequence[str]) -> dict[str, Json]:
    """Returns the schema of an object with these properties."""
    return {"type": "object", "properties": properties, "required": [*required]}


# -- definitions that a request defers: the model sees them once they are loaded ------------------


def without_deferred(
    tools: Iterable[Json], named: Collection[str]
) -> tuple[tuple[Json, ...], tuple[Json, ...]]:
    """Returns the definitions that the model saw, and the deferred ones that it did not.

    `named` contains the names of tools that were loaded or called.
    """
    offered: list[Json] = []
    deferred: list[Json] = []
    for tool in tools:
        hidden = is_deferred(tool) and as_str(tool, "name") not in named
        (deferred if hidden else offered).append(tool)
    return tuple(offered), tuple(deferred)


def is_deferred(tool: Json) -> bool:
    """Returns whether a definition is not shown to the model before something loads it."""
    return as_dict(tool).get("defer_loading") is True


def loaded_names(content: Json) -> Iterator[str]:
    """Yields the names of the tools that the blocks of a message of Anthropic's API load."""
    for block in as_dicts(content):
        inner = block.get("content")
        references = [block.get("tool"), *as_list(inner), *as_list(inner, "tool_references")]
        for reference in as_dicts(references):
            if reference.get("type") == "tool_reference":
                yield as_str(reference, "tool_name") or as_str(reference, "name")
