"""Envelopes of API captures, and properties of the conversations read from them."""

import gzip
import json
from base64 import b64encode
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.strategies import pieces

from builder.conversation import Conversation, Ignored
from builder.jsonio import JsonFault
from builder.problem import Problem
from builder.readers import readers
from builder.readers.api import bodies, cassettes, histories
from builder.readers.api.dialects import dialect, path_for_counting
from builder.readers.api.exchanges import Exchange, open_exchange
from builder.readers.api.openai_chat import answers
from builder.readers.toolkit.comparison import looks_random
from builder.sources.source import Record, Source

USER = {"role": "user", "content": "hi"}


def request(*messages, **keys):
    return {"model": "toy-1", "messages": list(messages), **keys}


def response(text):
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def read(*lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return list(readers()["openai-chat"].read(Source("log.jsonl", data=text.encode())))


# -- which API ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (request(USER), "openai-chat"),
        (request({"role": "system", "content": "x"}, USER, max_tokens=9), "openai-chat"),
        (request({"role": "user", "content": [{"type": "text", "text": "x"}]}), "openai-chat"),
        (request(USER, thinking={"type": "enabled"}), "openai-chat"),
        (request(USER, system="x"), "anthropic-messages"),
        (request(USER, model="claude-toy", max_tokens=9), "anthropic-messages"),
        (request(USER, tools=[{"name": "f", "input_schema": {}}]), "anthropic-messages"),
        (
            request({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}),
            "anthropic-messages",
        ),
        ({"messages": [USER], "inferenceConfig": {}}, "bedrock-converse"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "bedrock-converse"),
        ({"contents": [{"parts": [{"text": "x"}]}]}, "gemini-api"),
        ({"contents": "x"}, "gemini-api"),
        ({"model": "toy-1", "input": [{"role": "user", "content": "x"}]}, "openai-responses"),
        ({"model": "toy-1", "input": "x", "instructions": "y"}, "openai-responses"),
        ({"model": "toy-1", "input": "x"}, None),
        ({"model": "toy-1", "prompt": "x"}, None),
        (response("x"), "openai-chat"),
        ({"choices": [], "object": "chat.completion.chunk"}, "openai-chat"),
        ({"choices": [{"text": "x"}], "object": "text_completion"}, None),
        ({"object": "response", "output": []}, "openai-responses"),
        ({"type": "response.completed", "response": {}}, "openai-responses"),
        ({"type": "message", "content": [], "stop_reason": "end_turn"}, "anthropic-messages"),
        ({"type": "message", "message": {"role": "user"}}, None),
        ({"type": "content_block_stop", "index": 0}, "anthropic-messages"),
        ({"candidates": []}, "gemini-api"),
        ({"output": {"message": {}}, "stopReason": "end_turn"}, "bedrock-converse"),
        ({"contentBlockDelta": {}}, "bedrock-converse"),
        ({"error": {"message": "m", "type": "t", "param": None, "code": "c"}}, "openai-chat"),
        ({"error": {"message": "m"}}, None),
        ({}, None),
        ([], None),
    ],
)
def test_a_body_identifies_its_api(body, name):
    assert dialect(body, "") == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://llm.example/v1/chat/completions?x=1", "openai-chat"),
        ("https://llm.example/openai/deployments/toy/chat/completions", "openai-chat"),
        ("https://llm.example/v1/responses", "openai-responses"),
        ("https://llm.example/v1/messages?beta=true", "anthropic-messages"),
        ("https://llm.example/v1/models/toy:streamGenerateContent?alt=sse", "gemini-api"),
        ("https://llm.example/model/toy-v1%3A0/converse-stream", "bedrock-converse"),
        ("https://llm.example/v1/messages/count_tokens", None),
        ("https://llm.example/v1/chat/completions/abc/messages", None),
        ("https://llm.example/v1/threads/t/messages", None),
        ("https://llm.example/v1/models/toy:countTokens", None),
        ("https://llm.example/v1/embeddings", None),
        ("https://gateway.example/anything", "openai-chat"),
        ("http://[", "openai-chat"),
    ],
)
def test_a_path_takes_precedence_over_a_body(url, name):
    assert dialect(request(USER), url) == name


def test_paths_are_counted_without_ids():
    assert path_for_counting("https://llm.example/v1/files/file-8f7a6b5c4d3e2f1a/content?k=v") == (
        "/v1/files/*/content"
    )


