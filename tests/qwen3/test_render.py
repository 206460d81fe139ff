"""The independent renderer: what it returns besides the text, namely spans and control tokens."""

import re

from hypothesis import given
from hypothesis import strategies as st

from builder.qwen3.calls import EMPTY_THINK, JSON
from builder.qwen3.render import ASSISTANT, render, spans
from builder.qwen3.templates import SPECIFIED, Style, Thoughts

VERBATIM = Style(Thoughts.verbatim)
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "f", "description": "writes <tool_call>"}}


def visible(messages, tools=(), style=SPECIFIED):
    """Returns (trained texts, structural control tokens) of a rendering."""
    rendering = render(messages, tools, style)
    for offset, token in rendering.control:
        assert rendering.text.startswith(token, offset)
    assert list(rendering.control) == sorted(rendering.control)
    prompt = ASSISTANT + EMPTY_THINK if style is SPECIFIED else ASSISTANT
    trained = [rendering.text[start:end] for start, end in spans(rendering, prompt)]
    return trained, [token for _, token in rendering.control]


def test_an_empty_think_block_is_outside_the_span_and_structure():
    trained, control = visible([("user", "a"), ("assistant", "b")])
    assert trained == ["b<|im_end|>"]
    turns = ["<|im_start|>", "<|im_end|>", "<|im_start|>"]
    assert control == [*turns, "<think>", "</think>", "<|im_end|>"]


def test_a_kept_thought_is_trained():
    messages = [("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb")]
    assert visible(messages)[0] == ["<think>\nhm\n</think>\n\nb<|im_end|>"]


def test_calls_and_responses_are_structure_and_quoted_ones_are_not():
    messages = [
        ("user", "write <tool_call> and <think>"),
        ("assistant", f"so\n{CALL}\n{CALL}"),
        (
            "user",
            "<tool_response>\n1\n</tool_response>\n<tool_response>\n<think>\n</tool_response>",
        ),
        ("assistant", "x"),
    ]
    trained, control = visible(messages, [TOOL])
    assert trained == [f"so\n{CALL}\n{CALL}<|im_end|>", "x<|im_end|>"]
    call = ["<tool_call>", "</tool_call>"]
    response = ["<tool_response>", "</tool_response>"]
    assert control == [
        *["<|im_start|>", *call, *call, "<|im_end|>"],  # the system turn that contains the tools
        *["<|im_start|>", "<|im_end|>"],
        *["<|im_start|>", *call, *call, "<|im_end|>"],
        *["<|im_start|>", *response, *response, "<|im_end|>"],
        *["<|im_start|>", "<think>", "</think>", "<|im_end|>"],
    ]


def test_a_turn_that_only_resembles_responses_has_no_structure():
    for content in (
        "<tool_response></tool_response>",
        "<tool_response>\n</tool_response>",
        "<tool_response>\n1\n</tool_response> <tool_response>\n2\n</tool_response>",
        "<tool_response>\n1\n</tool_response>\n",
    ):
        control = visible([("user", content), ("assistant", "x")])[1]
        assert "<tool_response>" not in control, content


def test_a_template_without_thoughts_writes_contents_as_they_are():
    content = "\n<think>\nhm\n</think>\n\nb"
    trained, control = visible([("user", "a"), ("assistant", content)], style=VERBATIM)
    assert trained == [content + "<|im_end|>"]
    assert "<think>" not in control


SPECIFIED_CALL = re.compile(r"<tool_call>\s*(\{[\s\S]*?\})\s*</tool_call>")

pieces = st.sampled_from(
    ["<tool_call>", "</tool_call>", "{", "}", "\n", " ", "a", "{}", "\u2028", "\ufeff", "\x1c"]
)


@given(st.lists(pieces, max_size=24).map("".join))
def test_calls_are_found_as_the_specifications_pattern_finds_them(text):
    found = [(call.start, call.end, call.inner) for call in JSON.find(text, 0)]
    assert found == [(*m.span(), m[1]) for m in SPECIFIED_CALL.finditer(text)]
    for call in JSON.find(text, 0):
        assert text.startswith(call.inner, call.inner_at)
