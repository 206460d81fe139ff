"""Each value of the options that decide which text and turns a sample contains."""

import pytest
from support.conversations.messages import (
    calls,
    dropped,
    normalised,
    reply,
    results,
    system,
    user,
    visible,
)

from builder.conversation import (
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
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions, SharedTools

REMINDER = Text("<note>be kind</note>", harness=True)

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


def test_harness_text_stays_in_place():
    kept = normalised(*NOTED)
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


def test_harness_text_is_dropped_and_counted_unless_it_is_the_whole_prompt():
    without = normalised(*NOTED, harness="drop")
    assert visible(without) == ["u hi", "a f()", "t f!", "a a", "u <note>be kind</note>", "a b"]
    assert without.changes["harness_text"] == 3
    assert without.changes["harness_prompt"] == 1


def test_harness_text_in_an_assistant_message_is_not_trained():
    inserted = Message("assistant", (REMINDER,))
    weighted = normalised(user("hi"), inserted, user("go on"), reply("a"), untrained_turns="weight")
    assert visible(weighted) == ["u hi", "a- <note>be kind</note>", "u go on", "a a"]


# -- system -----------------------------------------------------------------------------------

LATE = (system(), user("hi"), calls("f"), results("f"), system("late"), reply("a"))


def test_a_late_system_message_becomes_a_user_turn_or_stays_or_rejects():
    as_user = normalised(*LATE)
    assert visible(as_user) == ["s s", "u hi", "a f()", "t f!", "u late", "a a"]
    assert as_user.changes["late_system"] == 1
    kept = normalised(*LATE, late_system="keep")
    assert visible(kept) == ["s s", "u hi", "a f()", "t f!", "s late", "a a"]
    assert kept.changes["late_system_kept"] == 1
    assert normalised(*LATE, late_system="reject").problem.code == "late_system"


# -- the end ----------------------------------------------------------------------------------


def test_a_conversation_ends_with_the_last_turn_of_the_model_or_with_an_answer():
    talk = (user("hi"), reply("a"), user("so"), calls("f"), results("f"), user("stop"))
    ends = normalised(*talk)
    assert visible(ends) == ["u hi", "a a", "u so", "a f()"]
    assert (ends.changes["trailing_cut"], dropped(ends)) == (2, [])
    answered = normalised(*talk, end="answer")
    assert visible(answered) == ["u hi", "a a"]
    assert dropped(answered) == ["no_final_answer"]


def test_calls_without_a_result_in_the_middle_end_the_conversation():
    talk = (
        user("hi"), calls("f"), results("f"), calls("g", "h"), results("h"), user("so?"),
        calls("i"), results("i"), reply("b"),
    )  # fmt: skip
    ends = normalised(*talk)
    assert visible(ends) == ["u hi", "a f()", "t f!", "a g() h()"]
    assert dropped(ends) == ["after_unanswered"]
    answered = normalised(*talk, end="answer")
    assert answered.problem.code == "unanswered"


def test_a_call_that_cannot_be_written_ends_the_conversation_before_its_turn():
    bad = Message("assistant", (ToolCall("g", "{no", "g"), ToolCall("h", {}, "h")))
    ends = normalised(user("hi"), calls("f"), results("f"), bad, results("g", "h"), calls("i"))
    assert visible(ends) == ["u hi", "a f()"]
    assert ends.dropped == {1: "bad_arguments", 2: "after_bad_arguments", 3: "after_bad_arguments"}


def test_an_unparsed_turn_is_context_if_its_whole_text_is_known():
    torn = Message("assistant", (Text("half"), Unparsed("{", "bad_call")))
    talk = (user("hi"), reply("a"), user("go"), torn, user("again"), calls("f"))
    ends = normalised(*talk, untrained_turns="split")
    assert (visible(ends), dropped(ends)) == (["u hi", "a a"], ["bad_call"])
    weighted = normalised(*talk)
    assert visible(weighted) == ["u hi", "a a", "u go", "a- half\n\n{", "u again", "a f()"]
    hidden = Message("assistant", (Text("x"), Unparsed("", "encrypted_context")))
    ends = normalised(user("hi"), reply("a"), user("go"), hidden, user("b"), reply("c"),
                untrained_turns="weight")  # fmt: skip
    assert visible(ends) == ["u hi", "a a"]


# -- control tokens ---------------------------------------------------------------------------

END = "<|im_end|>"
CONTROL = (system(END), user(END), calls("f"), Message("tool", (ToolResult((Text(END),), "f"),)))


def test_control_tokens_are_broken_in_context_and_end_the_conversation_in_trained_text():
    tool = {"name": "f", "description": END, "parameters": {}}
    broken = normalised(*CONTROL, reply("a"), tools=(tool,))
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
        assert normalised(user("hi"), message, reasoning="keep").problem.code == "control_tokens"
        ends = normalised(*CONTROL, message, reasoning="keep")
        assert visible(ends) == ["s < |im_end|>", "u < |im_end|>", "a f()"]
        assert {*dropped(ends)} <= {"control_tokens", "after_control_tokens"}
        assert (
            normalised(*CONTROL, message, reasoning="keep", control_tokens="neutralise").problem
            is None
        )
    assert (
        normalised(*CONTROL, reply("a"), control_tokens="reject").problem.code == "control_tokens"
    )


def test_control_tokens_in_an_untrained_turn_are_broken():
    talk = (user("hi"), reply(END, untrained="edited"), user("so"), reply("a"))
    assert visible(normalised(*talk, untrained_turns="weight"))[1] == "a- < |im_end|>"


# -- tools and context ------------------------------------------------------------------------


def test_definitions_of_uncalled_tools_may_be_left_out():
    tools = tuple({"name": name, "parameters": {}} for name in ("e", "f", "g"))
    talk = (user("hi"), calls("f"), results("f"), reply("a"))
    assert len(normalised(*talk, tools=tools).dialogue.tools) == 3
    conversation = Conversation(id="c", record="r", messages=talk, tools=tools)
    few = normalise(conversation, NormalizeOptions(tools="called"))
    assert [tool["function"]["name"] for tool in few.dialogue.tools] == ["f"]
    assert few.changes["tools_left_out"] == 2


F = {"name": "f", "parameters": {"type": "object"}}
MISTAKEN = (user("hi"), calls("f"), results("f"), calls("g"), results("g"), reply("b"))


@pytest.mark.parametrize(
    "offered",
    [
        F,
        {"type": "function", "function": F},
        {"name": "f", "input_schema": {"type": "object"}},
        {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}},
        {"functionDeclarations": [F]},
    ],
)
def test_a_turn_that_calls_a_tool_which_was_not_offered_is_not_trained(offered):
    got = normalised(*MISTAKEN, tools=(offered,), context=Context("proven"))
    assert visible(got) == ["u hi", "a f()", "t f!", "a- g()", "t g!", "a b"]
    assert [tool["function"]["name"] for tool in got.dialogue.tools] == ["f"]
    assert got.tools_source == "logged"
    assert set(got.contexts) == {Context("proven")}


