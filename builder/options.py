"""Defines how rooms declare their options, each once, as fields of a frozen dataclass.

Their types define the valid values (`Literal` for a choice, `float` for a share from 0 to 1, `int`
for a whole number from 1); field metadata expresses what a type cannot.
"""

from __future__ import annotations

import os
import types
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache, wraps
from inspect import signature
from typing import (
    Any,
    Literal,
    NewType,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from builder.brief import brief, shown
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

    The constructor of a dataclass would raise a TypeError without it. The repr has the keys whose
    values are not the defaults.
    """
    made: Any = kind.__init__
    known = [item.name for item in fields(cast("Any", kind)) if is_key(item)]

    @wraps(made)
    def init(self: Any, *args: Any, **values: Any) -> None:
        for name in values.keys() - signature(made).parameters.keys():
            raise UsageError(f"{kind.__name__}: {name!r}: no such key{nearest(name, known)}")
        made(self, *args, **values)

    def changed(self: Any) -> str:
        default = kind()
        return brief(
            self, **{n: v for n in known if (v := getattr(self, n)) != getattr(default, n)}
        )

    setattr(kind, "__repr__", changed)  # noqa: B010 - as below
    setattr(kind, "__init__", init)  # noqa: B010 - mypy refuses the assignment to a constructor
    return kind


def check_values(options: Any) -> None:
    """Raises UsageError for a choice, flag or number that the type of its field does not have.

    Option types call it when they are made, so that a caller's mistake is reported where it is.
    """
    kind: Any = type(options)
    for name, hint, minimum in _checked(kind):
        value = getattr(options, name)
        if get_origin(hint) is tuple:
            value = _items(get_args(hint)[0], value)
            object.__setattr__(options, name, value)
        if not _is_valid(hint, value, minimum):
            place = f"{kind.__name__}.{name}"
            expected = _expected(hint, minimum)
            raise UsageError(
                f"{place}: must be {expected}, found {shown(value)}{_hint(hint, value)}"
            )


@cache
def _checked(kind: Any) -> tuple[tuple[str, Any, int], ...]:
    hints = get_type_hints(kind)
    keys = (item for item in fields(kind) if is_key(item) and not is_inline(item))
    return tuple((item.name, hints[item.name], minimum_of(item)) for item in keys)


def _items(kind: Any, value: Any) -> Any:
    """Returns the items of a list as a tuple, paths as their type; one path is a list of it."""
    if is_dataclass(kind):
        paths = [value] if isinstance(value, str | os.PathLike) else value
        if isinstance(paths, list | tuple):
            make = cast("Any", kind)
            return tuple(make(os.fspath(one)) if _is_path(one) else one for one in paths)
    return tuple(value) if isinstance(value, list) else value


def _is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))


def _is_valid(hint: Any, value: object, minimum: int = 1) -> bool:
    if get_origin(hint) is tuple:
        is_list = isinstance(value, tuple)
        return is_list and all(_is_valid(get_args(hint)[0], one) for one in cast("Any", value))
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return any(_is_valid(item, value, minimum) for item in get_args(hint))
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= minimum
    if hint is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and 0 <= cast("float", value) <= 1
    return isinstance(value, hint) if isinstance(hint, type) else True


def _expected(hint: Any, minimum: int = 1) -> str:
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_expected(item, minimum) for item in get_args(hint))
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        choices = ", ".join(get_args(item)) if get_origin(item) is Literal else "texts"
        return f"a list of {'paths' if is_dataclass(item) else choices}"
    names = {
        bool: "True or False",
        int: f"a whole number of at least {minimum}",
        float: "a share from 0 to 1",
        str: "text",
        types.NoneType: "None",
    }
    return names.get(hint, str(hint))


def _hint(hint: Any, value: object) -> str:
    if get_origin(hint) is not Literal or not isinstance(value, str):
        return ""
    hint_text = nearest(value, get_args(hint))
    return hint_text if "did you mean" in hint_text else ""
