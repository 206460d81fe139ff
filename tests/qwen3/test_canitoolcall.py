"""The fixtures of canitoolcall 0.1.1: raw outputs of models, and what they mean.

A reader for training data refuses what an inference engine repairs: text that no rendering contains
is a fault. What it accepts must have exactly the meant calls, text, thought and types. `REFUSED`
lists those that are refused.
"""

import re

import pytest
from support.templates.published import fixtures

from builder.jsonio import dumps
from builder.qwen3.calls import ParseFault, signatures
from builder.qwen3.flat import split_answer
from builder.qwen3.templates import QWEN3_6, SPECIFIED

STYLES = {"qwen3-hermes": SPECIFIED, "qwen3-xml": QWEN3_6}


def answer_of(fixture):
    """Returns the assistant turn as text: with the think block that the prompt began."""
    prompt = fixture.get("generation_prompt") or ""
    begun = prompt.rpartition("<|im_start|>assistant\n")[2]
    text = f"{begun}{fixture['raw_output']}"
    return re.sub(r"(<\|im_end\|>|<\|endoftext\|>)\n?$", "", text)


def parsed(fixture):
    """Returns (calls, text, thought), or the code of the fault."""
    style = STYLES[fixture["family"]]
    known = signatures(tuple(map(dumps, fixture["tools"])))
    try:
        found = split_answer(answer_of(fixture), style, known)
    except ParseFault as fault:
        return fault.code
    calls = [(call.name, call.arguments) for call in found.calls]
    return calls, found.content.strip(), found.reasoning.strip()


def meant(fixture):
    expected = fixture.get("expected")
    if expected is None:
        return None
    calls = [(call["name"], call["arguments"]) for call in expected["tool_calls"]]
    thought = expected.get("reasoning_content") or ""
    return calls, (expected["content"] or "").strip(), thought.strip()


REFUSED = {
    # cut off inside a call
    "qwen3-hermes/bug-sglang-30480-truncated-mid-arguments",
    "qwen3-hermes/bug-sglang-30480-truncated-at-opener",
    "qwen3-hermes/truncated-mid-arguments-no-thinking",
    "qwen3-hermes/truncated-mid-arguments-thinking",
    "qwen3-hermes/truncated-after-open-tag",
    "qwen3-hermes/truncated-second-parallel-call",
    "qwen3-xml/q38-truncated-in-parameter",
    "qwen3-xml/q38-truncated-at-tool-call-open",
    # other white space, or text after the call, than the template writes
    "qwen3-hermes/vllm-no-newlines-no-spaces",
    "qwen3-hermes/vllm-text-then-call-no-separator",
    "qwen3-hermes/vllm-two-calls-no-separator",
    "qwen3-hermes/vllm-content-and-call-single-chunk",
    "qwen3-hermes/sglang-text-before-call-with-space",
    "qwen3-xml/llamacpp-q35-reasoning-content-call",
    "qwen3-xml/vllm-coder-text-before-call-no-newline",
    "qwen3-xml/bug-coder-text-after-call",
    "qwen3-xml/bug-coder-number-outside-int64",
    # a think block in another form than the template writes
    "qwen3-hermes/vllm-reasoning-multiline",
    "qwen3-hermes/vllm-reasoning-without-start-token",
    # a brace or a closing tag is missing
    "qwen3-hermes/vllm-invalid-json-missing-brace",
    "qwen3-xml/vllm-coder-missing-close-parameter",
    "qwen3-xml/bug-missing-close-parameter-before-function",
    # JSON that is none
    "qwen3-hermes/sglang-malformed-json-in-tags",
    # a call inside of the thought
    "qwen3-xml/llamacpp-q35-call-inside-think",
    # no `<tool_call>` around the call
    "qwen3-xml/llamacpp-coder-bare-function",
    "qwen3-xml/llamacpp-coder-bare-function-parallel",
    "qwen3-xml/bug-coder-missing-tool-call-opener",
}
"""An engine should save what it can of these; a dataset may not hold what no rendering contains."""

UNFINISHED = {
    "qwen3-hermes/truncated-in-reasoning",
    "qwen3-hermes/thinking2507-truncated-in-reasoning",
    "qwen3-xml/q38-truncated-in-reasoning",
}
"""They end inside a thought, which stays text; the check `tokens` refuses such samples."""


@pytest.mark.parametrize("family", STYLES)
def test_what_is_accepted_is_what_was_meant(family):
    differing, refused = set(), set()
    for fixture in fixtures(family):
        found = parsed(fixture)
        if isinstance(found, str):
            refused.add(fixture["id"])
        elif found != meant(fixture):
            differing.add(fixture["id"])
    assert differing == {name for name in UNFINISHED if name.startswith(family)}
    assert refused == {name for name in REFUSED if name.startswith(family)}
