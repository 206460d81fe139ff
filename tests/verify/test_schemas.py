"""The short cut past the meta-schema, held to `jsonschema`'s own check."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError

from builder.verify.schemas import _FITS, _PLAIN, fits, is_plain, violations

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(allow_nan=False),
    st.sampled_from(["string", "object", "integer", "any", "", "http://json-schema.org/x#"]),
    st.lists(st.sampled_from(["string", "a", "a", 1, None]), max_size=3),
)


def schemas() -> st.SearchStrategy[Any]:
    """Schemas of the keywords that are looked at, with values that fit and values that do not."""
    keywords = st.sampled_from([*_PLAIN, "pattern", "$ref", "$id", "not", "minLength"])

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        named = st.dictionaries(st.sampled_from(["a", "b", "pattern"]), inner, max_size=2)
        values = st.one_of(VALUES, inner, st.lists(inner, max_size=2), named)
        return st.dictionaries(keywords, values, max_size=4)

    return st.recursive(nested(VALUES), nested, max_leaves=6)


@given(schemas())
def test_what_is_plain_is_valid_to_the_meta_schema(schema: Any) -> None:
    if is_plain(schema):
        Draft202012Validator.check_schema(schema)


@given(schemas(), st.data())
def test_what_surely_fits_is_valid_to_jsonschema(schema: Any, data: st.DataObject) -> None:
    assume(is_plain(schema))
    value = data.draw(values_of(schema))
    if fits(schema, value):
        assert Draft202012Validator(schema).is_valid(value)


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values that may fit: of the type, with the properties, from the list; and any others."""
    found = [VALUES]
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        found.append(st.dictionaries(st.sampled_from(["a", "c"]), VALUES, max_size=2))
        found.append(
            st.fixed_dictionaries({}, optional={k: values_of(v) for k, v in properties.items()})
        )
        found.append(st.lists(values_of(schema.get("items", True)), max_size=3))
        found += [st.sampled_from(schema["enum"])] if schema.get("enum") else []
    return st.one_of(found)


FITTING = {
    "type": "object",
    "title": "t",
    "properties": {
        "path": {"type": "string", "description": "x", "format": "uri", "default": 1},
        "mode": {"enum": ["r", "w", 1]},
        "lines": {"type": "array", "items": {"type": "integer", "examples": [1]}},
        "deep": {"type": "object", "properties": {}, "additionalProperties": True},
        "scale": {"type": "number"},
    },
    "required": ["path"],
    "additionalProperties": False,
}
CALLS = [
    {"path": "a"},
    {"path": "a", "mode": "r", "lines": [], "deep": {"x": 1}},
    {"path": "a", "lines": [1, 2], "scale": 1.5},
]


@pytest.mark.parametrize("call", CALLS)
def test_calls_as_most_are_need_no_validator(call: Any) -> None:
    assert {*FITTING, *FITTING["properties"]["path"], "items", "enum", "examples"} >= _FITS.keys()
    assert fits(FITTING, call)


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"path": None},
        {"path": "a", "mode": "x"},
        {"path": "a", "lines": [1, "2"]},
        {"path": "a", "lines": [True]},
        {"path": "a", "scale": "1"},
        {"path": "a", "more": 1},
    ],
)
def test_a_call_that_breaks_its_schema_does_not_fit(call: Any) -> None:
    assert not Draft202012Validator(FITTING).is_valid(call)
    assert not fits(FITTING, call)


def test_a_call_as_deep_as_a_log_may_be_is_looked_at() -> None:
    """`jsonschema` goes deeper than the short cut, which then is not sure."""
    schema: Any = {"type": "string"}
    value: Any = "x"
    for _ in range(180):
        schema, value = {"type": "array", "items": schema}, [value]
    parameters = {"properties": {"a": schema}}
    text = json.dumps({"type": "function", "function": {"name": "f", "parameters": parameters}})
    assert violations(text, {"a": value}) == []


@pytest.mark.parametrize("keyword", ["minimum", "pattern", "anyOf", "const", "$ref", "$schema"])
def test_a_keyword_that_is_not_looked_at_is_left_to_jsonschema(keyword: str) -> None:
    assert not fits({"type": "object", keyword: {}}, {})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string", "description": "x"}}},
        {"type": "object", "properties": {}, "required": ["a"], "additionalProperties": False},
        {"anyOf": [{"type": "array", "items": {"enum": [1, "a"]}}, {"type": "null"}]},
    ],
)
def test_tools_as_most_are_need_no_meta_schema(schema: Any) -> None:
    assert is_plain(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "dict"},
        {"type": ["string", "string"]},
        {"required": "a"},
        {"required": ["a", "a"]},
        {"properties": []},
        {"properties": {"a": 1}},
        {"items": {"type": "any"}},
        {"anyOf": []},
        {"minItems": -1},
        {"maximum": True},
        {"description": None},
    ],
)
def test_what_the_meta_schema_refuses_is_not_plain(schema: Any) -> None:
    with pytest.raises(SchemaError):
        Draft202012Validator.check_schema(schema)
    assert not is_plain(schema)


def test_a_key_of_properties_is_no_keyword() -> None:
    text = (
        '{"type": "function", "function": {"name": "f", "parameters":'
        ' {"properties": {"pattern": {"type": "integer"}}}}}'
    )
    assert violations(text, {"pattern": "("}) == ["$.pattern: '(' is not of type 'integer'"]
