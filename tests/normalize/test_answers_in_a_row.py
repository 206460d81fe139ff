"""Assistant messages in a row: which are one answer, and what becomes of the others."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.messages import calls, dropped, normalised, reply, results, user, visible

from builder.conversation import Message, Text, ToolCall, ToolResult

ASKED = user("go")
CALL_A, CALL_B = (Message("assistant", (ToolCall(x, {}, id=x),)) for x in "ab")
RESULT_A, RESULT_B = (Message("tool", (ToolResult((Text(f"{x}!"),), x),)) for x in "ab")
BOTH = Message("tool", RESULT_A.parts + RESULT_B.parts)


@pytest.mark.parametrize("found", [(RESULT_A, RESULT_B), (RESULT_B, RESULT_A), (BOTH,)])
def test_calls_logged_one_by_one_are_one_answer_if_all_have_results(found):
    got = normalised(ASKED, CALL_A, reply("so"), CALL_B, *found, reply("end"))
    assert visible(got) == ["u go", "a so a() b()", "t a! b!", "a end"]
    assert got.changes["assistant_joined"] == 2


@pytest.mark.parametrize("found", [(), (RESULT_B,), (RESULT_A,)])
def test_an_answer_ends_with_a_call_that_has_no_result(found):
    got = normalised(ASKED, CALL_A, CALL_B, *found, reply("end"))
    assert visible(got) == ["u go", "a a()"]
    assert "assistant_joined" not in got.changes
    assert dropped(got) == ["after_unanswered"]


@pytest.mark.parametrize("between", [user(""), Message("tool", RESULT_A.parts)])
def test_answers_on_both_sides_of_a_message_are_two(between):
    got = normalised(ASKED, reply("one"), between, reply("two"))
    assert visible(got) == ["u go", "a one"]


def test_a_second_answer_by_its_id_ends_the_sample_or_stays_as_context():
    one, two = (replace(reply(x), turn=x) for x in ("one", "two"))
    messages = (ASKED, one, two, user("so"), calls("f"), results("f"), reply("end"))
    ends = normalised(*messages, untrained_turns="split")
    assert (visible(ends), dropped(ends)) == (["u go", "a one"], ["second_answer"])
    assert visible(normalised(*messages[:3])) == ["u go", "a one"]
    open_call = (*messages[:4], calls("f"), user("on"), reply("end"))
    assert visible(normalised(*open_call)) == ["u go", "a one"]  # as many follow as are lost
    weighted = normalised(*messages)
    assert visible(weighted) == ["u go", "a- one\n\ntwo", "u so", "a f()", "t f!", "a end"]
    assert all("history" in context.missing for context in weighted.contexts[1:])
    assert normalised(*messages, untrained_turns="reject").problem.code == "second_answer"
    same = normalised(ASKED, one, replace(two, turn="one"))
    assert visible(same) == ["u go", "a one\n\ntwo"]


def test_answers_of_two_speakers_are_two():
    one, two, more = (
        replace(reply(text), speaker=name)
        for text, name in (("plan", "planner"), ("no", "critic"), ("and so", "planner"))
    )
    assert visible(normalised(ASKED, one, more)) == ["u go", "a plan\n\nand so"]
    assert visible(normalised(ASKED, one, two, user("so"), reply("end"))) == ["u go", "a plan"]


@given(st.lists(st.sampled_from([CALL_A, CALL_B, RESULT_A, RESULT_B, reply("x")]), max_size=8))
def test_each_call_has_a_result_before_the_next_answer(messages):
    got = normalised(ASKED, *messages, user("so"), reply("end"))
    turns = got.dialogue.turns if got.dialogue else ()
    for turn, following in pairwise(turns):
        assert len(turn.calls) == len(following.responses)
        assert len({call.name for call in turn.calls}) == len(set(following.responses))
