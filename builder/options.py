"""Defines how rooms declare their options, each once.

An option type is a frozen dataclass. Its fields are the keys of a YAML section, their types define
the valid values (`Literal` for a choice, `float` for a share from 0 to 1, `int` for a whole number
from 1), and their defaults apply. The configuration, the manifest and the command line are derived
from it. Field metadata expresses what a type cannot.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import Field, fields
from functools import cache, wraps
from inspect import signature
from typing import Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from builder.problem import UsageError, nearest

Metadata = Mapping[str, Any]
Kind = TypeVar("Kind")

Preset = Literal["sft", "sft-thinking", "agentic", "publish"]
"""The names of the files in configs/presets/."""

Number = NewType("Number", float)
"""The type of any finite number."""

Scalar = NewType("Scalar", object)
"""The type of any text, number, true, false or null."""

INLINE: Metadata = {"inline": True}
"""The keys of this option type appear in the section that contains the field."""

SUPPLIED: Metadata = {"supplied": True}
"""The program fills in the value at run time: it is not a key."""


DERIVED: Metadata = {"supplied": True, "derived": True}
"""Like SUPPLIED; the value follows from others that identify a result."""


def at_least(minimum: int) -> Metadata:
    """Returns the metadata of a whole number with a smallest value other than 1."""
    return {"minimum": minimum}


def named(key: str) -> Metadata:
    """Returns the metadata of a field whose key is not a valid Python name."""
    return {"key": key}


def key_of(item: Field[Any]) -> str:
    """Returns the key of the field."""
    return str(item.metadata.get("key", item.name))


def minimum_of(item: Field[Any]) -> int:
    """Returns the smallest value of a whole number."""
    return int(item.metadata.get("minimum", 1))


def is_inline(item: Field[Any]) -> bool:
    """Returns whether the fields of its option type are the keys."""
    return bool(item.metadata.get("inline"))


def is_derived(item: Field[Any]) -> bool:
    """Returns whether the value follows from others."""
    return bool(item.metadata.get("derived"))


def is_key(item: Field[Any]) -> bool:
    """Returns whether a user may set the field."""
    return not item.metadata.get("supplied")


def refusing_unknown(kind: type[Kind]) -> type[Kind]:
    """Decorates an option type: an unknown name raises UsageError, with the nearest key.

    The constructor of a dataclass would raise a TypeError without it.
    """
    made: Any = kind.__init__
    known = [item.name for item in fields(cast("Any", kind)) if is_key(item)]

    @wraps(made)
    def init(self: Any, *args: Any, **values: Any) -> None:
        for name in values.keys() - signature(made).parameters.keys():
            raise UsageError(f"{kind.__name__}: {name!r}: no such key{nearest(name, known)}")
        made(self, *args, **values)

    setattr(kind, "__init__", init)  # noqa: B010 - mypy refuses the assignment to a constructor
    return kind


def check_values(options: Any) -> None:
    """Raises UsageError for a choice, flag or number that the type of its field does not have.

    Option types call it when they are made, so that a caller's mistake is reported where it is.
    """
    kind: Any = type(options)
    for name, hint in _checked(kind):
        value = getattr(options, name)
        if not _is_valid(hint, value):
            kind = f"{type(options).__name__}.{name}"
            raise UsageError(
                f"{kind}: must be {_expected(hint)}, found {value!r}{_hint(hint, value)}"
            )


@cache
def _checked(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((item.name, hints[item.name]) for item in fields(kind) if is_key(item))


def _is_valid(hint: Any, value: object) -> bool:
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return any(_is_valid(item, value) for item in get_args(hint))
    if hint is bool or hint is types.NoneType:
        return isinstance(value, hint)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is str:
        return isinstance(value, str)
    return True


def _expected(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(map(_expected, get_args(hint)))
    names = {bool: "True or False", int: "a whole number", str: "text", types.NoneType: "None"}
    return names.get(hint, str(hint))


def _hint(hint: Any, value: object) -> str:
    """Returns the nearest choice, where there is one."""
    if get_origin(hint) is not Literal or not isinstance(value, str):
        return ""
    hint_text = nearest(value, get_args(hint))
    return hint_text if "did you mean" in hint_text else ""
