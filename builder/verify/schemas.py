"""Checks arguments against the JSON Schema of their tool, draft 2020-12.

Schemas come from logs: they may be invalid, refer to anything, and take exponential time. So no
reference is fetched, the steps of a check are bounded before it runs, and patterns do not backtrack
exponentially (jsonschema-rs). A property test compares the verdicts with those of `jsonschema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from builder.conversation import Json
from builder.jsonio import loads
from builder.readers.toolkit.narrow import as_dict, as_list

_MAX_STEPS = 5_000_000
"""Pairs of a subschema and a value that one check may visit: a tenth of a second."""

_MAX_EXPLAINED = 20_000
"""Steps up to which violations are listed; the library allocates kilobytes for each violation."""

_MAX_LOCATED = 4096
"""Code points up to which the fault of a definition is located."""

_MAX_DEPTH = 400
"""Depth of nested subschemas, including referenced ones."""


class BrokenSchemaFault(ValueError):
    """The schema itself cannot be used; `code` is bad_schema or schema_too_complex."""

    def __init__(self, message: str, code: str = "bad_schema") -> None:
        super().__init__(message)
        self.code = code


def violations(definition: str, arguments: dict[str, Json]) -> list[str]:
    """Returns the violations of a tool's schema, each as "path: message", sorted.

    `definition` is the JSON text of a wrapped tool. Raises only BrokenSchemaFault.
    """
    checked = _checked(definition)
    if isinstance(checked, BrokenSchemaFault):
        raise checked
    try:
        # In a plain schema no pair is visited twice, so most checks need no counting.
        if not checked.is_plain or checked.nodes * _nodes(arguments) > _MAX_STEPS:
            _count_steps(checked, arguments, _MAX_STEPS)
        if checked.validator.is_valid(arguments):
            return []
        try:
            _count_steps(checked, arguments, _MAX_EXPLAINED)
        except BrokenSchemaFault:
            return ["$: the arguments do not fit the schema"]
        errors = list(checked.validator.iter_errors(arguments))
    except BrokenSchemaFault:
        raise
    except RecursionError:
        raise BrokenSchemaFault("nested too deeply", "schema_too_complex") from None
    except Exception as error:  # the library raises many types for values that it refuses
        raise BrokenSchemaFault(_brief(error)) from None
    return sorted(f"{_path(error.instance_path)}: {error.message[:200]}" for error in errors)


def _count_steps(checked: _Checked, arguments: dict[str, Json], limit: int) -> None:
    if _Steps(checked.schema, limit).of(checked.schema, arguments) > limit:
        raise BrokenSchemaFault(f"its check takes more than {limit} steps", "schema_too_complex")


@dataclass(frozen=True, slots=True)
class _Checked:
    """A usable schema with `nodes` values; `is_plain`: no keyword evaluates a subschema twice."""

    schema: dict[str, Json]
    validator: jsonschema_rs.Draft202012Validator
    nodes: int
    is_plain: bool


@lru_cache(maxsize=1024)
def _checked(definition: str) -> _Checked | BrokenSchemaFault:
    tool: Any = loads(definition)
    schema = tool["function"].get("parameters")
    if not isinstance(schema, dict):
        return BrokenSchemaFault("the parameters are not a JSON Schema")
    is_plain = not any(word in definition for word in ("Ref", "$ref", "unevaluated", "dependent"))
    try:
        # Without `offline` the library downloads references and reads files that they name.
        validator = jsonschema_rs.Draft202012Validator(schema, offline=True)
    except Exception as error:  # the library raises many types for a faulty schema
        return BrokenSchemaFault(_place_of_fault(schema, definition) or _brief(error))
    return _Checked(schema, validator, _nodes(schema), is_plain)


def _place_of_fault(schema: dict[str, Json], definition: str) -> str | None:
    """Returns the path and message of the meta-schema's error; None for a fault of another kind.

    `jsonschema` finds the most relevant error, but compares lists in quadratic time: it is used for
    small schemas only.
    """
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - 0.1 s, for faults

    if len(definition) > _MAX_LOCATED:
        return None
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message[:160]}"
    except Exception:  # TypeError, RecursionError: it fails on some invalid schemas
        return None
    return None


def _nodes(value: Json) -> int:
    """Returns the number of values in a value, including itself."""
    count = 0
    stack = [value]
    while stack:
        item = stack.pop()
        count += 1
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return count


@dataclass(slots=True)
class _Steps:
    """Counts the steps of a check without running it: the visits of (subschema, value) pairs.

    A pair that is reached by several paths counts as often as a validator would visit it, but its
    steps are computed once, so counting is cheap even if checking is exponential.
    """

    root: dict[str, Json]
    limit: int
    _known: dict[tuple[int, int], int | None] = field(default_factory=dict)

    def of(self, schema: Json, value: Json, depth: int = 0) -> int:
        """Returns the number of steps, or a number above `limit` if there are more."""
        if not isinstance(schema, dict):
            return 1
        key = id(schema), id(value)
        if key in self._known:
            known = self._known[key]
            return self.limit + 1 if known is None else known  # None: a cycle
        if depth > _MAX_DEPTH or len(self._known) > _MAX_STEPS // 10:
            return self.limit + 1
        self._known[key] = None
        total = 1 + len(as_list(schema.get("enum")))
        for name in _REFERENCES & schema.keys():
            target = _pointed(self.root, schema[name])
            total += self.limit if target is None else self.of(target, value, depth + 1)
        for inner, item in _visited(schema, value):
            if total > self.limit:
                break
            total += self.of(inner, item, depth + 1)
        if not _UNEVALUATED.isdisjoint(schema):
            total *= 2  # it evaluates its sibling keywords again
        self._known[key] = total
        return total


_REFERENCES = {"$ref", "$dynamicRef"}
_UNEVALUATED = {"unevaluatedProperties", "unevaluatedItems"}
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_OF_VALUES = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS = ("items", "contains", "unevaluatedItems")


def _visited(schema: dict[str, Json], value: Json) -> Iterator[tuple[Json, Json]]:
    """Yields the (subschema, value) pairs that a validator visits next, except for references."""
    for name in _LISTS:
        for inner in as_list(schema.get(name)):
            yield inner, value
    for name in _SINGLE:
        if name in schema:
            yield schema[name], value
    for inner in as_dict(schema.get("dependentSchemas")).values():
        yield inner, value
    if isinstance(value, dict):
        named = as_dict(schema.get("properties"))
        every = list(as_dict(schema.get("patternProperties")).values())
        every += [schema[name] for name in _OF_VALUES if name in schema]
        for name, item in value.items():
            if name in named:
                yield named[name], item
            for inner in every:
                yield inner, item
            if "propertyNames" in schema:
                yield schema["propertyNames"], name
    elif isinstance(value, list):
        every = [schema[name] for name in _OF_ITEMS if name in schema]
        first = as_list(schema.get("prefixItems"))
        for at, item in enumerate(value):
            for inner in every:
                yield inner, item
            if at < len(first):
                yield first[at], item


def _pointed(root: Json, reference: Json) -> Json:
    """Returns the target of a JSON Pointer into the schema; None for any other reference."""
    if not isinstance(reference, str) or reference[:1] != "#" or reference[1:2] not in ("", "/"):
        return None
    value = root
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and len(name) < 9:
            value = value[int(name)] if int(name) < len(value) else None
        else:
            return None
    return value


def _path(steps: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _brief(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {' '.join(str(text).split())[:200]}"
