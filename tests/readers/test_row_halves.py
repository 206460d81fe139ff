"""Rows that have a prompt in one column and its answer in another one."""

import json

import pytest

from builder.conversation import Conversation, Text
from builder.readers import read_events, readers, recognise
from builder.sources.source import Source

ASKED = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
BEFORE = [*ASKED, {"role": "assistant", "content": "old"}, {"role": "user", "content": "more"}]
SAID = {"role": "assistant", "content": "a"}
ROUND = {"input": "r", "output": "b"}
BODY = {
    "id": "r",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": SAID}],
}


def events(row):
    source = Source("rows.jsonl", data=json.dumps(row).encode() + b"\n")
    (name,) = recognise(source)
    return list(read_events(readers()[name], source))


def only(row):
    (found,) = events(row)
    assert isinstance(found, Conversation)
    return found


def turns(conversation):
    """Returns the trained texts, and the others of the assistant."""
    answers = [one for one in conversation.messages if one.role == "assistant"]
    return [
        ["".join(p.text for p in one.parts if isinstance(p, Text)) for one in answers if found(one)]
        for found in (lambda one: one.untrained is None, lambda one: one.untrained is not None)
    ]


@pytest.mark.parametrize("answer", ["a", SAID, [SAID]], ids=["text", "message", "messages"])
@pytest.mark.parametrize("column", ["completion", "response", "output"])
@pytest.mark.parametrize("prompt", ["prompt", "messages", "input"])
def test_the_answer_in_another_column_is_trained_and_those_of_the_prompt_are_not(
    prompt, column, answer
):
    found = only({prompt: ASKED, column: answer})
    assert [message.role for message in found.messages] == ["system", "user", "assistant"]
    assert (turns(found), dict(found.changes)) == ([["a"], []], {})
    found = only({prompt: BEFORE, column: answer, "model": "m"})
    assert (turns(found), found.model, found.recorded) == ([["a"], ["old"]], "m", True)


@pytest.mark.parametrize("body", [BODY, json.dumps(BODY)], ids=["object", "text"])
def test_a_response_beside_the_messages_of_its_request_is_a_capture(body):
    found = only({"messages": BEFORE, "response": body})
    assert (turns(found), found.model) == ([["a"], ["old"]], "m")


def test_an_answer_may_itself_be_json():
    found = only({"messages": ASKED, "response": '{"city": "Oslo"}'})
    assert turns(found) == [['{"city": "Oslo"}'], []]


def test_another_answer_beside_a_whole_conversation_is_counted():
    found = only({"messages": [*ASKED, SAID], "response": "another answer"})
    assert (turns(found), dict(found.changes)) == ([["a"], []], {"unknown_column:response": 1})


@pytest.mark.parametrize("prompt", [ASKED, None], ids=["messages", "in-the-answers"])
def test_pairs_of_answers_may_be_texts_after_the_messages_of_a_prompt(prompt):
    pair = {"chosen": "a", "rejected": "b"}
    if prompt is None:
        pair = {"chosen": [*ASKED, SAID], "rejected": [*ASKED, {**SAID, "content": "b"}]}
    better, worse = events({"prompt": prompt, **pair})
    assert (turns(better), turns(worse)) == ([["a"], []], [["b"], []])
    assert [problem.code for problem in worse.problems] == ["dispreferred"]


@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ({"prompt": "q", "response": "a", "system": "s"}, ["s", "q", "a"]),
        ({"prompt": "q", "completion": "a", "system_prompt": "s"}, ["s", "q", "a"]),
        ({"instruction": "i", "context": "c", "response": "a"}, ["i\nc", "a"]),
        ({"text_input": "q", "output": "a"}, ["q", "a"]),
        ({"conversation": [{"human": "q", "assistant": "a"}], "system": "s"}, ["s", "q", "a"]),
        (
            {"conversation": [{"system": "s", "input": "q", "output": "a"}, ROUND]},
            ["s", "q", "a", "r", "b"],
        ),
    ],
)
def test_questions_and_answers_as_texts(row, texts):
    found = only(row)
    assert [part.text for message in found.messages for part in message.parts] == texts
    assert not found.changes


def test_a_call_traced_by_weave_has_its_request_in_inputs():
    found = only({"op_name": "chat", "inputs": {"model": "m", "messages": BEFORE}, "output": BODY})
    assert (turns(found), found.model, found.recorded) == ([["a"], ["old"]], "m", True)
