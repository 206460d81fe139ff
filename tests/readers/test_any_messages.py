"""Platforms may log anything: reading it never raises, and the invariants hold."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.strategies import json_values
from support.places import CASES

from builder.conversation import Message
from builder.jsonio import dumps
from builder.readers import readers
from builder.readers.traces.any_vendor import (
    definitions,
    read_messages,
    read_outcome,
    read_request,
    system_text,
)
from builder.readers.traces.parts import PartNotes
from builder.sources.source import Source
from builder.testing import read_counted

READERS = [readers()[name] for name in ("langfuse", "langsmith", "langchain", "vercel-ai-sdk")]

NAMES = st.sampled_from(
    re.findall(r"\S+", """
    role content parts type text tool_calls function name arguments id args input output message
    messages choices candidates generations kwargs lc data additional_kwargs response_metadata
    tool_call_id toolCallId toolName toolInvocations toolInvocation state tools system contents
    finish_reason status reasoning thinking blocks block_type run_type inputs outputs traceId
    startTime observations trace metadata attributes parent_run_id dotted_order extra session_id
    History tool_call_chunks index invalid_tool_calls error value timestamp""")
)  # fmt: skip
WORDS = st.sampled_from(
    re.findall(r"\S+", """
    user assistant tool system human ai AIMessage HumanMessage constructor GENERATION AGENT llm
    function_call function_call_output tool-call tool-result tool_use tool_result step-start
    output-available completed remove x AIMessageChunk""")
)  # fmt: skip


def nested(inner):
    objects = st.dictionaries(NAMES, inner, max_size=5)
    return st.one_of(objects, st.lists(inner, max_size=3), objects.map(dumps))


logged = st.recursive(st.one_of(WORDS, json_values), nested, max_leaves=14)
rows = st.dictionaries(NAMES, logged, min_size=1, max_size=8)


@given(logged)
def test_any_value_is_read(value):
    notes = PartNotes()
    for message in (*read_messages(value, notes), *read_request(value, notes).messages):
        assert isinstance(message, Message)
        assert message.parts
    for answer in read_outcome(value, notes).answers:
        assert answer.message.role == "assistant"
        assert answer.message.parts
    assert isinstance(system_text(value), str)
    definitions(value)


@given(st.lists(rows, min_size=1, max_size=4), st.booleans())
def test_any_rows_are_accounted_for(values, lines):
    text = "\n".join(map(dumps, values)) if lines else dumps(values)
    data = text.encode("utf-8", "surrogatepass")
    for reader in READERS:
        source = Source("log", data=data)
        reader.recognise(source)
        read_counted(reader, source)


FOREIGN = [None, True, -1, 1.5, "", "[", '["a"]', "user", [], {}, [[]], [None], {"type": {"a": 1}}]


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(value, pick):
    """Returns the value with one place replaced, or with one level more or less there."""
    value = json.loads(json.dumps(value))
    *above, last = pick.choice([path for path in places(value) if path])
    inside = value
    for key in above:
        inside = inside[key]
    kind = pick.random()
    if kind < 0.2 and isinstance(inside, dict):
        del inside[last]
    elif kind < 0.4:
        inside[last] = [inside[last]]
    else:
        inside[last] = json.loads(json.dumps(pick.choice(FOREIGN)))
    return value


@pytest.mark.quick(1)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_records_with_foreign_values_are_accounted_for(reader):
    pick = random.Random(0)
    paths = sorted((CASES / reader.name).glob("*/input/*.json*"))
    assert paths
    for path in paths:
        text = path.read_text(encoding="utf-8").splitlines()
        lines = text if path.suffix == ".jsonl" else ["".join(text)]
        values = [json.loads(line) for line in lines if line.endswith(("}", "]"))]
        for _ in range(25):
            damaged = "\n".join(json.dumps(changed(value, pick)) for value in values if value)
            source = Source("log", data=damaged.encode())
            reader.recognise(source)
            read_counted(reader, source)
