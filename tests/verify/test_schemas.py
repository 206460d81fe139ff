"""Validation of arguments: compared with `jsonschema`, and bounded for any schema."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError

from builder.verify.schemas import BrokenSchemaFault, violations

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(-4, 4, width=16),
    st.sampled_from(["string", "object", "integer", "", "a", "ab"]),
    st.lists(st.sampled_from(["string", "a", "a", 1, None]), max_size=3),
)
KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["string", "integer", "number", "object", "array", "null", "boolean"]),
    "required": st.lists(st.sampled_from(["a", "b"]), unique=True, max_size=2),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "minimum": st.integers(-2, 3),
    "maxLength": st.integers(0, 2),
    "minItems": st.integers(0, 2),
    "uniqueItems": st.booleans(),
    "pattern": st.sampled_from(["^a", "b$", "^[a-z]+$"]),
}


def schemas() -> st.SearchStrategy[Any]:
    """Schemas that are valid under the meta-schema, with the keywords that tools use."""

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(inner, min_size=1, max_size=2)
        named = st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
        applied = {
            "properties": named, "patternProperties": named, "items": inner, "not": inner,
            "anyOf": several, "oneOf": several, "allOf": several, "additionalProperties": inner,
            "prefixItems": several, "if": inner, "then": inner, "else": inner,
        }  # fmt: skip
        return st.fixed_dictionaries({}, optional={**KEYWORDS, **applied})

    flat = st.fixed_dictionaries({}, optional=KEYWORDS)
    return st.recursive(st.one_of(flat, st.booleans()), nested, max_leaves=6)


ARGUMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.recursive(
        VALUES,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        ),
        max_leaves=4,
    ),
    max_size=3,
)


def definition(parameters: Any) -> str:
    return json.dumps({"type": "function", "function": {"name": "f", "parameters": parameters}})


@given(schemas(), ARGUMENTS)
def test_the_verdict_is_that_of_jsonschema(schema: Any, arguments: Any) -> None:
    if not isinstance(schema, dict):
        return
    Draft202012Validator.check_schema(schema)
    found = violations(definition(schema), arguments)
    assert (found == []) == Draft202012Validator(schema).is_valid(arguments)


def test_a_violation_names_its_path_and_is_not_taken_for_a_keyword() -> None:
    schema = {"properties": {"pattern": {"type": "integer"}, "b": {"items": {"type": "null"}}}}
    found = violations(definition(schema), {"pattern": "(", "b": [None, 1]})
    assert [text.partition(":")[0] for text in found] == ["$.b[1]", "$.pattern"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "dict"},
        {"type": ["string", "string"]},
        {"required": "a"},
        {"properties": []},
        {"properties": {"a": 1}},
        {"items": {"type": "any"}},
        {"anyOf": []},
        {"minItems": -1},
        {"description": None},
    ],
)
def test_schemas_that_the_meta_schema_refuses_are_broken(schema: Any) -> None:
    with pytest.raises(SchemaError):
        Draft202012Validator.check_schema(schema)
    with pytest.raises(BrokenSchemaFault) as caught:
        violations(definition(schema), {})
    assert caught.value.code == "bad_schema"
    assert str(caught.value).startswith("$.")


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json"])
def test_nothing_is_fetched_or_read(address: str) -> None:
    with pytest.raises(BrokenSchemaFault) as caught:
        violations(definition({"$ref": address}), {})
    assert "expected value" not in str(caught.value), "the file was read"


def doubling(steps: int, through: Any) -> dict[str, Any]:
    """Returns a schema whose evaluation visits 2 to the power of `steps` definitions."""
    defs = {f"d{at}": through({"$ref": f"#/$defs/d{at + 1}"}) for at in range(steps)}
    defs[f"d{steps}"] = {"type": "string"}
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


HOSTILE = {
    "any of": (doubling(26, lambda ref: {"anyOf": [ref, ref]}), {"a": 1}),
    "one of": (doubling(26, lambda ref: {"oneOf": [ref, ref]}), {"a": 1}),
    "by property": (
        doubling(26, lambda ref: {"anyOf": [{"properties": {"a": ref}}] * 2}),
        nested(28),
    ),
    "circle": ({"$ref": "#"}, {}),
    "circle of two": ({"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"$ref": "#"}}}, {}),
    "own address": ({"$id": "http://x/", "$ref": "http://x/"}, {}),
    "enum of objects": (
        {"properties": {"a": {"items": {"enum": [{"x": at} for at in range(6000)]}}}},
        {"a": [{"x": at} for at in range(6000)]},
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_schema_that_would_take_too_long_is_not_evaluated(name: str) -> None:
    schema, arguments = HOSTILE[name]
    begun = time.monotonic()
    with pytest.raises(BrokenSchemaFault) as caught:
        violations(definition(schema), arguments)
    assert caught.value.code == "schema_too_complex"
    assert time.monotonic() - begun < 10, "hours would be no limit"


def test_unique_items_and_patterns_are_checked_in_linear_time() -> None:
    many = [{"x": at, "y": str(at)} for at in range(20_000)]
    schema = {"properties": {"a": {"uniqueItems": True}, "s": {"pattern": "^(a+)+$"}}}
    assert violations(definition(schema), {"a": many, "s": "a" * 10_000}) == []
    found = violations(definition(schema), {"a": [*many, many[0]], "s": "a" * 10_000 + "!"})
    assert len(found) == 2


def test_a_recursive_schema_is_evaluated() -> None:
    """A tree of nodes, as pydantic writes it."""
    node = {"properties": {"n": {"type": "integer"}, "c": {"items": {"$ref": "#/$defs/node"}}}}
    schema = {"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    tree: Any = {"n": 1, "c": [{"n": 2, "c": [{"n": "x"}]}] * 3}
    assert len(violations(definition(schema), {"tree": tree})) == 3
