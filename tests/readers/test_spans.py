"""Spans in any order and any part of a file give the same conversations."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.places import CASES

from builder.conversation import Conversation, Message, ToolCall
from builder.ledger import call_keys
from builder.readers.traces import spans
from builder.readers.traces.span_log import read_spans
from builder.readers.traces.spans import branch, identifier, listed
from builder.sources.source import Source


def conversations(lines):
    source = Source("spans.jsonl", data="".join(f"{json.dumps(line)}\n" for line in lines).encode())
    events = [event for event in read_spans(source) if isinstance(event, Conversation)]
    visible = [(event.messages, event.tools, event.model, len(event.problems)) for event in events]
    return sorted(visible, key=repr)


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    "case",
    [
        "otel-genai/errors",
        "otel-genai/last-calls",
        "otel-genai/pydantic-ai",
        "otel-genai/openllmetry",
        "openinference/parallel",
        "openinference/plain",
        "mlflow/apis",
        "mlflow/faults",
        "mlflow/rows",
        "vercel-ai-sdk/spans",
    ],
)
def test_any_order_of_spans_gives_the_same_conversations(case):
    (path, *_) = sorted((CASES / case / "input").glob("*s.jsonl"), reverse=True)
    text = path.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    expected = conversations(lines)
    assert expected
    shuffle = random.Random(0).shuffle
    for _ in range(30):
        shuffle(lines)
        assert conversations(lines) == expected


def test_numbers_in_names_are_sorted_as_numbers():
    flat = {f"m.{number}.role": str(number) for number in (10, 2, 0, 1, 9, 3, 4, 5, 6, 7, 8)}
    assert [item["role"] for item in listed(branch(flat, "m"))] == [str(n) for n in range(11)]


def test_a_missing_number_leaves_a_gap():
    assert branch({"m.0.role": "user", "m.2.role": "user"}, "m") == [
        {"role": "user"},
        None,
        {"role": "user"},
    ]


def test_all_layouts_of_attributes_are_read_alike():
    flat = {"a.b.0.c.d": 1, "a.b.1.c.d": {"x.y": 2}}
    nested = {"a": {"b": [{"c": {"d": 1}}, {"c": {"d": {"x.y": 2}}}]}}
    mixed = {"a.b": [{"c.d": 1}, {"c.d": {"x.y": 2}}]}
    leaves = frozenset({"d"})
    assert branch(flat, "a.b", leaves) == branch(nested, "a.b", leaves)
    assert branch(flat, "a.b", leaves) == branch(mixed, "a.b", leaves)
    assert branch(flat, "a.b", leaves)[1] == {"c": {"d": {"x.y": 2}}}


def test_ids_in_any_encoding_become_hex():
    assert identifier("0x00000000000000AB") == "00000000000000ab"
    assert identifier("AAAAAAAAAKs=") == "00000000000000ab"
    assert identifier("0" * 32) == ""
    assert identifier("my-span") == "my-span"


def test_arguments_are_compared_by_value_in_the_ledger():
    def keys(arguments):
        call = ToolCall("add", arguments, "call_1", key="call_1")
        messages = (Message("assistant", (call,)),)
        content = Conversation(id="a", record="a", messages=messages)
        return call_keys(content, format="otel-genai", source="spans.jsonl")

    assert keys('{"a": 1}') == keys({"a": 1})
    assert keys('{"a": 1}') != keys({"a": 2})
    assert keys("{") != keys({})


NAMES = st.one_of(
    st.sampled_from(
        [
            *spans._SPAN_KEYS,
            *spans._CONTAINERS,
            *spans._ALL_PREFIXES,
            "name",
            "type",
            "message",
        ]
    ),
    st.sampled_from(["gen_ai.x", "attributes.llm", "attributes.gen_ai.x", "attributes.llm.a.b"]),
    st.text(max_size=4),
)
LOGGED = st.recursive(
    st.one_of(st.none(), st.sampled_from(["LLM", "gen_ai.event", "x"]), st.integers(0, 3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, LOGGED, min_size=1, max_size=4))
def test_values_ignored_by_recognition_identify_no_instrumentation(value):
    if not spans._may_be_spans(tuple(value)):
        for _, inner, log in spans._items(value):
            _, attributes, events, _ = spans._read_item(inner, log)
            assert spans._dialects(attributes, events) == []


def test_recognition_passes_over_most_logs():
    assert not spans._may_be_spans(("parentUuid", "type", "message", "uuid", "timestamp"))
