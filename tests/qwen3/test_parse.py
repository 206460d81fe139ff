"""The inverse of rendering, and the parsing of assistant contents."""

import pytest
from hypothesis import given
from support.conversations.strategies import json_values, texts

from builder.jsonio import dumps, loads
from builder.qwen3.calls import ADDED_TOKENS, TOOLS_BEGIN, TOOLS_END, ParseFault, is_canonical
from builder.qwen3.flat import leading_thought, parse, split_answer, split_responses
from builder.qwen3.render import render
from builder.sample import Call, Sample
from builder.text import escape_tokens, token_pattern

TOOL = {"type": "function", "function": {"name": "f"}}
QUOTED = TOOLS_BEGIN + "\n{}" + TOOLS_END
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize("system", [None, "", "\n\n", "be kind", QUOTED, QUOTED + "\n\n"])
def test_the_system_text_and_the_tools_are_distinguished(system):
    """Even if the system text itself quotes a tools block."""
    head = [] if system is None else [("system", system)]
    sample = Sample((*head, ("user", "a"), ("assistant", "b")), (TOOL,))
    assert parse(render(sample.messages, sample.tools).text) == sample


def test_a_system_text_that_ends_like_a_tools_block_is_text_unless_it_is_one():
    for text in (TOOLS_BEGIN + "\nno JSON" + TOOLS_END, "so " + QUOTED, TOOLS_END):
        sample = Sample((("system", text), ("user", "a"), ("assistant", "b")))
        assert parse(render(sample.messages).text) == sample


FAULTS = {
    "words": ("hello", 0),
    "no end": ("<|im_start|>user\nhello", 0),
    "no newline after the end": ("<|im_start|>user\nhello<|im_end|>", 0),
    "a role of another family": ("<|im_start|>developer\nhello<|im_end|>\n", 0),
    "a turn inside a turn": ("<|im_start|>user\n<|im_start|>user\nx<|im_end|>\n", 0),
    "words between turns": ("<|im_start|>user\nx<|im_end|>\nso", 29),
}


@pytest.mark.parametrize("name", FAULTS)
def test_text_that_no_sample_renders_to_is_a_fault_with_its_offset(name):
    text, offset = FAULTS[name]
    with pytest.raises(ParseFault) as fault:
        parse(text)
    assert fault.value.offset == offset


THOUGHTS = {
    "<think>\nhm\n</think>\n\nb": ("hm", "b"),
    "\n<think>hm</think>b": ("hm", "b"),
    "<think>\n\n</think>\n\nb": ("", "b"),
    "<think>\nhm": ("", "<think>\nhm"),
    "so <think>hm</think>b": ("", "so <think>hm</think>b"),
    "a</think>b": ("", "a</think>b"),
    "<think>a</think>b</think>c": ("a", "b</think>c"),
}


@pytest.mark.parametrize("content", THOUGHTS)
def test_a_think_block_counts_only_at_the_beginning(content):
    assert leading_thought(content) == THOUGHTS[content]


def test_only_the_newline_before_a_call_is_removed_from_text():
    answer = split_answer(f"so\n\n{CALL}")
    assert (answer.content, len(answer.calls)) == ("so\n", 1)
    assert split_answer(f"<think>\nhm\n</think>\n\n{CALL}").reasoning == "hm"


def test_responses_are_split_where_the_template_joins_them():
    one, two = "<tool_response>\n1\n\n</tool_response>", "<tool_response>\n\n</tool_response>"
    assert split_responses(f"{one}\n{two}") == ("1\n", "")
    assert split_responses(f"{one}\n\n{two}") is None
    assert split_responses(f"{one}\n") is None
    assert split_responses("<tool_response>\n</tool_response>") is None


@given(texts, json_values)
def test_neutralised_arguments_are_canonical_and_keep_their_value(key, value):
    arguments = {key: value}
    text, count = escape_tokens(dumps(arguments), token_pattern(ADDED_TOKENS))
    assert is_canonical(Call("f", loads(text), text))
    assert count or text == dumps(arguments)


@pytest.mark.parametrize(
    "text", [r'{"a":1}', r'{"a": 1.0}', r'{"a": "\u003cb"}', r'{"a": "x\/y"}', r'{"a": "\u0061"}']
)
def test_other_spellings_of_a_call_are_not_canonical(text):
    value = {"a": 1} if "1" in text else loads(text)
    assert not is_canonical(Call("f", value, text))
