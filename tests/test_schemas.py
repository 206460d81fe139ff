"""The short cut past the meta-schema, held to `jsonschema`'s own check."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError

from builder.schemas import _PLAIN, is_plain, violations

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
