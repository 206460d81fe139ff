"""Reads values into option dataclasses by the types of their fields, and writes them back."""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from builder.conversation import Json
from builder.options import Number, Scalar, is_inline, is_key, key_of, minimum_of
from builder.paths import UserPath
from builder.problem import nearest

MAX_NUMBER = (1 << 31) - 1
"""The largest number of tokens or MB: as a number of bytes it still fits the system's integers."""

REFUSED = object()
"""Represents a value that was refused; its fault has been noted."""


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Checks YAML values against option dataclasses; faults are collected, not raised.

    `base` is the folder that paths are relative to, `sections` the path of each key of a section by
    its name.
    """

    base: Path
    sections: Mapping[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def section(self, kind: type, value: object, key: str) -> object:
        """Returns a `kind` from a mapping of its keys, or REFUSED. None: all defaults."""
        if value is None:
            value = {}
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
        """Returns the end of a message: a key of this name in another section, or the nearest."""
        other = self.sections.get(name)
        return f", did you mean {other!r}?" if other else nearest(name, known)

    def _build(self, kind: type, value: Mapping[Any, object], key: str) -> object:
        """Returns a `kind` from those of the values that are its keys."""
        hints = get_type_hints(kind)
        found: dict[str, object] = {}
        for item in filter(is_key, fields(kind)):
            if is_inline(item):
                found[item.name] = self._build(hints[item.name], value, key)
                continue
            name = key_of(item)
            path = f"{key}.{name}" if key else name
            if name in value:
                found[item.name] = self._value(
                    hints[item.name], value[name], path, minimum_of(item)
                )
            elif item.default is MISSING and item.default_factory is MISSING:
                self.faults.append(f"{path}: is missing")
                found[item.name] = REFUSED
        return REFUSED if REFUSED in found.values() else kind(**found)

    def _value(self, kind: object, value: object, key: str, minimum: int = 1) -> object:
        """Returns a value for a field of type `kind`, or REFUSED."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Literal:
            return self._choice(arguments, value, key)
        if origin in (Union, types.UnionType):
            return None if value is None else self._value(arguments[0], value, key, minimum)
        if origin is tuple:
            return self._items(arguments[0], value, key)
        if origin is Mapping:
            return self._mapping(arguments, value, key)
        if isinstance(kind, type) and is_dataclass(kind) and kind is not UserPath:
            return self.section(kind, value, key)
        if kind is Scalar:
            is_scalar = value is None or isinstance(value, str | int | float)
            return value if is_scalar else self._refuse(key, "text, a number, true or false", value)
        if kind is bool:
            return value if isinstance(value, bool) else self._refuse(key, "true or false", value)
        if kind is Number:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else self._refuse(key, "a number", value)
        if kind in (int, float):
            return self._number(kind, value, key, minimum)
        if not isinstance(value, str) or not value:
            return self._refuse(key, "text", value)
        if kind is not UserPath:
            return value
        if "\0" in value:
            return self._refuse(key, "a path without NUL", value)
        return UserPath(value, self.base)

    def _choice(self, choices: tuple[str, ...], value: object, key: str) -> object:
        if value is False and "off" in choices:
            return "off"  # YAML 1.1 reads the word as a boolean
        if isinstance(value, str) and value in choices:
            return value
        hint = nearest(value, choices) if isinstance(value, str) else ""
        return self._refuse(key, f"one of {', '.join(choices)}", value, hint)

    def _number(self, kind: object, value: object, key: str, minimum: int) -> object:
        """Returns a share from 0 to 1 for a float, a whole number from `minimum` for an int."""
        # bool is a subclass of int in Python, but not for a user
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if kind is float:
            good = is_number and 0 <= cast("float", value) <= 1
            return (
                float(cast("float", value))
                if good
                else self._refuse(key, "a share from 0 to 1", value)
            )
        if is_number and isinstance(value, int) and minimum <= value <= MAX_NUMBER:
            return value
        return self._refuse(key, f"a whole number from {minimum} to {MAX_NUMBER}", value)

    def _items(self, kind: object, value: object, key: str) -> object:
        if value is None:
            return ()
        if not isinstance(value, list):
            return self._refuse(key, "a list", value)
        found = [self._value(kind, item, f"{key}[{index}]") for index, item in enumerate(value)]
        if REFUSED in found:
            return REFUSED
        if get_origin(kind) is Literal and len(set(found)) < len(found):
            self.faults.append(f"{key}: a name occurs twice: {', '.join(value)}")
            return REFUSED
        return tuple(found)

    def _mapping(self, kinds: tuple[Any, ...], value: object, key: str) -> object:
        """Returns a mapping whose keys are those of a Literal, or any text."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            return self._refuse(key, "a mapping of keys", value)
        names = get_args(kinds[0])
        found: dict[str, object] = {}
        for name, item in value.items():
            path = f"{key}.{name}"
            if not isinstance(name, str) or (names and name not in names):
                self.faults.append(f"{path}: unknown key{nearest(str(name), names)}")
            elif item is not None:
                found[name] = self._value(kinds[1], item, path)
        return REFUSED if REFUSED in found.values() else found

    def _refuse(self, key: str, expected: str, value: object, hint: str = "") -> object:
        text = repr(value) if isinstance(value, (str, int, float, bool)) else _kind(value)
        self.faults.append(f"{key or 'the file'}: must be {expected}, found {text[:80]}{hint}")
        return REFUSED


def keys_of(kind: type) -> dict[str, Field[Any]]:
    """Returns the keys of a section, those of inlined dataclasses among them."""
    hints = get_type_hints(kind)
    found: dict[str, Field[Any]] = {}
    for item in filter(is_key, fields(kind)):
        found.update(keys_of(hints[item.name]) if is_inline(item) else {key_of(item): item})
    return found


def places_of_keys(kind: type) -> dict[str, str]:
    """Returns the path of each key of a section, by its name: {"unit": "normalize.unit"}."""
    hints = get_type_hints(kind)
    return {
        name: f"{key_of(item)}.{name}"
        for item in filter(is_key, fields(kind))
        if is_dataclass(hints[item.name])
        for name in keys_of(cast("type", hints[item.name]))
    }


def plain(value: object) -> Json:
    """Returns the value as JSON: an option dataclass as its keys, a path as published."""
    if isinstance(value, UserPath):
        return value.published
    if is_dataclass(value) and not isinstance(value, type):
        found: dict[str, Json] = {}
        for item in filter(is_key, fields(value)):
            inner = plain(getattr(value, item.name))
            if is_inline(item):
                found.update(cast("dict[str, Json]", inner))
            else:
                found[key_of(item)] = inner
        return found
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return cast("Json", value)


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)
