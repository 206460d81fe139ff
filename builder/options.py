"""Declares options, each once, as fields of frozen dataclasses, and reads their values.

The type of a field defines the valid values (`Literal` for a choice, `float` for a share from 0 to
1, `int` for a whole number from 1); its metadata expresses what a type cannot. Keys of a
configuration and arguments of Python code are checked by the same `FieldReader`.
"""

from __future__ import annotations

import os
import types
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from builder.brief import brief, shown
from builder.conversation import Json
from builder.paths import UserPath
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


def options(kind: type[Kind]) -> type[Kind]:
    """Decorates an option type: its constructor raises UsageError for each unknown or wrong value.

    The constructor of a dataclass would raise a TypeError, or nothing. Sections may be dicts, lists
    one item. The repr has the keys whose values are not the defaults.
    """
    made: Any = kind.__init__
    known = [item.name for item in fields(cast("Any", kind)) if is_key(item)]

    @wraps(made)
    def init(self: Any, *args: Any, **values: Any) -> None:
        for name in values.keys() - signature(made).parameters.keys():
            raise UsageError(f"{kind.__name__}: {name!r}: no such key{nearest(name, known)}")
        made(self, *args, **values)
        reader = FieldReader(Path())
        for name, hint, minimum in _checked(cast("Any", kind)):
            value = reader.value(hint, as_document(getattr(self, name)), name, minimum)
            object.__setattr__(self, name, value)
        if reader.faults:
            raise UsageError("\n".join(f"{kind.__name__}.{fault}" for fault in reader.faults))

    def changed(self: Any) -> str:
        default = kind()
        return brief(
            self, **{n: v for n in known if (v := getattr(self, n)) != getattr(default, n)}
        )

    setattr(kind, "__repr__", changed)  # noqa: B010 - as below
    setattr(kind, "__init__", init)  # noqa: B010 - mypy refuses the assignment to a constructor
    return kind


@cache
def _checked(kind: Any) -> tuple[tuple[str, Any, int], ...]:
    hints = get_type_hints(kind)
    keys = (item for item in fields(kind) if is_key(item) and not is_inline(item))
    return tuple((item.name, hints[item.name], minimum_of(item)) for item in keys)


_MAX_NUMBER = (1 << 31) - 1
"""The largest whole number: even as MB, its bytes fit into 64 bits."""