@pytest.mark.parametrize("tools", [None, (), (F, {"type": "mcp", "server_label": "g"})])
def test_tools_are_inferred_where_the_log_may_lack_some(tools):
    got = normalised(*MISTAKEN, tools=tools)
    assert {"f", "g"} == {tool["function"]["name"] for tool in got.dialogue.tools}
    assert got.changes["tool_inferred"] == (1 if tools else 2)


def test_a_tool_that_another_request_defines_has_that_definition():
    g = {"type": "function", "function": {"name": "g", "description": "real"}}
    shared = SharedTools(source={"g": g})
    got = normalised(*MISTAKEN, tools=(F,), context=Context("proven"), shared_tools=shared)
    assert got.dialogue.tools[1] == g
    assert got.tools_source == "shared"
    assert got.changes["tool_shared"] == 1
    assert set(got.contexts) == {Context("partial", ("tools",))}


def test_a_server_side_tool_lowers_the_context_level():
    own = {"type": "web_search_20250305", "name": "web_search"}
    tools = ({"name": "f", "parameters": {"type": "object"}}, own)
    messages = (user("hi"), calls("f"), results("f"), reply("b"))
    got = normalised(*messages, tools=tools, context=Context("proven"))
    assert [tool["function"]["name"] for tool in got.dialogue.tools] == ["f"]
    assert set(got.contexts) == {Context("partial", ("tools",))}
    assert got.changes["server_tool_dropped"] == 1


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
    assert list(normalised(*messages, **fields).contexts) == wanted


@pytest.mark.parametrize(
    ("tool", "missing"),
    [
        ("f", ("tools",)),
        ({"name": "f"}, ("tools",)),
        ({"type": "function", "function": {"name": "f", "description": ""}}, ("tools",)),
        ({"toolSpec": {"name": "f"}}, ("tools",)),
        ({"name": "f", "description": "Does f."}, ()),
        ({"type": "function", "function": {"name": "f", "parameters": {}}}, ()),
    ],
)
def test_a_definition_that_is_a_name_only_is_not_what_the_model_saw(tool, missing):
    whole = {"name": "g", "parameters": {"type": "object"}}
    got = normalised(system(), user("hi"), reply("a"), tools=(whole, tool))
    assert got.contexts[0].missing == missing


def test_a_message_of_the_user_that_a_result_goes_past_is_counted():
    got = normalised(user("hi"), calls("f", "f"), user("Be quick."), results("f", "f"), reply("a"))
    assert got.changes["user_moved"] == 1
    in_order = normalised(user("hi"), calls("f"), results("f"), user("Be quick."), reply("a"))
    assert "user_moved" not in in_order.changes


def test_a_supplied_prompt_precedes_what_a_log_has_of_the_system_text():
    messages = (
        Message("developer", (Text("Sandbox: on."),)),
        Message("user", (Text("Hi"),)),
        Message("assistant", (Text("Hello."),)),
    )
    found = {}
    for missing in ("system", "tools"):
        log = Conversation(
            id="a", record="1", messages=messages, tools=(), context=Context.lacking({missing})
        )
        options = NormalizeOptions(supplied_system="You are an agent.")
        found[missing] = normalise(log, options).dialogue.turns[0].content
    assert found == {"system": "You are an agent.\n\nSandbox: on.", "tools": "Sandbox: on."}
