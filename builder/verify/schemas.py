"""Arguments against the JSON Schema of their tool, draft 2020-12.

Schemas come out of logs: they may be broken, refer anywhere and hold hostile patterns. Nothing is
fetched, nothing raises, and a pattern that could run away is not evaluated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from builder.conversation import Json
from builder.jsonio import loads

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MAX_STEPS = 10**8
"""Steps of backtracking that a pattern may take at worst: about a second."""

KEY_LENGTH = 64
"""Length of keys for which `patternProperties` must be affordable."""

_REPEATED_GROUP = re.compile(r"\)[*+{]")


class BrokenSchemaFault(ValueError):
    """The schema itself cannot be used."""


def violations(definition: str, arguments: dict[str, Json]) -> list[str]:
    """What in `arguments` breaks the schema, each as "path: message", in a fixed order.

    `definition` is the JSON text of a wrapped tool. Raises BrokenSchemaFault, nothing else.
    """
    validator = _validator(definition)
    if isinstance(validator, str):
        raise BrokenSchemaFault(validator)
    if _surely_fit(validator.schema, arguments):
        return []
    try:
        found = list(validator.iter_errors(arguments))
    except Exception as error:  # unresolvable reference, TypeError, recursion: the schema's
        raise BrokenSchemaFault(_brief(error)) from None
    return sorted(f"{error.json_path}: {error.message[:200]}" for error in found)


@lru_cache(maxsize=1024)
def _validator(definition: str) -> Validator | str:
    """A validator for the parameters of a tool, or why there can be none."""
    tool: Any = loads(definition)
    decoded = tool["function"].get("parameters")
    if not isinstance(decoded, dict):
        return "the parameters are no JSON Schema"
    kind, registry = _kind()
    try:
        if not is_plain(decoded):
            kind.check_schema(decoded)
            _refuse_costly_keys(decoded)
        validator: Validator = kind(decoded, registry=registry)
    except Exception as error:  # SchemaError, TypeError, re.error, RecursionError: all the schema's
        return _brief(error)
    return validator


@cache
def _kind() -> tuple[Any, Any]:
    """(the class of validators, what they may refer to)."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 0.1 s, only where needed
    from jsonschema.validators import extend  # noqa: PLC0415 - as above
    from jsonschema_specifications import REGISTRY  # noqa: PLC0415 - as above

    kind = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]  # the library's
    return kind, REGISTRY


def is_plain(schema: Json) -> bool:
    """Is this surely a valid schema, without patterns? It takes a hundredth of the meta-schema."""
    if type(schema) is not dict:
        return type(schema) is bool
    return all(key in _PLAIN and _PLAIN[key](value) for key, value in schema.items())


def _are_plain(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(is_plain, value))


def _anything(_: Any) -> bool:
    return True


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_list(value: Any) -> bool:
    return type(value) is list


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_names(value: Any) -> bool:
    return type(value) is list and all(map(_is_text, value)) and len(set(value)) == len(value)


_OF_TYPE: dict[str, tuple[type, ...]] = {
    "array": (list,), "boolean": (bool,), "integer": (int,), "null": (type(None),),
    "number": (int, float), "object": (dict,), "string": (str,),
}  # fmt: skip
"""The types of values that surely are of a type of JSON Schema."""
_PLAIN: dict[str, Callable[[Any], bool]] = {
    "$schema": _is_text,
    "title": _is_text,
    "description": _is_text,
    "default": _anything,
    "const": _anything,
    "examples": _is_list,
    "enum": _is_list,
    "type": lambda value: type(value) is str and value in _OF_TYPE,
    "format": _is_text,
    "properties": lambda value: type(value) is dict and all(map(is_plain, value.values())),
    "required": _are_names,
    "additionalProperties": is_plain,
    "items": is_plain,
    "anyOf": _are_plain,
    "oneOf": _are_plain,
    "allOf": _are_plain,
    "minimum": _is_number,
    "maximum": _is_number,
    "minItems": _is_count,
    "maxItems": _is_count,
}
"""Keywords of most tools, and whether a value is one that the meta-schema surely takes."""