@pytest.mark.parametrize(
    "trace",
    [
        {"input": {"messages": [USER]}, "output": {"role": "assistant", "content": "x"}},
        {"input": "x", "output": "y"},
        {"inputs": request(USER), "outputs": response("x")},
        {"name": "span", "attributes": {}},
    ],
)
def test_a_trace_is_not_read_as_an_exchange(trace):
    assert isinstance(open_exchange(Record("line 1", trace)), Ignored)


# -- bodies --------------------------------------------------------------------------------------


def test_a_packed_body_is_limited(monkeypatch):
    monkeypatch.setattr(bodies, "MAX_UNPACKED", 1000)
    packed = {"base64_string": b64encode(gzip.compress(b" " * 1001, mtime=0)).decode()}
    with pytest.raises(JsonFault, match="more than 1000 bytes"):
        bodies.read_body(packed)
    packed = {"base64_string": b64encode(gzip.compress(b" " * 998 + b"[]", mtime=0)).decode()}
    assert bodies.read_body(packed).value == []


@given(st.lists(st.text()), st.sampled_from(["\n", "\r\n", "\r"]))
def test_events_come_back_whole(texts, end):
    stream = "".join(f": ping{end}{end}data: {json.dumps(text)}{end}{end}" for text in texts)
    assert bodies.stream_events(stream + f"data: [DONE]{end}{end}") == tuple(texts)


# -- cassettes -----------------------------------------------------------------------------------


def interactions(text, limit=1 << 20):
    return list(cassettes.interactions(text.encode(), limit))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("- " + "[" * 100_000, "too_deep"),
        ("- " + "{a: " * 100_000, "too_deep"),
        ("- &a [*a]", "bad_yaml"),
        ("- *nothing", "bad_yaml"),
        ("- 1e999", "number"),
        ("- 'no end", "bad_yaml"),
        ("- " + "x" * 2_000_000, "too_large"),
    ],
)
def test_a_hostile_cassette_is_a_problem(text, code):
    found = interactions("interactions:\n- {first: whole}\n" + text)
    assert found[0] == {"first": "whole"}
    assert [item.code for item in found[1:] if isinstance(item, Problem)] == [code]


def test_scalars_of_a_cassette_are_those_of_json():
    text = (
        "interactions:\n- {a: 1, b: -2.5, c: true, d: null, e: ~, f: '1', g: 2024-05-01, h: yes,"
        " i: 1_000, j: 0x10, k: 1e3, l: !!str 7, m: .inf, n: !!binary QQ==, 1: x, null: y}\n"
    )
    assert interactions(text) == [
        {
            "a": 1, "b": -2.5, "c": True, "d": None, "e": None, "f": "1", "g": "2024-05-01",
            "h": "yes", "i": "1_000", "j": "0x10", "k": 1000.0, "l": "7", "m": ".inf",
            "n": {"base64_string": "QQ=="}, "1": "x", "null": "y",
        }
    ]  # fmt: skip


def test_a_merge_key_is_a_key():
    text = "interactions:\n- &a {k: 1}\n- {<<: *a}\n"
    assert interactions(text) == [{"k": 1}, {"<<": {"k": 1}}]


def test_json_texts_in_a_cassette_do_not_make_it_a_file_of_lines():
    body = json.dumps(request({"role": "user", "content": 'say\n\n{"a": 1}\n\n'}))
    text = (
        "interactions:\n- request:\n    uri: https://llm.example/v1/chat/completions\n"
        "    method: POST\n    note: |\n"
        + '\n{"type": "object"}\n'.replace("\n{", "\n      {")
        + f"    body: '{body}'\n  response: {{status: {{code: 200}}}}\n"
    )
    source = Source("c.yaml", data=text.encode())
    assert readers()["openai-chat"].recognise(source)


# -- histories -----------------------------------------------------------------------------------

TURNS = [USER, {"role": "assistant", "content": "a"}, USER, {"role": "assistant", "content": "b"}]
LOG = [
    {"request": request(*TURNS[:1]), "response": response("a")},
    {"request": request(*TURNS[:3]), "response": response("b")},
    {"request": request(*TURNS, USER), "response": response("c")},
]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_requests_in_any_order_are_one_conversation(order):
    events = read(*(LOG[at] for at in order))
    (found,) = [event for event in events if isinstance(event, Conversation)]
    assert [message.role for message in found.messages] == ["user", "assistant"] * 3
    assert sum(event.records for event in events) == 3


