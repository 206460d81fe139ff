"""Each value of the options that decide which turns of a sample are trained."""

import pytest
from support.conversations.messages import calls, dropped, normalised, reply, results, user, visible

from builder.conversation import REPEAT, Context, Message, Reasoning, Text, Unparsed
from builder.problem import Problem

# -- turns that are not targets ------------------------------------------------------------------

REPEATED = (
    user("hi"),
    reply("a", untrained=REPEAT),
    user("so"),
    calls("f"),
    results("f"),
    reply("b"),
)
FOREIGN = (
    user("hi"), calls("f"), results("f"), reply("x", untrained="edited"),
    user("so"), calls("g"), results("g"), reply("b"),
)  # fmt: skip
SEARCHED = (
    user("hi"), calls("f"), results("f"),
    Message("assistant", (Text("found"), Unparsed('{"type": "search"}', "server_tool"))),
    user("so"), reply("b"),
)  # fmt: skip


def test_repeated_turns_are_trained_again_or_get_weight_0_or_reject():
    again = normalised(*REPEATED)
    assert visible(again) == ["u hi", "a a", "u so", "a f()", "t f!", "a b"]
    assert again.changes["repeated_turns"] == 1
    weighted = normalised(*REPEATED, untrained_turns="weight")
    assert visible(weighted) == ["u hi", "a- a", "u so", "a f()", "t f!", "a b"]
    assert weighted.changes["untrained_turns"] == 1
    assert normalised(*REPEATED, untrained_turns="reject").problem.code == REPEAT


def test_the_sample_ends_before_a_foreign_turn_or_the_turn_gets_weight_0():
    ends = normalised(*FOREIGN, untrained_turns="split")
    assert visible(ends) == ["u hi", "a f()"]
    assert (dropped(ends), ends.changes["turns_cut"]) == (["edited"], 4)
    for policy in ("context", "weight"):
        weighted = normalised(*FOREIGN, untrained_turns=policy)
        assert visible(weighted) == [
            "u hi", "a f()", "t f!", "a- x", "u so", "a g()", "t g!", "a b",
        ]  # fmt: skip
    assert visible(normalised(*FOREIGN[:-3])) == ["u hi", "a f()"]  # nothing trained follows
    assert normalised(*FOREIGN, untrained_turns="reject").problem.code == "edited"


def test_a_recorded_response_is_kept_after_any_turn():
    kept = normalised(*FOREIGN, recorded=True, untrained_turns="split")
    assert visible(kept) == [
        "u hi", "a f()", "t f!", "a- x", "u so", "a g()", "t g!", "a b",
    ]  # fmt: skip
    assert (dropped(kept), kept.changes["untrained_turns"]) == ([], 1)
    again = normalised(*REPEATED, *FOREIGN, recorded=True)
    assert visible(again)[:2] == ["u hi", "a- a"]
    last = normalised(
        user("hi"), reply("a"), user("so"), calls("f", untrained="inserted"), recorded=True
    )
    assert (visible(last), dropped(last)) == (["u hi", "a a"], ["inserted"])
    assert normalised(*FOREIGN, recorded=True, untrained_turns="reject").problem.code == "edited"
    assert visible(normalised(*SEARCHED, recorded=True)) == ["u hi", "a f()"]


@pytest.mark.parametrize("policy", ["split", "weight"])
def test_a_turn_that_used_a_server_side_tool_is_never_a_target(policy):
    assert visible(normalised(*SEARCHED)) == ["u hi", "a f()"]
    kept = normalised(
        *SEARCHED,
        tools=({"name": "f", "parameters": {"type": "object"}},),
        untrained_turns=policy,
        context=Context("proven"),
    )
    if policy == "split":
        assert visible(kept) == ["u hi", "a f()"]
        return
    assert visible(kept) == ["u hi", "a f()", "t f!", "a- found", "u so", "a b"]
    assert kept.contexts[-1] == Context("partial", ("server_tool",))
    assert kept.contexts[0] == Context("proven")


# -- normalize.mask ---------------------------------------------------------------------------

MASKED = {
    "error": results("f", is_error=True),
    "denied": results("f", is_denied=True, is_error=True),
    "interrupted": results("f", is_interrupted=True),
}


@pytest.mark.parametrize("key", MASKED)
def test_a_masked_turn_is_context(key):
    talk = (user("hi"), calls("f"), MASKED[key], reply("b"))
    assert visible(normalised(*talk)) == ["u hi", "a f()", "t f!", "a b"]
    options = {"untrained_turns": "weight", "mask": (key,)}
    masked = normalised(*talk, **options)
    assert visible(masked) == ["u hi", "a- f()", "t f!", "a b"]
    assert masked.changes["masked_turns"] == 1
    options["mask"] = tuple(other for other in MASKED if other != key)
    assert visible(normalised(*talk, **options)) == ["u hi", "a f()", "t f!", "a b"]


def test_a_turn_that_repeats_the_previous_calls_may_be_masked():
    talk = (user("hi"), *(calls("f"), results("f")) * 2, calls("g"), results("g"), reply("b"))
    options = {"untrained_turns": "weight", "mask": ("repeated",)}
    assert visible(normalised(*talk, **options)) == [
        "u hi", "a f()", "t f!", "a- f()", "t f!", "a g()", "t g!", "a b",
    ]  # fmt: skip


def test_turns_without_a_thought_may_be_masked():
    thinking = Message("assistant", (Reasoning("hm"), Text("a")))
    blank = Message("assistant", (Reasoning(" "), Text("b")))
    options = {
        "untrained_turns": "weight",
        "reasoning": "keep",
        "unit": "query",
        "mask": ("no_thought",),
    }
    some = normalised(user("hi"), thinking, user("so"), blank, user("on"), thinking, **options)
    assert [turn.trained for turn in some.dialogue.turns if turn.role == "assistant"] == [
        True, False, True,
    ]  # fmt: skip
    none = normalised(user("hi"), calls("f"), results("f"), blank, **options)
    assert (none.problem.code, dropped(none)) == ("no_thought", ["no_thought"])
    both = normalised(user("hi"), blank, user("so"), reply("b", untrained="edited"), **options)
    assert both.problem.code == "no_target"


def test_rewound_turns_may_be_trained():
    left = (Problem("rewound", "r", "a branch that was left"),)
    talk = (user("hi"), reply("a", untrained="rewound"))
    assert normalised(*talk, problems=left).problem.code == "rewound"
    assert normalised(*talk).problem.code == "rewound"
    kept = normalised(*talk, problems=left, mask=())
    assert visible(kept) == ["u hi", "a a"]


def test_answers_after_what_a_sample_cannot_begin_with_lack_history():
    """The request began with an answer, or had a result of no call."""
    greeting = normalised(reply("Hello!"), user("hi"), reply("what is it?"))
    assert visible(greeting) == ["u hi", "a what is it?"]
    orphan = normalised(user("hi"), results("f"), user("so"), reply("what is it?"))
    contexts = (*greeting.contexts, *orphan.contexts)
    assert ["history" in context.missing for context in contexts] == [True, True]
    plain = normalised(user("hi"), reply("what is it?"))
    assert all("history" not in context.missing for context in plain.contexts)
