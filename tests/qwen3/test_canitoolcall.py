"""The fixtures of canitoolcall 0.1.1: raw outputs of models, and what they mean.

A reader for training data refuses what an inference engine repairs: text that no rendering contains
is a fault. What it accepts must have exactly the meant calls, text, thought and types. Each fixture
that is refused is named in docs/differences.md.
"""

import re

import pytest
from support.places import ROOT
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
    return calls, found.text.strip(), found.thought.strip()


def meant(fixture):
    expected = fixture.get("expected")
    if expected is None:
        return None
    calls = [(call["name"], call["arguments"]) for call in expected["tool_calls"]]
    thought = expected.get("reasoning_content") or ""
    return calls, (expected["content"] or "").strip(), thought.strip()


def listed():
    """Returns the ids that the page of differences names as refused."""
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    return set(re.findall(r"`(qwen3-(?:hermes|xml)/[a-z0-9._-]+)`", page))


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
    assert refused == {name for name in listed() if name.startswith(family)}
