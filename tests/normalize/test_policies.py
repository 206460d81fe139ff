"""Each value of the options that decide what a sample contains and what it trains."""

import pytest

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Media,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.normalize import NormalizeOptions, normalise
from builder.normalize.options import TrainOptions
from builder.problem import Problem

REMINDER = Text("<note>be kind</note>", harness=True)


def system(text="s"):
    return Message("system", (Text(text),))


def user(*parts):
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def reply(text, **fields):
    return Message("assistant", (Text(text),), **fields)


def calls(*names, text="", **fields):
    parts = [ToolCall(name, {"of": name}, name) for name in names]
    return Message("assistant", (*([Text(text)] if text else []), *parts), **fields)


def results(*names, **flags):
    parts = tuple(ToolResult((Text(f"{name}!"),), name, **flags) for name in names)
    return Message("tool", parts)


def made(*messages, tools=(), problems=(), context=None, recorded=False, **options):
    conversation = Conversation(
        id="c",
        record="r",
        messages=messages,
        tools=tools,
        problems=problems,
        context=context,
        recorded=recorded,
    )
    return normalise(conversation, NormalizeOptions(**options))


def visible(normalised):
    """Returns a word per turn: its role's letter, text and calls; - marks untrained turns."""
    assert normalised.problem is None, normalised.problem
    return [
        f"{turn.role[0]}{'' if turn.trained else '-'} "
        + " ".join(
            filter(
                None, (turn.content, *(f"{call.name}()" for call in turn.calls), *turn.responses)
            )
        )
        for turn in normalised.dialogue.turns
    ]


def dropped(normalised):
    return list(normalised.dropped.values())


# -- harness ----------------------------------------------------------------------------------

NOTED = (
    user(REMINDER, "hi"),
    calls("f"),
    Message(
        "user",
        (ToolResult((Text("f!"), Text(" (slow)", harness=True)), "f"), REMINDER),
    ),
    reply("a"),
    user(REMINDER),
    reply("b"),
)


def test_harness_text_stays_at_its_place():
    kept = made(*NOTED)
    assert visible(kept) == [
        "u <note>be kind</note>\n\nhi",
        "a f()",
        "t f!\n (slow)",
        "u <note>be kind</note>",
        "a a",
        "u <note>be kind</note>",
        "a b",
    ]
    assert "harness_text" not in kept.changes


def test_harness_text_is_dropped_and_counted_unless_it_is_all_that_was_answered():
    without = made(*NOTED, harness="drop")
    assert visible(without) == ["u hi", "a f()", "t f!", "a a", "u <note>be kind</note>", "a b"]
    assert without.changes["harness_text"] == 3
    assert without.changes["harness_prompt"] == 1


def test_text_that_the_program_put_in_the_models_place_is_no_target():
    inserted = Message("assistant", (REMINDER,))
    weighted = made(user("hi"), inserted, user("go on"), reply("a"), untrained_turns="weight")
    assert visible(weighted) == ["u hi", "a- <note>be kind</note>", "u go on", "a a"]


def test_text_between_the_pieces_of_one_turn_comes_after_it():
    pieces = (calls("f", turn="t"), user(REMINDER), calls("g", turn="t"))
    kept = made(user("hi"), *pieces, results("f", "g"), reply("a"))
    assert visible(kept) == ["u hi", "a f() g()", "t f! g!", "u <note>be kind</note>", "a a"]


# -- system -----------------------------------------------------------------------------------

LATE = (system(), user("hi"), calls("f"), results("f"), system("late"), reply("a"))


def test_a_late_system_message_is_a_user_turn_stays_or_rejects():
    as_user = made(*LATE)
    assert visible(as_user) == ["s s", "u hi", "a f()", "t f!", "u late", "a a"]
    assert as_user.changes["late_system"] == 1
    kept = made(*LATE, late_system="keep")
    assert visible(kept) == ["s s", "u hi", "a f()", "t f!", "s late", "a a"]
    assert kept.changes["late_system_kept"] == 1
    assert made(*LATE, late_system="reject").problem.code == "late_system"


# -- the end ----------------------------------------------------------------------------------


