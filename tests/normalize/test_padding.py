"""Nulls of Arrow's structs: removed by the schema, and only where there is a sign of them."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.conversations.messages import normalised, user

from builder.conversation import Conversation, Message, ToolCall
from builder.normalize.calls import is_padded, unpadded
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.readers import read_events, readers
from builder.sources.source import Source

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string"},
        "limit": {"type": ["integer", "null"]},
        "any": {"description": "anything"},
        "area": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "list": {"type": "array", "items": {"properties": {"y": {"type": "string"}}}},
    },
    "required": ["city"],
}  # fmt: skip
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"city": None, "unit": None}, {"city": None}),
        (
            {"city": "Oslo", "limit": None, "any": None},
            {"city": "Oslo", "limit": None, "any": None},
        ),
        ({"city": "Oslo", "other": None}, {"city": "Oslo"}),
        ({"city": "Oslo", "area": {"x": 1, "z": None}}, {"city": "Oslo", "area": {"x": 1}}),
        ({"list": [{"y": "a", "z": None}, {"y": None}]}, {"list": [{"y": "a"}, {}]}),
    ],
)
def test_a_null_stays_where_the_schema_requires_or_allows_it(arguments, expected):
    assert unpadded(arguments, SCHEMA, Counter()) == expected


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"type": "object", "properties": None}, True),
        ({"type": "object", "properties": {"city": None}}, True),
        ({"properties": {"city": {"type": "string", "enum": None}}}, True),
        ({"properties": {"cities": {"type": "array", "items": None}}}, True),
        ({"properties": {"city": {"type": "string", "default": None, "title": None}}}, False),
        ({"properties": {"city": {"enum": ["Oslo", None]}}}, False),
        (None, False),
    ],
)
def test_definitions_tell_that_they_were_padded(parameters, expected):
    assert is_padded([{"name": "f", "description": None, "parameters": parameters}]) is expected


def arguments_of(conversation):
    return normalise(conversation, NormalizeOptions()).dialogue.turns[-1].calls[0].arguments


def asking(arguments, tools, **fields):
    messages = (user("q"), Message("assistant", (ToolCall("f", arguments, "c"),)))
    return Conversation(id="c", record="r", messages=messages, tools=tools, complete=True, **fields)


def test_nulls_without_a_sign_of_padding_are_the_models_own():
    given = {"city": "Oslo", "unit": None}
    assert arguments_of(asking(given, (TOOL,))) == given
    text = json.dumps({"city": "Oslo", "other": None})
    assert arguments_of(asking(text, (TOOL,), padded=True)) == json.loads(text)
    for signs in ({"padded": True}, {}):
        found = asking(given if signs else {**given, "other": None}, (TOOL,), **signs)
        assert arguments_of(found) == {"city": "Oslo"}


def test_definitions_lose_nulls_if_a_property_is_null():
    properties = {"city": {"type": "string", "enum": None, "default": None}, "x": None}
    parameters = {"type": "object", "properties": properties}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    got = normalised(user("q"), Message("assistant", (ToolCall("f", {"x": None}),)), tools=(tool,))
    (found,) = got.dialogue.tools
    cleaned = {"city": {"type": "string", "default": None}}
    assert found["function"]["parameters"]["properties"] == cleaned
    assert got.changes["null_padding"] == 2


def test_a_table_keeps_the_null_of_a_required_argument(tmp_path):
    def row(arguments):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        asked = {"role": "user", "content": "q", "tool_calls": None}
        answer = {"role": "assistant", "content": "", "tool_calls": [call]}
        return {"messages": [asked, answer], "tools": json.dumps([TOOL])}

    given = ({"city": None, "unit": None, "n": 1}, {"city": "Oslo", "unit": "C", "n": None})
    rows = list(map(row, given))
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    found = read_events(readers()["openai-chat"], Source("rows.parquet", path))
    expected = [{"city": None, "n": 1}, {"city": "Oslo", "unit": "C"}]
    assert list(map(arguments_of, found)) == expected
