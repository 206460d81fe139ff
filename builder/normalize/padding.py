"""Removes the nulls with which Arrow pads the structs of a column.

In Arrow every struct has the keys of all rows, and null where a row has no value. Whether a null of
an argument is padding, its tool's schema tells: it stays where the schema requires or allows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from builder.conversation import Json
from builder.normalize.tools import convert, tool_name

_VALUES = frozenset({"default", "const", "example"})
"""Keywords of JSON Schema whose value may be null."""


def is_padded(tools: Json) -> bool:
    """Returns whether definitions have a null where only a schema, a list or a name can be."""
    if isinstance(tools, list):
        return any(map(is_padded, tools))
    if not isinstance(tools, dict):
        return False
    properties = tools.get("properties")
    if isinstance(properties, dict) and None in properties.values():
        return True
    is_schema = not isinstance(tools.get("name"), str)  # Hermes has `required: null` beside it
    if is_schema and any(tools.get(key, "") is None for key in _NEVER_NULL):
        return True
    return any(is_padded(item) for item in tools.values() if item.__class__ in _NESTED)


_NESTED = (dict, list)
_NEVER_NULL = ("type", "properties", "required", "items", "enum", "anyOf", "oneOf", "allOf")


def unpadded_tools(tools: Json) -> Json:
    """Returns definitions without nulls, except those that are a value of a keyword."""
    if isinstance(tools, list):
        return [unpadded_tools(item) for item in tools]
    if not isinstance(tools, dict):
        return tools
    return {
        key: item if key in _VALUES else unpadded_tools(item)
        for key, item in tools.items()
        if item is not None or key in _VALUES
    }


def has_null(value: Json) -> bool:
    """Returns whether an object has a null at any depth."""
    if isinstance(value, dict):
        return any(item is None or has_null(item) for item in value.values())
    return isinstance(value, list) and any(map(has_null, value))


def schemas(tools: Iterable[Json]) -> dict[str, Json]:
    """Returns {name of the tool: schema of its arguments}."""
    parameters: dict[str, Json] = {}
    for tool in convert(tools, Counter()):
        function = tool["function"]
        parameters[tool_name(tool)] = (
            function.get("parameters") if isinstance(function, dict) else None
        )
    return parameters


def declares(value: Mapping[str, Json], schema: Json) -> bool:
    """Returns whether a schema has a property for each null of an object."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    known = properties if isinstance(properties, dict) else {}
    return not known or all(item is not None or key in known for key, item in value.items())


def unpadded(value: Json, schema: Json, counts: Counter[str]) -> Json:
    """Returns arguments without the nulls that their schema does not allow (`null_padding`)."""
    fields = schema if isinstance(schema, dict) else {}
    if isinstance(value, list):
        return [unpadded(item, fields.get("items"), counts) for item in value]
    if not isinstance(value, dict):
        return value
    known, required = fields.get("properties"), fields.get("required")
    properties = known if isinstance(known, dict) else {}
    wanted = required if isinstance(required, list) else []
    kept: dict[str, Json] = {}
    for key, item in value.items():
        if item is None and key not in wanted and not _allows_null(properties.get(key)):
            counts["null_padding"] += 1
        else:
            kept[key] = unpadded(item, properties.get(key), counts)
    return kept


def _allows_null(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    kind, listed = schema.get("type"), schema.get("enum")
    if kind == "null" or (isinstance(kind, list) and "null" in kind) or schema.get("nullable"):
        return True
    if isinstance(listed, list) and None in listed and kind is None:
        return True
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list):
            return any(map(_allows_null, options))
    return kind is None and listed is None and "const" not in schema and "$ref" not in schema