def test_a_conversation_ends_with_the_last_turn_of_the_model_or_with_an_answer():
    talk = (user("hi"), reply("a"), user("so"), calls("f"), results("f"), user("stop"))
    ends = made(*talk)
    assert visible(ends) == ["u hi", "a a", "u so", "a f()"]
    assert (ends.changes["trailing_cut"], dropped(ends)) == (2, [])
    answered = made(*talk, end="answer")
    assert visible(answered) == ["u hi", "a a"]
    assert dropped(answered) == ["no_final_answer"]


def test_calls_without_a_result_in_the_middle_end_the_conversation():
    talk = (
        user("hi"), calls("f"), results("f"), calls("g", "h"), results("h"), user("so?"),
        calls("i"), results("i"), reply("b"),
    )  # fmt: skip
    ends = made(*talk)
    assert visible(ends) == ["u hi", "a f()", "t f!", "a g() h()"]
    assert dropped(ends) == ["after_unanswered"]
    answered = made(*talk, end="answer")
    assert answered.problem.code == "unanswered"
    assert made(*talk, unanswered_calls="reject").problem.code == "unanswered"


def test_a_call_that_cannot_be_written_ends_the_conversation_before_its_turn():
    bad = Message("assistant", (ToolCall("g", "{no", "g"), ToolCall("h", {}, "h")))
    ends = made(user("hi"), calls("f"), results("f"), bad, results("g", "h"), calls("i"))
    assert visible(ends) == ["u hi", "a f()"]
    assert ends.dropped == {1: "bad_arguments", 2: "after_bad_arguments", 3: "after_bad_arguments"}


def test_a_turn_that_could_not_be_parsed_stays_as_context_where_its_text_is_all_there_was():
    torn = Message("assistant", (Text("half"), Unparsed("{", "bad_call")))
    talk = (user("hi"), reply("a"), user("go"), torn, user("again"), calls("f"))
    assert visible(made(*talk)) == ["u hi", "a a"]
    assert dropped(made(*talk)) == ["bad_call"]
    weighted = made(*talk, untrained_turns="weight")
    assert visible(weighted) == ["u hi", "a a", "u go", "a- half\n\n{", "u again", "a f()"]
    hidden = Message("assistant", (Text("x"), Unparsed("", "encrypted_context")))
    ends = made(user("hi"), reply("a"), user("go"), hidden, user("b"), reply("c"),
                untrained_turns="weight")  # fmt: skip
    assert visible(ends) == ["u hi", "a a"]


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


def test_repeats_are_trained_again_and_counted_or_kept_with_weight_0_or_reject():
    again = made(*REPEATED)
    assert visible(again) == ["u hi", "a a", "u so", "a f()", "t f!", "a b"]
    assert again.changes["repeated_turns"] == 1
    weighted = made(*REPEATED, untrained_turns="weight")
    assert visible(weighted) == ["u hi", "a- a", "u so", "a f()", "t f!", "a b"]
    assert weighted.changes["untrained_turns"] == 1
    assert made(*REPEATED, untrained_turns="reject").problem.code == REPEAT


def test_before_a_foreign_turn_the_sample_ends_or_it_stays_with_weight_0():
    ends = made(*FOREIGN)
    assert visible(ends) == ["u hi", "a f()"]
    assert (dropped(ends), ends.changes["turns_cut"]) == (["edited"], 4)
    weighted = made(*FOREIGN, untrained_turns="weight")
    assert visible(weighted) == [
        "u hi", "a f()", "t f!", "a- x", "u so", "a g()", "t g!", "a b",
    ]  # fmt: skip
    assert made(*FOREIGN, untrained_turns="reject").problem.code == "edited"


def test_a_recorded_response_is_kept_whatever_stands_before_it():
    kept = made(*FOREIGN, recorded=True)
    assert visible(kept) == [
        "u hi", "a f()", "t f!", "a- x", "u so", "a g()", "t g!", "a b",
    ]  # fmt: skip
    assert (dropped(kept), kept.changes["untrained_turns"]) == ([], 1)
    again = made(*REPEATED, *FOREIGN, recorded=True)
    assert visible(again)[:2] == ["u hi", "a- a"]
    last = made(user("hi"), reply("a"), user("so"), calls("f", untrained="inserted"), recorded=True)
    assert (visible(last), dropped(last)) == (["u hi", "a a"], ["inserted"])
    assert made(*FOREIGN, recorded=True, untrained_turns="reject").problem.code == "edited"
    assert visible(made(*SEARCHED, recorded=True)) == ["u hi", "a f()"]


