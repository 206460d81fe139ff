"""Outputs of model calls as platforms log them, and how each form is read."""

import json

import pytest

from builder.conversation import Data, Media, Reasoning, Text, ToolCall
from builder.readers.traces.any_vendor import read_outcome
from builder.readers.traces.parts import PartNotes, read_result

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
LC = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "AIMessage"],
    "kwargs": {"content": "hi", "response_metadata": {"finish_reason": "length"}},
}
F = ToolCall("f", '{"a": 1}', id="c1")
HI = [Text("hi")]

ANSWERS = {
    "text": ("hi", HI, None),
    "quoted text": ('"hi"', HI, None),
    "JSON text": ('{"a": 1}', [Text('{"a": 1}')], None),
    "quoted JSON text": (json.dumps('{"a": 1}'), [Text('{"a": 1}')], None),
    "JSON list as text": ('["a", "b"]', [Text('["a", "b"]')], None),
    "JSON value": ({"a": 1}, [Data({"a": 1})], None),
    "message": ({"role": "assistant", "content": "hi"}, HI, None),
    "message as text": ('{"role": "assistant", "content": "hi"}', HI, None),
    "content alone": ({"content": "hi"}, HI, None),
    "message with calls": (
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        [F],
        None,
    ),
    "refusal": ({"role": "assistant", "content": None, "refusal": "no"}, [Text("no")], None),
    "completion": (
        {"choices": [{"message": {"content": "hi"}, "finish_reason": "length"}]},
        HI,
        "truncated",
    ),
    "old completion": ({"choices": [{"text": "hi", "finish_reason": "stop"}]}, HI, None),
    "anthropic": (
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "hi"},
            ],
            "stop_reason": "max_tokens",
        },
        [Reasoning("hm"), Text("hi")],
        "truncated",
    ),
    "blocks alone": ([{"type": "text", "text": "hi"}], HI, None),
    "gemini": (
        {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "SAFETY"}]},
        HI,
        "content_filter",
    ),
    "gemini enum": (
        {"content": {"parts": [{"text": "hi"}]}, "finish_reason": "FinishReason.MAX_TOKENS"},
        HI,
        "truncated",
    ),
    "responses": (
        {
            "object": "response",
            "status": "incomplete",
            "incomplete_details": {"reason": "content_filter"},
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "message", "role": "assistant",
                 "content": [{"type": "output_text", "text": "hi"}]},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
            ],
        },
        [Reasoning("hm", is_summary=True), Text("hi"), F],
        "content_filter",
    ),
    "bedrock": (
        {"output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
         "stopReason": "max_tokens"},
        HI,
        "truncated",
    ),
    "langchain": ({"generations": [[{"text": "hi", "message": LC}]]}, HI, "truncated"),
    "langchain text": (
        {"generations": [[{"text": "hi", "generation_info": {"finish_reason": "stop"}}]]},
        HI,
        None,
    ),
    "otel": (
        [{"role": "assistant", "parts": [{"type": "text", "content": "hi"},
          {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"a": 1}'}],
          "finish_reason": "tool_call"}],
        [Text("hi"), F],
        None,
    ),
    "ai sdk calls": ([{"toolCallId": "c1", "toolName": "f", "input": '{"a": 1}'}], [F], None),
    "ai sdk step": (
        {"text": "hi", "reasoning": "hm", "finishReason": "length",
         "toolCalls": [{"toolCallId": "c1", "toolName": "f", "args": '{"a": 1}'}]},
        [Reasoning("hm"), Text("hi"), F],
        "truncated",
    ),
    "koog": (
        [{"role": "assistant", "content": json.dumps([CALL]), "finish_reason": "tool_calls"},
         {"role": "assistant", "content": json.dumps([{**CALL, "id": "c2"}]),
          "finish_reason": "tool_calls"}],
        [F, ToolCall("f", '{"a": 1}', id="c2")],
        None,
    ),
    "ollama": ({"message": {"role": "assistant", "content": "hi"}, "done": True}, HI, None),
    "wrapped": ({"output": {"role": "assistant", "content": "hi"}}, HI, None),
    "wrapped text": ({"response": "hi"}, HI, None),
}  # fmt: skip


@pytest.mark.parametrize("form", ANSWERS)
def test_one_answer(form):
    value, parts, fault = ANSWERS[form]
    notes = PartNotes()
    outcome = read_outcome(value, notes)
    (answer,) = outcome.answers
    assert (list(answer.message.parts), answer.fault) == (parts, fault)
    assert notes.unreadable == []


@pytest.mark.parametrize("value", [None, "", [], {}, {"error": "no"}, {"choices": []}])
def test_no_answer(value):
    assert read_outcome(value, PartNotes()).answers == ()


def test_several_choices_are_several_answers():
    choices = [{"message": {"content": text}, "finish_reason": "stop"} for text in ("a", "b")]
    listed = [
        {"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}
        for text in ("a", "b")
    ]
    for value in ({"choices": choices}, listed):
        answers = read_outcome(value, PartNotes()).answers
        assert [answer.message.parts for answer in answers] == [(Text("a"),), (Text("b"),)]


def test_a_loop_logged_as_one_output_ends_with_its_last_turn():
    loop = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "assistant", "content": "hi"},
    ]
    outcome = read_outcome({"messages": loop}, PartNotes())
    assert [message.role for message in outcome.before] == ["assistant", "tool"]
    assert [answer.message.parts for answer in outcome.answers] == [(Text("hi"),)]


def test_an_unknown_form_is_noted():
    notes = PartNotes()
    assert read_outcome({"role": "assistant"}, notes).answers == ()
    assert notes.unreadable == ["output"]


RESULTS = {
    "text": ({"content": "x"}, (Text("x"),)),
    "nothing": ({"content": None}, ()),
    "parts": ({"content": [{"type": "text", "text": "x"}]}, (Text("x"),)),
    "an object": ({"response": {"a": 1}}, (Data({"a": 1}),)),
    "a tool's own types": ({"result": [{"type": "file", "name": "a"}]},
                           (Data([{"type": "file", "name": "a"}]),)),
    "a tool's own texts": ({"result": [{"text": "x"}]}, (Text("x"),)),
    "an image": ({"content": [{"type": "image", "source": {}}]}, (Media("image"),)),
    "bedrock": ({"content": [{"text": "x"}, {"json": {"a": 1}}]}, (Text("x"), Data({"a": 1}))),
    "ai sdk text": ({"output": {"type": "text", "value": "x"}}, (Text("x"),)),
    "ai sdk json": ({"output": {"type": "json", "value": "x"}}, (Data("x", compact=True),)),
    "ai sdk value": (
        {"toolName": "f", "result": {"a": [1]}}, (Data({"a": [1]}, compact=True),),
    ),
    "a plain list": ({"output": [1, 2]}, (Data([1, 2]),)),
}  # fmt: skip


@pytest.mark.parametrize("form", RESULTS)
def test_results(form):
    item, content = RESULTS[form]
    assert read_result(item).content == content


@pytest.mark.parametrize(
    "item",
    [
        {"content": "x", "is_error": True},
        {"content": "x", "status": "error"},
        {"output": {"type": "error-json", "value": 1}},
        {"output": {"type": "execution-denied"}},
    ],
)
def test_results_that_are_errors(item):
    assert read_result(item).is_error