def test_conversations_beyond_the_memory_limit_are_emitted(monkeypatch):
    monkeypatch.setattr(histories, "MAX_OPEN", 1)
    other = {"request": request({"role": "user", "content": "other"}), "response": response("x")}
    events = read(LOG[0], other, LOG[1])
    found = [event for event in events if isinstance(event, Conversation)]
    assert [len(conversation.messages) for conversation in found] == [2, 2, 4]
    assert len({conversation.id for conversation in found}) == 3


def test_thoughts_are_remembered_for_a_limited_number_of_calls(monkeypatch):
    monkeypatch.setattr(histories, "MAX_REMEMBERED", 1)
    lines = []
    for call_id in ("call_Aa1Bb2Cc3D", "call_Ee4Ff5Gg6H"):
        call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        content = {"role": "assistant", "content": None, "tool_calls": [call]}
        user = {"role": "user", "content": call_id}
        answer = {**response(None), "choices": [{"message": content, "finish_reason": "stop"}]}
        answer["choices"][0]["message"] = {**content, "reasoning_content": f"thought {call_id}"}
        lines.append({"request": request(user), "response": answer})
        result = {"role": "tool", "tool_call_id": call_id, "content": "r"}
        rewritten = {"role": "user", "content": f"summary {call_id}"}
        late = {"request": request(rewritten, content, result), "response": response("done")}
        lines.append(late)
    events = read(lines[0], lines[2], lines[1], lines[3])
    restored = {
        event.messages[0].parts[0].text: event.changes.get("reasoning_restored", 0)
        for event in events
        if isinstance(event, Conversation) and event.messages[0].parts[0].text.startswith("summary")
    }
    assert restored == {"summary call_Aa1Bb2Cc3D": 0, "summary call_Ee4Ff5Gg6H": 1}


@pytest.mark.parametrize(
    ("call_id", "unique"),
    [
        ("call_9vQ2Lk7xT0aB", True),
        ("toolu_01QXVkPZYABFNhTASu9uBdEM", True),
        ("tk85n1k4m", True),
        ("gSIMJiOkT", True),
        ("call_79382389", True),
        ("resp_cizhrpixixp4ylkykezegmnkbgixq2qteaqq2gigeu5aluj6dhva:call_0", True),
        ("call_0", False),
        ("toolu_01", False),
        ("functions.get_weather:0", False),
        ("getWeatherForecast", False),
        ("functions.getUserAccountInformationV2WithDetails:0", False),
        ("call_00000001", False),
        ("", False),
    ],
)
def test_ids_that_look_unique(call_id, unique):
    assert looks_random(call_id) is unique


# -- chunks --------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
CALLS = st.lists(st.dictionaries(TEXT, st.integers() | TEXT, max_size=3), max_size=3)


@given(st.data(), TEXT, TEXT, CALLS, st.booleans())
def test_an_answer_split_anywhere_comes_back_whole(data, thought, words, calls, one_index):
    """`one_index`: the server sends index 0 for all calls."""
    deltas = [{"role": "assistant", "content": None}]
    deltas += [{"reasoning_content": piece} for piece in pieces(data.draw, thought)]
    deltas += [{"content": piece} for piece in pieces(data.draw, words)]
    whole = []
    for number, arguments in enumerate(calls):
        text = json.dumps(arguments)
        call_id = f"call_{number}"
        function = {"name": "f", "arguments": text}
        whole.append({"id": call_id, "type": "function", "function": function})
        first, *rest = pieces(data.draw, text)
        index = 0 if one_index else number
        begin = {"index": index, "id": call_id, "function": {"name": "f", "arguments": first}}
        deltas.append({"tool_calls": [begin]})
        for piece in rest:
            more = {"index": index, "id": "", "function": {"arguments": piece}}
            deltas.append({"tool_calls": [more]})
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": []}]
    message = {"role": "assistant", "content": words, "reasoning_content": thought}
    message |= {"tool_calls": whole} if whole else {}
    answered = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    streamed = answers(Exchange("line 1", events=tuple(chunks)))
    assert [answer.message for answer in streamed] == [
        answer.message for answer in answers(Exchange("line 1", response=answered))
    ]
    assert [answer.fault for answer in streamed] == [None]
