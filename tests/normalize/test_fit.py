"""What a target's template loses or trims: turns that become context, texts without their edges."""

from builder.conversation import Conversation, Message, Text, ToolCall, ToolResult
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.qwen3.flat import flatten
from builder.qwen3.templates import CODER, QWEN3_6, SPECIFIED
from builder.qwen3.tokenizer import target_for
from builder.verify.options import VerifyOptions
from builder.verify.verifier import Verifier

PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
TOOLS = ({"type": "function", "function": {"name": "f", "parameters": PARAMETERS}},)


def conversation(arguments, text="I call."):
    call = ToolCall("f", arguments, "1")
    return Conversation(
        id="c",
        record="line 1",
        messages=(
            Message("system", (Text(" s "),)),
            Message("user", (Text(" a\n"),)),
            Message("assistant", (Text(text), call)),
            Message("tool", (ToolResult((Text("out\n"),), "1"),)),
            Message("assistant", (Text("Done. "),)),
        ),
        tools=TOOLS,
    )


def result(arguments, style=QWEN3_6, **options):
    return normalise(conversation(arguments), NormalizeOptions(style=style, **options))


def test_a_call_that_is_given_back_is_a_target():
    turns = result({"n": 3, "s": "x"}).dialogue.turns
    assert [turn.trained for turn in turns if turn.role == "assistant"] == [True, True]


def test_a_lost_type_makes_the_turn_context_with_what_is_read_back():
    for policy in ("split", "weight"):
        found = result({"n": "3"}, untrained_turns=policy)
        answers = [turn for turn in found.dialogue.turns if turn.role == "assistant"]
        assert [turn.trained for turn in answers] == [False, True]
        assert answers[0].calls[0].arguments == {"n": 3}
        assert found.changes["untrained_turns"] == 1


def test_a_turn_in_whose_text_an_engine_finds_a_call_is_context():
    found = normalise(conversation({"n": 3}, "Use <function=f>."), NormalizeOptions(style=QWEN3_6))
    answers = [turn for turn in found.dialogue.turns if turn.role == "assistant"]
    assert [turn.trained for turn in answers] == [False, True]
    other = normalise(
        conversation({"n": 3}, "Use <function=f>."), NormalizeOptions(style=SPECIFIED)
    )
    assert all(turn.trained for turn in other.dialogue.turns)


def test_a_lost_call_is_rejected_if_context_is_not_wanted():
    assert result({"n": "3"}, untrained_turns="reject").problem.code == "xml_types"


def test_a_value_with_tags_ends_the_conversation():
    found = result({"s": "</parameter>"})
    assert found.problem.code == "xml_markup"
    assert set(found.dropped.values()) == {"xml_markup"}


def test_edges_are_trimmed_where_the_template_trims_them():
    turns = result({"n": 3}).dialogue.turns
    assert [turn.content for turn in turns] == ["s", "a", "I call.", "", "Done."]
    assert turns[3].responses == ("out",)
    assert result({"n": 3}).changes["trimmed"] == 4
    called = normalise(conversation({"n": 3}, " I call. "), NormalizeOptions(style=CODER)).dialogue
    assert [turn.content for turn in called.turns] == [" s ", " a\n", "I call.", "", "Done. "]


def test_a_call_that_engines_break_is_a_warning_or_rejected():
    options = NormalizeOptions(control_tokens="neutralise")
    dialogue = normalise(conversation({"s": "a </tool_call> b"}), options).dialogue
    for policy, kind in (((), "warnings"), (("engine",), "findings")):
        verifier = Verifier(target_for("qwen3"), VerifyOptions(require=policy))
        verdict = verifier.check(flatten(dialogue), dialogue)
        assert "engine_breaks_call" in {item.code for item in getattr(verdict, kind)}