def _surely_fit(schema: Any, arguments: dict[str, Json]) -> bool:
    try:
        return fits(schema, arguments)
    except RecursionError:  # it goes deeper than `jsonschema` does
        return False


def fits(schema: Any, value: Any) -> bool:
    """Does a value surely keep to a schema? What is not sure, `jsonschema` tells.

    Of most calls it is sure, in a tenth of the time. The schema is one that `_validator` takes.
    """
    if type(schema) is not dict:
        return schema is True
    return all(key in _FITS and _FITS[key](rule, value, schema) for key, rule in schema.items())


def _has_type(name: Any, value: Any, _: Any) -> bool:
    return type(name) is str and type(value) in _OF_TYPE[name]


def _have_fit(properties: Any, value: Any, _: Any) -> bool:
    return type(value) is not dict or all(
        name not in value or fits(schema, value[name]) for name, schema in properties.items()
    )


def _are_there(names: Any, value: Any, _: Any) -> bool:
    return type(value) is not dict or all(name in value for name in names)


def _are_known(rule: Any, value: Any, schema: Any) -> bool:
    return rule is True or (
        type(value) is dict and value.keys() <= schema.get("properties", {}).keys()
    )


def _all_fit(schema: Any, value: Any, _: Any) -> bool:
    return type(value) is not list or all(fits(schema, item) for item in value)


def _is_one(values: Any, value: Any, _: Any) -> bool:
    return type(value) is str and value in values


def _always(*_: Any) -> bool:
    return True


_FITS: dict[str, Callable[[Any, Any, Any], bool]] = {
    "title": _always,
    "description": _always,
    "default": _always,
    "examples": _always,
    "format": _always,
    "type": _has_type,
    "properties": _have_fit,
    "required": _are_there,
    "additionalProperties": _are_known,
    "items": _all_fit,
    "enum": _is_one,
}
"""Keywords of most tools, and when a value surely keeps to one: (rule, value, schema)."""


def _pattern(_: Validator, pattern: Any, instance: Any, __: Any) -> Iterator[Any]:
    """The keyword `pattern`, except where evaluating it may never end."""
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    if not isinstance(instance, str) or _steps(pattern, len(instance)) > MAX_STEPS:
        return
    if not re.search(pattern, instance):
        yield ValidationError(f"{instance[:80]!r} does not match {pattern!r}")


def _steps(pattern: str, length: int) -> float:
    """An upper bound of the steps of searching a text of that length; infinite if none is known.

    Every repetition multiplies them by the length, every choice by two; a repeated group may take
    exponentially many. Marks inside a class are counted as well, which errs on the safe side.
    """
    if _REPEATED_GROUP.search(pattern):
        return math.inf
    repetitions = sum(pattern.count(char) for char in "*+{")
    choices = sum(pattern.count(char) for char in "?|")
    exponent = (1 + repetitions) * math.log2(length + 2) + choices
    return math.inf if exponent > 64 else 2.0**exponent


def _refuse_costly_keys(schema: Any) -> None:
    """Raises BrokenSchemaFault: a pattern of keys that could run away.

    Other keywords than `patternProperties` evaluate these patterns too, so one is refused at once.
    """
    if isinstance(schema, list):
        for item in schema:
            _refuse_costly_keys(item)
    elif isinstance(schema, dict):
        patterns = schema.get("patternProperties")
        for pattern in patterns if isinstance(patterns, dict) else ():
            if _steps(pattern, KEY_LENGTH) > MAX_STEPS:
                raise BrokenSchemaFault(f"a pattern of keys that may run away: {pattern[:80]!r}")
        for item in schema.values():
            _refuse_costly_keys(item)


def _brief(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {' '.join(str(text).split())[:200]}"
