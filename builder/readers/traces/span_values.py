"""Decodes values in spans: OTLP's AnyValue, JSON in strings, ids, and dotted attribute names.

Source: docs/formats/otel-genai.md, docs/formats/openinference.md.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TypeAlias

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, json_in_text

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")
_ANY = re.compile(r"(string|int|double|bool|array|kvlist|bytes)_?[vV]alue")
_DIGITS = re.compile(r"[0-9]{1,6}")
_BEGINNINGS = '{["-0123456789tfnNI\ufeff'
"""Characters with which a JSON text may begin."""
_MAX_STEPS = 12
"""Maximum depth of a dotted name; no convention needs more."""


def attributes(value: Json) -> dict[str, Json]:
    """Returns attributes by name, from an object or from OTLP's list of {key, AnyValue}."""
    if isinstance(value, dict):
        return dict(value)
    pairs = as_dicts(value)
    return {as_str(pair.get("key")): any_value(pair.get("value")) for pair in pairs}


def any_value(value: Json) -> Json:
    """Converts OTLP's AnyValue to a JSON value; returns any other value unchanged."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((key, inner),) = value.items()
    match = _ANY.fullmatch(key)
    kind = match[1] if match else ""
    if kind == "array":
        return [any_value(item) for item in as_list(inner, "values")]
    if kind == "kvlist":
        return attributes(as_dict(inner).get("values"))
    if kind == "int" and isinstance(inner, str) and re.fullmatch(r"-?[0-9]{1,20}", inner):
        return int(inner)
    return inner if kind else value


def decoded(value: Json) -> Json:
    """Decodes a string that is JSON; returns other values and other text unchanged."""
    return json_in_text(value, beginnings=_BEGINNINGS)


def is_cut(value: Json) -> bool:
    """Returns whether a value is JSON text that a limit on the length of values truncated."""
    return isinstance(value, str) and value.lstrip()[:1] in ("[", "{") and decoded(value) is value


def identifier(value: Json) -> str:
    """Returns an id in lower-case hex, from hex or from base64 of 8 or 16 bytes.

    Returns "" for an id of zeros only, and any other string unchanged.
    """
    text = as_str(value)
    if match := _HEX.fullmatch(text):
        return "" if set(match[1]) == {"0"} else match[1].lower()
    if len(text) in (12, 24) and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return text
    return text


def dotted(name: str, value: Json) -> dict[str, Json]:
    """Flattens attributes that a store nested by the segments of their names.

    Objects below the third level stay values.
    """
    tree: dict[str, Json] = {name: value}
    for _ in range(3):
        below: dict[str, Json] = {}
        for start, item in tree.items():
            if isinstance(item, dict):
                below.update((f"{start}.{key}", inner) for key, inner in item.items())
            else:
                below[start] = item
        tree = below
    return tree


# -- names that are paths ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value of an attribute, in contrast to an object made from dotted names."""

    value: Json


_Node: TypeAlias = "dict[str, _Node] | _Leaf"


def branch(values: dict[str, Json], path: str, leaves: frozenset[str] = frozenset()) -> Json:
    """Returns the value at a path: dotted names become objects, numbered objects become lists.

    Flat names, nested objects and lists of objects with dotted names may be mixed. The value of a
    name in `leaves` stays as it is. A gap in the numbers of a list becomes one None.
    """
    steps = path.split(".")
    prefixes = {".".join(steps[:end]) for end in range(1, len(steps) + 1)}
    root: dict[str, _Node] = {}
    for name, value in values.items():
        if name in prefixes or name.startswith(path + "."):
            _insert(root, name, value, leaves, _MAX_STEPS)
    node: _Node | None = root
    for step in steps:
        node = node.get(step) if isinstance(node, dict) else None
    return None if node is None else _to_json(node)


def _insert(
    node: dict[str, _Node], name: str, value: Json, leaves: frozenset[str], levels: int
) -> None:
    *parents, last = name.split(".", _MAX_STEPS)
    for step in parents:
        node = _child(node, step)
    inner = value if last not in leaves and levels else None
    if isinstance(inner, list) and any(isinstance(item, dict) for item in inner):
        inner = {str(number): item for number, item in enumerate(inner)}
    if isinstance(inner, dict):
        node = _child(node, last)
        for key, item in inner.items():
            _insert(node, key, item, leaves, levels - 1)
    elif not isinstance(node.get(last), dict):
        node[last] = _Leaf(value)


def _child(node: dict[str, _Node], step: str) -> dict[str, _Node]:
    """Returns the object at a segment; replaces a value whose name is a prefix of other names."""
    child = node.get(step)
    if not isinstance(child, dict):
        child = node[step] = {}
    return child


def _to_json(node: _Node) -> Json:
    if isinstance(node, _Leaf):
        return node.value
    if not node or not all(_DIGITS.fullmatch(key) for key in node):
        return {key: _to_json(item) for key, item in node.items()}
    return _in_order({int(key): _to_json(item) for key, item in node.items()})


def _in_order(items: dict[int, Json]) -> list[Json]:
    ordered: list[Json] = []
    due = 0
    for number in sorted(items):
        ordered += [None] if number > due else []
        ordered.append(items[number])
        due = number + 1
    return ordered


def listed(value: Json) -> list[Json]:
    """Returns the entries of a list that `branch` made, without keys that are not numbers."""
    fields = as_dict(value)
    numbered = {int(key): item for key, item in fields.items() if _DIGITS.fullmatch(key)}
    return _in_order(numbered) if numbered else as_list(value)
