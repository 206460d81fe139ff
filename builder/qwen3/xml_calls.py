"""Implements the dialect of Qwen3-Coder and of Qwen3.5 and later: calls as XML-like tags.

    <tool_call>
    <function=NAME>
    <parameter=KEY>
    VALUE
    </parameter>
    </function>
    </tool_call>

A text value is written as it is, without quotes or escapes, so its type is not in the text: a
server's parser takes it from the tool's schema. `loss` states which calls no such parser is certain
to give back; docs/templates.md has the rules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from math import isfinite

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.dialect import CallText, Dialect, LostCall, ParseFault, Properties, Signatures
from builder.sample import Call

_OPENS = re.compile(r"<tool_call>\s*<function=")
_CLOSES = re.compile(r"</function>\s*</tool_call>")
_NAME = re.compile(r"[^<>\s\"'{}]+")
_KEY = re.compile(r"[^<>\n]+")
_PARAMETER = re.compile(r"<parameter=([^<>\n]+)>\n")
_PARAMETER_END = "\n</parameter>\n"
_MARKUP = re.compile(
    r"</?tool_call>|</?function[=>]|<\s*(?:/\s*)?parameter\s*[=>]"
    r"|</?think>|</?tool_response>|<\|"
)
"""What a value must not contain: no parser finds its end, or it is a control token."""

_BEGIN, _END = "<tool_call>\n<function=", "</function>\n</tool_call>"

Spelling = Callable[[Json], str]
"""Writes a value that is not text."""


def as_json(value: Json) -> str:
    """Writes a value as JSON (Coder-Next, Qwen3.6 and later)."""
    return dumps(value)


def as_python(value: Json) -> str:
    """Writes objects and lists as JSON, and scalars as Python does: True, None (Coder, Qwen3.5)."""
    return dumps(value) if isinstance(value, dict | list) else str(value)


def _write(call: Call, spelling: Spelling) -> str:
    texts = (
        f"<parameter={key}>\n{value if isinstance(value, str) else spelling(value)}\n</parameter>\n"
        for key, value in call.arguments.items()
    )
    return f"{_BEGIN}{call.name}>\n{''.join(texts)}{_END}"


def find_calls(text: str, start: int = 0) -> Iterator[CallText]:
    """Yields the calls from `start` on, in linear time."""
    while opens := _OPENS.search(text, start):
        closes = _CLOSES.search(text, opens.end())
        if closes is None:
            return
        yield CallText(opens.start(), closes.end(), text[opens.end() : closes.start()], opens.end())
        start = closes.end()


def _read(match: CallText, content: str, known: Signatures) -> Call:
    """Returns the call at a match of `find_calls`, its values typed by the tool's schema.

    Raises ParseFault (`calls`).
    """
    inner, inner_at = match.inner, match.inner_at
    whole = content[match.start : match.end]
    name, _, rest = inner.partition(">\n")
    if whole != f"{_BEGIN}{inner}{_END}" or not _NAME.fullmatch(name) or len(rest) == len(inner):
        raise ParseFault("calls", "the tags of a call are not on lines of their own", match.start)
    properties = known.get(name, {})
    arguments: dict[str, Json] = {}
    end = 0
    while end < len(rest):
        opens = _PARAMETER.match(rest, end)
        stop = rest.find(_PARAMETER_END, opens.end()) if opens else -1
        if opens is None or stop < 0 or opens[1] in arguments:
            detail = "a parameter is not written as <parameter=KEY>, a value, </parameter>"
            raise ParseFault("calls", detail, inner_at + len(inner) - len(rest) + end)
        arguments[opens[1]] = read_value(rest[opens.end() : stop], properties.get(opens[1]))
        end = stop + len(_PARAMETER_END)
    return Call.of(name, arguments)


_TEXT = frozenset({"string", "str", "text", "varchar", "char", "enum"})
_PYTHON: dict[str, Json] = {"True": True, "False": False, "None": None}


def read_value(text: str, schema: Json) -> Json:
    """Returns the value that a text means under its parameter's schema.

    Where only text is allowed it is the text. Otherwise it is the JSON value (or Python's True,
    False, None) if the schema allows its type or states none, else the text.
    """
    types = _types(schema)
    if types and types <= _TEXT:
        return text
    value = _decoded(text)
    if isinstance(value, str) or (types and not _is_allowed(value, types)):
        return text
    return value


def _decoded(text: str) -> Json:
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        return loads(text)
    except JsonFault:
        return text


def _types(schema: Json) -> frozenset[str]:
    """Returns the types that a schema allows; empty if it states none."""
    if not isinstance(schema, dict):
        return frozenset()
    stated = schema.get("type")
    if isinstance(stated, str):
        return frozenset({stated.lower()})
    if isinstance(stated, list):
        return frozenset(item.lower() for item in stated if isinstance(item, str))
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list):
            types = [_types(option) for option in options]
            return frozenset().union(*types) if all(types) else frozenset()
    for key in ("enum", "const"):
        if key in schema:
            values = schema[key] if key == "enum" else [schema[key]]
            listed = values if isinstance(values, list) else []
            return frozenset(_kind(value) for value in listed)
    return frozenset()


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")


def _is_allowed(value: Json, types: frozenset[str]) -> bool:
    kind = _kind(value)
    return kind in types or (kind in ("integer", "number") and bool(types & {"number", "integer"}))


def _by_first_type(text: str, schema: Json) -> Json:
    """Returns what SGLang's parser, and earlier ones of vLLM, make of a text: they use one type.

    They differ in unions: `_loss` asks only where both use the same type.
    """
    if text.lower() == "null":
        return None  # SGLang, for every type
    typed = schema.get("type") if isinstance(schema, dict) else None
    stated = "string" if typed is None else str(typed).strip().lower()
    if stated in _TEXT:
        return text
    if text.lower() == "none":
        return None
    try:
        if stated.startswith("int"):
            return int(text)
        if stated.startswith(("num", "float")):
            number = float(text)
            return int(number) if number.is_integer() else number
    except (ValueError, OverflowError):
        return text
    if stated in ("boolean", "bool"):
        return text.lower() == "true"
    if stated in ("object", "array"):
        with suppress(JsonFault):
            return loads(text)
    try:
        value: Json = ast.literal_eval(text) if len(text) < _LITERAL else text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value


def _by_rank(text: str, schema: Json) -> Json:
    """Returns what vLLM's parser makes of a text: it tries the types of the schema by rank."""
    types = _stated_types(schema)
    if types == _STRING:
        return text
    if "null" in types and text.lower() == "null":
        return None
    if types & {"integer", "number"}:
        with suppress(ValueError):
            return int(text)
    if "number" in types:
        with suppress(ValueError):
            if isfinite(number := float(text)):
                return int(number) if number.is_integer() else number
    if "boolean" in types and (word := text.lower().strip()) in _BOOLEANS:
        return _BOOLEANS[word]
    if "string" in types and not types & {"object", "array"}:
        return text
    try:
        return loads(text)
    except JsonFault:
        return text


