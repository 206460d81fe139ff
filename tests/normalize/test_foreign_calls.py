"""A call in another model's markup, which a server left in the text, is no answer to be learnt."""

import pytest

from builder.conversation import Conversation, Message, Text
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions

CALLS = (
    '<|tool_call_start|>[look(path="desk")]<|tool_call_end|>',
    "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function",
    "<\uff5cDSML\uff5cfunction_calls>\n<\uff5cDSML\uff5cinvoke",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0",
    '<|python_tag|>{"name": "look", "parameters": {}}',
    '[TOOL_CALLS] [{"name": "look", "arguments": {}}]',
    "<|channel|>commentary to=functions.look <|constrain|>json<|message|>{}",
    '<minimax:tool_call>\n<invoke name="look">\n</invoke>\n</minimax:tool_call>',
    "<|tool_call>call:look{path:1}<tool_call|>",
    '<|tool_call|>[{"name": "look", "arguments": {}}]',
    "<start_function_call>call:look{}<end_function_call>",
    '<TOOLCALL>[{"name": "look", "arguments": {}}]</TOOLCALL>',
    '<function_calls>\n<invoke name="look">\n</invoke>\n</function_calls>',
)
FINE = (
    "LFM2 begins a call with `<|tool_call_start|>[look()]`.",
    "```\n[TOOL_CALLS] [{}]\n```\nis Mistral's form.",
    "The list [TOOL_CALLS] is empty.",
    "a <| b |> c",
)


def _built(answer: str, prompt: str = "Look."):
    messages = (
        Message("user", (Text("Hello."),)),
        Message("assistant", (Text("Hi."),), turn="1"),
        Message("user", (Text(prompt),)),
        Message("assistant", (Text(answer),), turn="2"),
    )
    conversation = Conversation(id="x", record="x", messages=messages, tools=())
    return normalise(conversation, NormalizeOptions())


def _trained(normalised) -> list[str]:
    assert normalised.dialogue is not None
    turns = normalised.dialogue.turns
    return [turn.content for turn in turns if turn.role == "assistant"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("before", ["", "I look.\n\n"])
def test_sample_ends_before_an_unparsed_call(call: str, before: str) -> None:
    found = _built(before + call)
    assert _trained(found) == ["Hi."]
    assert found.changes["turns_cut"] == 1


@pytest.mark.parametrize("call", CALLS)
def test_markup_that_the_prompt_asks_for_is_an_answer(call: str) -> None:
    found = _built(call, f"Call tools in this form: {call}")
    assert _trained(found) == ["Hi.", call]