REFUSED = object()
"""Returned in place of a refused value, whose fault has been recorded."""


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Checks YAML values against option dataclasses, and collects the faults.

    base      the folder to which paths are relative
    sections  {name of a key: its path}, for hints about keys in the wrong section
    """

    base: Path
    sections: Mapping[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def section(self, kind: type, value: object, key: str) -> object:
        """Returns a `kind` from a mapping (None: all defaults), or REFUSED.

        Python code may pass one that is made; a text is the one key of a section that has `SHORT`.
        """
        if isinstance(value, kind):
            return value
        if value is None:
            value = {}
        short = getattr(kind, "SHORT", None)
        if isinstance(value, str) and short is not None:
            value = {short: value}
        known = keys_of(kind)
        if not isinstance(value, dict):
            names = ", ".join(known)
            few = f" ({names})" if key and len(names) < 60 else ""
            return self._refuse(key, f"a mapping of keys{few}", value)
        for name in value:
            if name not in known:
                path = f"{key}.{name}" if key else str(name)
                self.faults.append(f"{path}: unknown key{self._hint(str(name), known)}")
        return self._build(kind, value, key)

    def _hint(self, name: str, known: Collection[str]) -> str:
        """Returns a hint for an unknown key: the same key in another section, or a similar one."""
        other = self.sections.get(name)
        return f", did you mean {other!r}?" if other else nearest(name, known)

    def _build(self, kind: type, value: Mapping[Any, object], key: str) -> object:
        hints = get_type_hints(kind)
        values: dict[str, object] = {}
        for item in filter(is_key, fields(kind)):
            if is_inline(item):
                values[item.name] = self._build(hints[item.name], value, key)
                continue
            name = key_of(item)
            path = f"{key}.{name}" if key else name
            if name in value:
                values[item.name] = self.value(
                    hints[item.name], value[name], path, minimum_of(item)
                )
            elif item.default is MISSING and item.default_factory is MISSING:
                if not self._is_mistyped(key, name):
                    self.faults.append(f"{path}: is missing")
                values[item.name] = REFUSED
        return REFUSED if REFUSED in values.values() else kind(**values)

    def _is_mistyped(self, section: str, name: str) -> bool:
        ends = f", did you mean {name!r}?"
        return any(one.startswith(section) and one.endswith(ends) for one in self.faults)

    def value(self, kind: object, value: object, key: str, minimum: int = 1) -> object:
        """Returns the value of a field of type `kind`, or REFUSED."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Literal:
            return self._choice(arguments, value, key)
        if origin in (Union, types.UnionType):
            if value is None and types.NoneType in arguments:
                return None
            sections = [one for one in arguments if _is_section(one)]
            is_section_value = bool(sections) and isinstance(value, dict | sections[0])
            chosen = sections[0] if is_section_value else arguments[0]
            return self.value(chosen, value, key, minimum)
        if origin is tuple:
            return self._items(arguments[0], value, key)
        if origin is Mapping:
            return self._mapping(arguments, value, key)
        if _is_section(kind):
            return self.section(cast("type", kind), value, key)
        if kind is Scalar:
            is_scalar = value is None or isinstance(value, str | int | float)
            return value if is_scalar else self._refuse(key, "text, a number, true or false", value)
        if kind is bool:
            return value if isinstance(value, bool) else self._refuse(key, "true or false", value)
        if kind is Number:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else self._refuse(key, "a number", value)
        if kind in (int, float):
            is_bool = isinstance(value, bool)  # a subclass of int
            if kind is float:
                if isinstance(value, int | float) and not is_bool and 0 <= value <= 1:
                    return float(value)
                return self._refuse(key, "a share from 0 to 1", value)
            if isinstance(value, int) and not is_bool and minimum <= value <= _MAX_NUMBER:
                return value
            return self._refuse(key, f"a whole number from {minimum} to {_MAX_NUMBER}", value)
        if kind is UserPath and isinstance(value, UserPath):
            return value
        if not isinstance(value, str) or not value:
            return self._refuse(key, "text", value)
        if kind is not UserPath:
            return value
        if "\0" in value:
            return self._refuse(key, "a path without NUL", value)
        return UserPath(value, self.base)

    def _choice(self, choices: tuple[str, ...], value: object, key: str) -> object:
        if value is False and "off" in choices:
            return "off"  # a boolean in YAML 1.1
        if isinstance(value, str) and value in choices:
            return value
        hint = nearest(value, choices) if isinstance(value, str) else ""
        hint = hint if "did you mean" in hint else ""  # the choices are in the message
        return self._refuse(key, f"one of {', '.join(choices)}", value, hint)

    def _items(self, kind: object, value: object, key: str) -> object:
        if value is None:
            return ()
        is_short = isinstance(value, str) and hasattr(kind, "SHORT")
        if is_short or (kind is UserPath and not isinstance(value, list)):
            one = self.value(kind, value, key)
            return REFUSED if one is REFUSED else (one,)
        if not isinstance(value, list):
            return self._refuse(key, "a list", value)
        items = [self.value(kind, item, f"{key}[{index}]") for index, item in enumerate(value)]
        if REFUSED in items:
            return REFUSED
        if get_origin(kind) is Literal and len(set(items)) < len(items):
            self.faults.append(f"{key}: a name occurs twice: {', '.join(value)}")
            return REFUSED
        return tuple(items)

    def _mapping(self, kinds: tuple[Any, ...], value: object, key: str) -> object:
        """Returns a mapping, or REFUSED; its keys are the choices of a Literal, or any text."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            return self._refuse(key, "a mapping of keys", value)
        names = get_args(kinds[0])
        mapping: dict[str, object] = {}
        for name, item in value.items():
            path = f"{key}.{name}"
            if not isinstance(name, str) or (names and name not in names):
                self.faults.append(f"{path}: unknown key{nearest(str(name), names)}")
            elif item is not None:
                mapping[name] = self.value(kinds[1], item, path)
        return REFUSED if REFUSED in mapping.values() else mapping

    def _refuse(self, key: str, expected: str, value: object, hint: str = "") -> object:
        names = {dict: "a mapping", list: "a list", type(None): "nothing"}
        found = names.get(type(value)) or shown(value)
        self.faults.append(f"{key or 'the file'}: must be {expected}, found {found}{hint}")
        return REFUSED


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and is_dataclass(kind) and kind is not UserPath


def as_document(value: object) -> object:
    """Returns a value of Python code as YAML would have it: lists for tuples, texts for paths.

    Option types stay as they are.
    """
    if isinstance(value, Mapping):
        return {key: as_document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_document(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def keys_of(kind: type) -> dict[str, Field[Any]]:
    """Returns the keys of a section, including those of inlined dataclasses."""
    hints = get_type_hints(kind)
    keys: dict[str, Field[Any]] = {}
    for item in filter(is_key, fields(kind)):
        keys.update(keys_of(hints[item.name]) if is_inline(item) else {key_of(item): item})
    return keys


def places_of_keys(kind: type) -> dict[str, str]:
    """Returns {name of a key in a section: its path}: {"unit": "normalize.unit"}."""
    hints = get_type_hints(kind)
    return {
        name: f"{key_of(item)}.{name}"
        for item in filter(is_key, fields(kind))
        if is_dataclass(hints[item.name])
        for name in keys_of(cast("type", hints[item.name]))
    }


def plain(value: object) -> Json:
    """Returns a value as JSON: an option dataclass as an object, a path in its published form."""
    if isinstance(value, UserPath):
        return value.published
    if is_dataclass(value) and not isinstance(value, type):
        values: dict[str, Json] = {}
        for item in filter(is_key, fields(value)):
            inner = plain(getattr(value, item.name))
            if is_inline(item):
                values.update(cast("dict[str, Json]", inner))
            else:
                values[key_of(item)] = inner
        return values
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return cast("Json", value)
