"""Tool definitions of any vendor become wrapped ones; no description is lost."""

from collections import Counter

import pytest

from builder.jsonio import dumps
from builder.normalize.tools import convert
from builder.readers.toolkit.tool_forms import is_execution

SIDE = {"side": {"type": "number"}}


def converted(**definition):
    changes = Counter()
    (tool,) = convert([{"name": "area", **definition}], changes)
    return tool["function"]["parameters"], changes


def test_required_names_next_to_the_parameters_are_moved_into_them():
    parameters = {"type": "object", "properties": SIDE}
    for given in ({}, {"required": None}, {"required": []}):
        got, changes = converted(parameters=parameters | given, required=["side"])
        assert got == {**parameters, "required": ["side"]}
        assert changes["tool_required_moved"] == 1
        assert "tool_keys_dropped" not in changes


def test_a_required_list_that_is_in_doubt_stays_where_it_is():
    parameters = {"type": "object", "properties": SIDE, "required": ["side"]}
    other = {"type": "object", "properties": SIDE}
    for schema, outside in (
        (parameters, ["side"]),
        (other, ["no_such"]),
        (other, [{}]),
        (other, 1),
    ):
        got, changes = converted(parameters=schema, required=outside)
        assert got == schema
        assert "tool_required_moved" not in changes
        assert changes["tool_keys_dropped"] == 1


def test_a_map_of_arguments_in_a_wrapped_definition_becomes_its_parameters():
    described = {"zone": {"type": "str, optional", "default": ""}, "day": {"type": "int"}}
    function = {"name": "clock", "arguments": described}
    changes = Counter()
    (tool,) = convert([{"type": "function", "function": function}], changes)
    assert tool["function"] == {
        "name": "clock",
        "parameters": {
            "type": "object",
            "properties": {"zone": {"type": "string", "default": ""}, "day": {"type": "integer"}},
            "required": ["day"],
        },
    }
    assert changes == {"tool_types_mapped": 1}
    for other in ({"parameters": {}, "arguments": described}, {"arguments": {"zone": 1}}):
        (kept,) = convert([{"type": "function", "function": {"name": "clock", **other}}], changes)
        assert kept["function"] == {"name": "clock", **other}


SCHEMA = {"type": "object", "properties": SIDE}


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": {"name": "area", "parameters": dumps(SCHEMA)}},
        {"type": "function", "function": dumps({"name": "area", "parameters": SCHEMA})},
        {"name": "area", "input_schema": dumps(SCHEMA)},
        {"name": "area", "parameters": {**SCHEMA, "properties": dumps(SIDE)}},
        dumps({"name": "area", "parameters": SCHEMA}),
    ],
)
def test_a_schema_that_is_json_text_is_decoded(definition):
    (tool,) = convert([definition], Counter())
    assert tool["function"] == {"name": "area", "parameters": SCHEMA}


def test_a_definition_that_cannot_be_read_is_named_by_its_key():
    changes = Counter()
    unread = [{"name": "area", "parameters": "side: number"}, {"type": "function", "ident": "a"}]
    assert convert(unread, changes) == []
    keys = {"unknown_key:tools.parameters": 1, "unknown_key:tools.ident": 1}
    assert changes == {"bad_tool": 2, **keys}


def test_a_description_that_is_json_text_stays_text():
    (tool,) = convert([{"name": "area", "description": "{}", "parameters": SCHEMA}], Counter())
    assert tool["function"]["description"] == "{}"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"tool_name": "f", "tool_args": {}, "result": "1"}, True),
        ({"tool": "f", "input": {}, "output": "1", "tool_call_id": "c"}, True),
        ({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}, True),
        ({"name": "f", "description": "d", "arguments": SCHEMA, "output": {}}, False),
        ({"name": "f", "input_schema": SCHEMA}, False),
    ],
)
def test_a_call_that_ran_is_no_definition(item, expected):
    assert is_execution(item) is expected