def test_a_sample_ends_with_a_target():
    talk = (user("hi"), reply("a"), user("b"), calls("f", untrained="edited"), results("f"))
    weighted = made(*talk, untrained_turns="weight")
    assert visible(weighted) == ["u hi", "a a"]
    assert dropped(weighted) == ["edited"]
    only = (user("hi"), calls("f", untrained=REPEAT), results("f"), reply("b", untrained=REPEAT))
    for policy in ("split", "weight"):
        none = made(*only, untrained_turns=policy)
        assert (none.problem.code, dropped(none)) == ("no_target", ["no_target"])


SEARCHED = (
    user("hi"), calls("f"), results("f"),
    Message("assistant", (Text("found"), Unparsed('{"type": "search"}', "server_tool"))),
    user("so"), reply("b"),
)  # fmt: skip


@pytest.mark.parametrize("code", [None, "repeat", "inserted"])
def test_an_answer_that_was_cut_off_stays_as_context(code):
    half = Message("assistant", (Text("half"), Unparsed("", "truncated_answer")), untrained=code)
    messages = (user("hi"), half, user("so"), reply("b"))
    assert visible(made(*messages, untrained_turns="weight")) == ["u hi", "a- half", "u so", "a b"]
    got = made(*messages)
    assert got.problem is not None
    assert got.problem.code == (code if code == "inserted" else "truncated_answer")


@pytest.mark.parametrize("offered", [["f"], ["f", "g"]])
def test_a_called_tool_that_was_not_offered_lowers_the_level(offered):
    tools = tuple({"name": name, "parameters": {"type": "object"}} for name in offered)
    messages = (user("hi"), calls("f"), results("f"), calls("g"), results("g"), reply("b"))
    got = made(*messages, tools=tools, context=Context("proven"))
    names = [tool["function"]["name"] for tool in got.dialogue.tools]
    assert names == ["f", "g"]
    as_sent = "g" in offered
    assert set(got.contexts) == {Context("proven") if as_sent else Context("partial", ("tools",))}
    assert got.tools_source == ("logged" if as_sent else "mixed")


def test_a_providers_own_tool_lowers_the_level():
    own = {"type": "web_search_20250305", "name": "web_search"}
    tools = ({"name": "f", "parameters": {"type": "object"}}, own)
    messages = (user("hi"), calls("f"), results("f"), reply("b"))
    got = made(*messages, tools=tools, context=Context("proven"))
    assert [tool["function"]["name"] for tool in got.dialogue.tools] == ["f"]
    assert set(got.contexts) == {Context("partial", ("tools",))}
    assert got.changes["server_tool_dropped"] == 1


def test_no_definition_is_inferred_from_calls_that_are_left_out():
    tools = ({"name": "f", "parameters": {"type": "object"}},)
    messages = (user("hi"), calls("f"), results("f"), reply("a"), user("so"), calls("g"))
    got = made(*messages, tools=tools, context=Context("proven"), end="answer")
    assert [tool["function"]["name"] for tool in got.dialogue.tools] == ["f"]
    assert set(got.contexts) == {Context("proven")}


@pytest.mark.parametrize("policy", ["split", "weight"])
def test_a_turn_that_used_a_server_side_tool_is_never_a_target(policy):
    assert visible(made(*SEARCHED, untrained_turns=policy)) == ["u hi", "a f()"]
    kept = made(
        *SEARCHED,
        tools=({"name": "f", "parameters": {"type": "object"}},),
        untrained_turns=policy,
        server_tools="untrained",
        context=Context("proven"),
    )
    if policy == "split":
        assert visible(kept) == ["u hi", "a f()"]
        return
    assert visible(kept) == ["u hi", "a f()", "t f!", "a- found", "u so", "a b"]
    assert kept.contexts[-1] == Context("partial", ("server_tool",))
    assert kept.contexts[0] == Context("proven")


# -- train ------------------------------------------------------------------------------------

MASKED = {
    "errors": (results("f", is_error=True), "a f()"),
    "denied": (results("f", is_denied=True, is_error=True), "a f()"),
    "interrupted": (results("f", is_interrupted=True), "a f()"),
}