_BOOLEANS: dict[str, Json] = {"true": True, "1": True, "false": False, "0": False}
_STRING = frozenset({"string"})
_NAMES = {**dict.fromkeys(_TEXT, "string"), "int": "integer", "float": "number", "bool": "boolean"}


def _stated_types(schema: Json) -> frozenset[str]:
    """Returns the types by which vLLM's parser reads: "string" for a part that states none."""
    if not isinstance(schema, dict):
        return _STRING
    stated, values = schema.get("type"), schema.get("enum")
    names = stated if isinstance(stated, list) else [stated]
    stated_names = {item.strip().lower() for item in names if isinstance(item, str)}
    types = {_NAMES.get(name, name) for name in stated_names}
    types.update(map(_kind, values if isinstance(values, list) else ()))
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key)
        for part in parts if isinstance(parts, list) else ():
            types |= _stated_types(part)
    return frozenset(types) or _STRING


_LITERAL = 1 << 12
"""Code points up to which a text may be a literal of Python."""


def _is_union(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    stated = schema.get("type")
    return isinstance(stated, list) or (stated is None and ("anyOf" in schema or "oneOf" in schema))


def _loss(
    name: str, arguments: Mapping[str, Json], known: Signatures, *, spelling: Spelling
) -> LostCall | None:
    """Returns why a parser would not give the call back, or None."""
    if not _NAME.fullmatch(name):
        reason = f"the name {name[:40]!r} cannot be written into <function=…>"
        return LostCall("xml_markup", reason, readable=False)
    properties: Properties = known.get(name, {})
    loss: LostCall | None = None
    for key, value in arguments.items():
        text = value if isinstance(value, str) else spelling(value)
        if not _KEY.fullmatch(key) or key != key.strip():
            reason = f"the key {key[:40]!r} cannot be written into <parameter=…>"
            return LostCall("xml_markup", reason, readable=False)
        if markup := _MARKUP.search(text):
            reason = f"{name}.{key}: the value contains {markup[0]}"
            return LostCall("xml_markup", reason, readable=False)
        if loss is not None:
            continue
        if text.startswith("\n") or text.endswith("\n"):
            loss = LostCall("xml_markup", f"{name}.{key}: the value begins or ends with a newline")
        elif not _survives(value, text, properties.get(key)):
            reason = f"{name}.{key}: {text[:40]!r} does not read back as {_kind(value)}"
            loss = LostCall("xml_types", reason)
    return loss


def _survives(value: Json, text: str, schema: Json) -> bool:
    """Returns whether every parser reads the text as the value."""
    if not _is_same(value, read_value(text, schema)):
        return False
    if not _is_same(value, _by_rank(text, schema)):
        return False
    return _is_union(schema) or _is_same(value, _by_first_type(text, schema))


def _is_same(one: Json, two: Json) -> bool:
    """Returns whether two values are equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if one is two or (isinstance(one, str) and one == two):
        return True
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, int | float) and isinstance(two, int | float):
        return one == two
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_is_same, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return list(one) == list(two) and all(_is_same(one[key], two[key]) for key in one)
    return False


def _stray(text: str) -> LostCall | None:
    """Returns why a text is read as a call: vLLM and llama.cpp need no `<tool_call>` before it."""
    if "<function=" not in text:
        return None
    return LostCall("xml_markup", "the text contains <function=, at which engines begin a call")


def _served(call: Call) -> Json:
    return call.arguments


def _dialect(spelling: Spelling) -> Dialect:
    return Dialect(
        "XML",
        partial(_write, spelling=spelling),
        find_calls,
        _read,
        partial(_loss, spelling=spelling),
        _stray,
        _served,
        plain=False,
    )


XML_PYTHON = _dialect(as_python)
XML_JSON = _dialect(as_json)
