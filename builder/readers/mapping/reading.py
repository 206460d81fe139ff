"""Tells which keys of a record the paths of a mapping read, by their places and not by their names.

A path is followed through its syntax tree, once for a mapping: what remains is a tree of keys, to
which each record is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builder.conversation import Json
from builder.jsonio import loads_text
from builder.readers.mapping.spec import MappingSpec, search_tree

_SAME = frozenset({"merge", "max_by", "min_by", "not_null", "reverse", "sort", "sort_by",
                   "to_array"})  # fmt: skip
"""Functions that return their arguments, or items of them."""


@dataclass(slots=True)
class KeyPlace:
    """A value of a record that paths lead to, or past. A list is at the place of its items.

    is_whole   a path ends here: all inside is read
    is_tested  a filter compares it: it is known, and what is inside is not
    is_json    its text is decoded, and looked into
    keys       the places of its keys that paths name; `others` is that of any other key
    """

    is_whole: bool = False
    is_tested: bool = False
    is_json: bool = False
    keys: dict[str, KeyPlace] = field(default_factory=dict)
    others: KeyPlace | None = None

    def unread(self, value: Json) -> Iterator[tuple[str, Json]]:
        """Yields (path of keys, value) of each value of a record that no path reads."""
        pending: list[tuple[str, KeyPlace, Json]] = [("", self, value)]
        while pending:
            path, place, item = pending.pop()
            if place.is_whole or item is None:
                continue
            if place.is_json and isinstance(item, str):
                item = loads_text(item)
            if isinstance(item, list):
                pending += [(path, place, one) for one in item]
            elif isinstance(item, dict):
                before = f"{path}." if path else ""
                for key, one in item.items():
                    if (inner := place.keys.get(key)) is not None:
                        pending.append((before + key, inner, one))
                    elif place.others is not None:
                        pending.append((path, place.others, one))  # the key is an id
                    else:
                        yield before + key, one
            elif path and not place.is_tested:
                yield path, item  # where other records have an object, into which a path leads


_Value = KeyPlace | dict[str, list[Any]]
"""What a path finds: a place in the record, or an object that the path makes of such places."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a mapping reads of a record, and of a message. Both are one if records are messages."""

    record: KeyPlace
    message: KeyPlace


def reading_of(spec: MappingSpec) -> Reading:
    """Returns what the paths of a mapping read."""
    record = KeyPlace()
    message = record
    made: list[_Value] = []
    if spec.conversation.messages is not None:
        found = _follow(search_tree(spec.conversation.messages), [record])
        made = [one for one in found if isinstance(one, dict)]
        logged = [one for one in found if isinstance(one, KeyPlace)]
        _mark(logged, "is_whole")  # messages are compared one by one
        # What made messages are made of is compared in the record.
        message = KeyPlace(is_whole=not logged)
    messages = [message, *made]
    is_call = "call" in spec.message.roles.values()
    are_calls = is_call or spec.message.calls is None
    calls = _items(spec.message.calls, messages, are_items=are_calls)
    results = _items(spec.message.results, messages, are_items=spec.message.results is None)
    starts = {"message": messages, "message.call": calls, "message.result": results}
    for key, path in spec.paths():
        if key.startswith("conversation."):
            if key != "conversation.messages":
                _read_whole(path, [record])
        elif key not in ("records", "message.calls", "message.results"):
            _read_whole(path, starts[key.rpartition(".")[0]])
    for name in ("name", "arguments", "id") if is_call or spec.message.calls is not None else ():
        if getattr(spec.message.call, name) is None:
            _read_whole(name, calls)
    if spec.message.result.text is None and spec.message.text is not None:
        _read_whole(spec.message.text, results)
    return Reading(record, message)


def _items(path: str | None, messages: Sequence[_Value], *, are_items: bool) -> list[_Value]:
    """Returns where calls, or results, stand; `are_items`: messages may be such themselves."""
    found = [] if path is None else _follow(search_tree(path), messages)
    _mark(found, "is_json")  # a list may be JSON text; what is none is kept as it is
    _mark(found, "is_tested")
    return [*found, *(messages if are_items else [])]


def _read_whole(path: str, values: Sequence[_Value]) -> None:
    _mark(_follow(search_tree(path), values), "is_whole")


def _follow(node: Mapping[str, Any], values: Sequence[_Value], *, test: bool = False) -> list[Any]:
    children: Sequence[Mapping[str, Any]] = node["children"]
    match node["type"]:
        case "field":
            return [found for one in values for found in _key(one, node["value"])]
        case "subexpression" | "index_expression" | "pipe" | "projection" | "flatten":
            for child in children:
                values = _follow(child, values, test=test)
            return [*values]
        case "identity" | "current" | "index" | "slice":
            return [*values]
        case "value_projection":
            return _follow(children[1], _others(_follow(children[0], values)), test=test)
        case "filter_projection":
            found = _follow(children[0], values)
            _mark(_follow(children[2], found, test=True), "is_tested")
            return _follow(children[1], found, test=test)
        case "multi_select_dict":
            return [{one["value"]: _follow(one["children"][0], values) for one in children}]
        case "multi_select_list" | "or_expression":
            return [found for one in children for found in _follow(one, values, test=test)]
        case "and_expression":
            _mark(_follow(children[0], values, test=True), "is_tested")
            return _follow(children[1], values, test=test)
        case "comparator" | "not_expression":
            for child in children:
                _mark(_follow(child, values, test=True), "is_tested")
            return []
        case "function_expression":
            return _function(node["value"], children, values, test=test)
        case _:
            return []


def _function(
    name: str, children: Sequence[Mapping[str, Any]], values: Sequence[_Value], *, test: bool
) -> list[Any]:
    """Returns what a function finds; one that makes a value of its arguments reads them whole."""
    expressions = [one["children"][0] for one in children if one["type"] == "expref"]
    found = [one for child in children for one in _follow(child, values, test=test)]
    if name == "map":
        return [one for inner in expressions for one in _follow(inner, found, test=test)]
    for inner in expressions:
        _mark(_follow(inner, found, test=True), "is_tested")
    if name == "json":
        _mark(found, "is_json")
        return found
    if name == "values":
        return _others(found)
    if name in _SAME:
        return found
    _mark(found, "is_tested" if test else "is_whole")
    return []


def _key(value: _Value, key: str) -> list[Any]:
    if isinstance(value, dict):
        return value.get(key, [])
    return [value.keys.setdefault(key, KeyPlace())]


def _others(values: Iterable[_Value]) -> list[Any]:
    """Returns what stands under all keys of the values."""
    found: list[Any] = []
    for one in values:
        if isinstance(one, dict):
            found += [inner for item in one.values() for inner in item]
        else:
            one.others = one.others or KeyPlace()
            found += [one.others, *one.keys.values()]
    return found


def _mark(values: Iterable[_Value], flag: str) -> None:
    pending = [*values]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            pending += [inner for item in one.values() for inner in item]
        else:
            setattr(one, flag, True)
