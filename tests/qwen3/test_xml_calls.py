"""The XML dialect: what is written is read back with its types, or named as lost."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.strategies import json_values, texts

from builder.jsonio import dumps
from builder.qwen3.calls import JSON, XML_JSON, XML_PYTHON, ParseFault, read_value, signatures
from builder.sample import Call

TEXT, WHOLE, NUMBER, FLAG = ({"type": name} for name in ("string", "integer", "number", "boolean"))
MAYBE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
EITHER = {"type": ["string", "null"]}
MIXED = {"type": ["integer", "string"]}
THINGS = {"type": "object"}
KEPT = [
    ("plain", TEXT), ("123", TEXT), ("true", TEXT), ("  indented", TEXT), ("a\nb", TEXT),
    ("<html>\n</html>", TEXT), ("", TEXT), (5, WHOLE), (-7, WHOLE), (1.5, NUMBER), (3, NUMBER),
    (True, FLAG), (False, FLAG), (5, MAYBE), ("a", EITHER),
    ({"a": [1, "2", None, True]}, THINGS), ([1, "b"], {"type": "array"}), ("free text", {}),
    ("x", None), ("1", {"type": "string", "enum": ["1", "2"]}), ("not a number", WHOLE),
    ({"a": 1}, {"type": ["object", "null"]}), ("x", {"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
    ([], {"type": "array"}), ("b", {"enum": ["a", "b"]}),
]  # fmt: skip
LOST = [
    ("123", WHOLE, "xml_types"), ("123", {}, "xml_types"), ("123", None, "xml_types"),
    ("null", TEXT, "xml_types"), (5, TEXT, "xml_types"), (True, TEXT, "xml_types"),
    (None, TEXT, "xml_types"), ("true", FLAG, "xml_types"), ("yes", FLAG, "xml_types"),
    (5, {}, "xml_types"), (5, None, "xml_types"), ("5", MAYBE, "xml_types"),
    ('{"a": 1}', THINGS, "xml_types"), (2**53 + 1, NUMBER, "xml_types"),
    ("1", {"type": ["boolean", "string"]}, "xml_types"), ("1_000", MIXED, "xml_types"),
    (" 12", MIXED, "xml_types"), ("TRUE", {"type": ["boolean", "string"]}, "xml_types"),
    ({"a": 1}, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "xml_types"),
    ("< / parameter >", TEXT, "xml_markup"), ("a < parameter = b", TEXT, "xml_markup"),
    ("a\n", TEXT, "xml_markup"), ("\na", TEXT, "xml_markup"),
    ("</parameter>", TEXT, "xml_markup"), ("x </function> y", TEXT, "xml_markup"),
    ("<parameter=a>", TEXT, "xml_markup"), ("</tool_call>", TEXT, "xml_markup"),
    ("<|im_end|>", TEXT, "xml_markup"), ({"a": "</think>"}, THINGS, "xml_markup"),
]  # fmt: skip
each_dialect = pytest.mark.parametrize("dialect", [XML_JSON, XML_PYTHON], ids=["json", "python"])


def known(schema, name="a"):
    properties = {} if schema is None else {name: schema}
    function = {"name": "f", "parameters": {"type": "object", "properties": properties}}
    return signatures((dumps({"type": "function", "function": function}),))


def read(dialect, text, tools):
    return [dialect.read(found, text, tools) for found in dialect.find(text, 0)]


@each_dialect
@pytest.mark.parametrize(("value", "schema"), KEPT)
def test_a_value_that_is_read_back(dialect, value, schema):
    tools = known(schema)
    text = dialect.write(Call.of("f", {"a": value}))
    assert dialect.loss("f", {"a": value}, tools) is None
    assert [dumps(call.arguments) for call in read(dialect, text, tools)] == [dumps({"a": value})]


@each_dialect
@pytest.mark.parametrize(("value", "schema", "code"), LOST)
def test_a_value_that_a_parser_loses(dialect, value, schema, code):
    assert dialect.loss("f", {"a": value}, known(schema)).code == code


@pytest.mark.parametrize("schema", [MAYBE, EITHER])
def test_no_parser_but_sglang_reads_none_as_null(schema):
    """Coder and Qwen3.5 write Python's None, which vLLM takes for text."""
    assert XML_JSON.loss("f", {"a": None}, known(schema)) is None
    assert XML_PYTHON.loss("f", {"a": None}, known(schema)).code == "xml_types"


def test_spellings():
    call = Call.of("f", {"a": True, "b": None, "c": 1.0, "d": [True], "e": "t\nu", "g": ""})
    assert XML_PYTHON.write(call) == (
        "<tool_call>\n<function=f>\n<parameter=a>\nTrue\n</parameter>\n<parameter=b>\nNone\n"
        "</parameter>\n<parameter=c>\n1.0\n</parameter>\n<parameter=d>\n[true]\n</parameter>\n"
        "<parameter=e>\nt\nu\n</parameter>\n<parameter=g>\n\n</parameter>\n</function>\n</tool_call>"
    )
    assert "<parameter=a>\ntrue\n" in XML_JSON.write(call)
    assert (
        XML_JSON.write(Call.of("f", {})) == "<tool_call>\n<function=f>\n</function>\n</tool_call>"
    )


@pytest.mark.parametrize("name", ["", "a b", "a>b", "a<b", 'a"b'])
def test_a_name_that_cannot_be_written(name):
    lost = XML_JSON.loss(name, {}, {})
    assert (lost.code, lost.readable) == ("xml_markup", False)


@pytest.mark.parametrize("key", ["", " a", "a>b", "a\nb"])
def test_a_key_that_cannot_be_written(key):
    assert XML_JSON.loss("f", {key: "v"}, {}).code == "xml_markup"


PARAMETER = "<parameter=a>\n1\n</parameter>\n"
MALFORMED = [
    "<tool_call><function=f>\n</function>\n</tool_call>",
    "<tool_call>\n<function=f>\n<parameter=a>v</parameter>\n</function>\n</tool_call>",
    "<tool_call>\n<function=f>\n<parameter=a>\nv\n</function>\n</tool_call>",
    "<tool_call>\n<function=f>\nstray\n</function>\n</tool_call>",
    f"<tool_call>\n<function=f>\n{PARAMETER}{PARAMETER}</function>\n</tool_call>",
]


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_call_is_a_fault(text):
    with pytest.raises(ParseFault) as caught:
        read(XML_JSON, text, {})
    assert caught.value.code == "calls"


SCHEMAS = st.sampled_from([None, {}, TEXT, WHOLE, NUMBER, FLAG, MAYBE, EITHER, THINGS])


@each_dialect
@given(st.dictionaries(texts, json_values, max_size=3), SCHEMAS, st.sampled_from(["a", "b", ""]))
def test_whatever_is_not_lost_is_read_back(dialect, arguments, schema, name):
    """The law that training relies on: a call without a loss has one reading, the meant one."""
    tools = known(schema, name or next(iter(arguments), "a"))
    if dialect.loss("f", arguments, tools) is not None:
        return
    found = read(dialect, dialect.write(Call.of("f", arguments)), tools)
    assert len(found) == 1
    assert list(found[0].arguments) == list(arguments)
    assert found[0].arguments == arguments


@given(texts)
def test_any_text_is_read_without_an_exception(text):
    for found in XML_JSON.find(text, 0):
        with contextlib.suppress(ParseFault):
            XML_JSON.read(found, text, {})
    assert read_value(text, TEXT) == text


def test_json_calls_lose_nothing():
    assert JSON.loss("f", {"a": "</parameter>\n"}, {}) is None