@pytest.mark.parametrize("key", MASKED)
def test_a_masked_turn_is_context(key):
    result, _ = MASKED[key]
    talk = (user("hi"), calls("f"), result, reply("b"))
    assert visible(made(*talk)) == ["u hi", "a f()", "t f!", "a b"]
    options = {"untrained_turns": "weight", "train": TrainOptions(**{key: "mask"})}
    masked = made(*talk, **options)
    assert visible(masked) == ["u hi", "a- f()", "t f!", "a b"]
    assert masked.changes["masked_turns"] == 1
    others = {other: "mask" for other in MASKED if other != key}
    options["train"] = TrainOptions(**others)
    assert visible(made(*talk, **options)) == ["u hi", "a f()", "t f!", "a b"]


def test_a_turn_that_repeats_the_calls_of_the_turn_before_may_be_masked():
    talk = (user("hi"), *(calls("f"), results("f")) * 2, calls("g"), results("g"), reply("b"))
    options = {"untrained_turns": "weight", "train": TrainOptions(repeated="mask")}
    assert visible(made(*talk, **options)) == [
        "u hi", "a f()", "t f!", "a- f()", "t f!", "a g()", "t g!", "a b",
    ]  # fmt: skip


def test_rewound_turns_are_trained_if_the_user_asks_for_it():
    left = (Problem("rewound", "r", "a branch that was left"),)
    talk = (user("hi"), reply("a", untrained="rewound"))
    assert made(*talk, problems=left).problem.code == "rewound"
    assert made(*talk).problem.code == "rewound"
    assert visible(made(*talk, problems=left, train=TrainOptions(rewound="keep"))) == [
        "u hi",
        "a a",
    ]


# -- control tokens ---------------------------------------------------------------------------

END = "<|im_end|>"
TOLD = (system(END), user(END), calls("f"), Message("tool", (ToolResult((Text(END),), "f"),)))


def test_control_tokens_are_broken_in_context_and_reject_in_trained_text():
    tool = {"name": "f", "description": END, "parameters": {}}
    broken = made(*TOLD, reply("a"), tools=(tool,))
    assert visible(broken) == [
        "s < |im_end|>", "u < |im_end|>", "a f()", "t < |im_end|>", "a a",
    ]  # fmt: skip
    assert broken.changes["control_tokens"] == 4
    assert broken.dialogue.tools[0]["function"]["description"] == "< |im_end|>"
    trained = {
        "text": reply(f"see {END}"),
        "thought": Message("assistant", (Reasoning(END), Text("a"))),
        "arguments": Message("assistant", (ToolCall("g", {"a": END}),)),
    }
    for message in trained.values():
        assert made(*TOLD, message, reasoning="keep").problem.code == "control_tokens"
        assert made(*TOLD, message, reasoning="keep", control_tokens="neutralise").problem is None
    assert made(*TOLD, reply("a"), control_tokens="reject").problem.code == "control_tokens"


def test_control_tokens_in_a_turn_that_is_no_target_are_broken():
    talk = (user("hi"), reply(END, untrained="edited"), user("so"), reply("a"))
    assert visible(made(*talk, untrained_turns="weight"))[1] == "a- < |im_end|>"


# -- tools and context ------------------------------------------------------------------------


def test_only_the_definitions_of_called_tools_where_the_user_wants_so():
    tools = tuple({"name": name, "parameters": {}} for name in ("e", "f", "g"))
    talk = (user("hi"), calls("f"), results("f"), reply("a"))
    assert len(made(*talk, tools=tools).dialogue.tools) == 3
    conversation = Conversation(id="c", record="r", messages=talk, tools=tools)
    few = normalise(conversation, NormalizeOptions(tools="called"))
    assert [tool["function"]["name"] for tool in few.dialogue.tools] == ["f"]
    assert few.changes["tools_left_out"] == 2


@pytest.mark.parametrize(
    ("messages", "fields", "wanted"),
    [
        ((system(), user("hi"), reply("a")), {}, [Context("logged")]),
        ((user("hi"), reply("a")), {"tools": None}, [Context("partial", ("system", "tools"))]),
        (
            (system(), user("hi", Media("image")), reply("a")),
            {"context": Context("rendered")},
            [Context("partial", ("media",))],
        ),
        (
            (
                user("hi"),
                reply("a", context=Context("partial", ("history",))),
                user("b"),
                reply("c"),
            ),
            {"context": Context("proven")},
            [Context("partial", ("history",)), Context("proven")],
        ),
    ],
)  # fmt: skip
def test_the_context_of_each_turn(messages, fields, wanted):
    assert list(made(*messages, **fields).contexts) == wanted
