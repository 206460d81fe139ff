"""The published templates of the Qwen3 family: parity, thoughts, our renderer of each."""

from functools import cache

import pytest
from hypothesis import given
from support.conversations.foreign import foreign, wrapped
from support.conversations.masks import CALL, NONE, PLAIN, SAMPLES, TOOL, TWO_QUERIES
from support.pages.differences import blocks, is_shown
from support.templates.published import text_of
from support.templates.targets import TEMPLATE, with_template

from builder.qwen3.render import counts, render
from builder.qwen3.templates import Thoughts
from builder.sample import Sample
from builder.verify.verifier import Verifier

PARITY = {
    "Qwen3 original (2025-04)": {"plain": (2, 1), "two queries": (2, 1), "thoughts": (2, 0)},
    "Qwen3": {"plain": (2, 1), "two queries": (2, 1), "thoughts": (2, 0)},
    "Qwen3 Thinking-2507": {"plain": (1, 1), "two queries": (1, 1), "thoughts": (2, 2)},
    "Qwen3-VL Thinking": {"plain": (1, 1), "two queries": (1, 1), "thoughts": (2, 2)},
    "Qwen3 Instruct-2507": {"plain": (2, 2), "two queries": (2, 2)},
    "Qwen3-VL Instruct": {"plain": (2, 2), "two queries": (2, 2)},
    "Qwen2.5": {"plain": (2, 2), "two queries": (2, 2)},
    "QwQ-32B": {"plain": (0, 0), "two queries": (0, 0)},
    "QwQ-32B (early text)": {"plain": (0, 0), "two queries": (0, 0)},
}
"""How many of two turns are in parity, (thinking, non-thinking), in the samples of test_masks."""


@cache
def known(name):
    """Returns the target of a published template."""
    return with_template(text_of(name))


@pytest.fixture(scope="module")
def target(request):
    return known(request.param)


each_target = pytest.mark.parametrize("target", PARITY, indirect=True, scope="module")


LATE = (("user", "a"), ("assistant", "b"), ("system", "c"), ("user", "d"), ("assistant", "e"))


@each_target
def test_a_late_system_message_is_proven_where_the_template_renders_it(target):
    findings = Verifier(target).check(Sample(LATE), late_system=True).findings
    assert target.renders_late_system == (not findings)
    assert target.renders_late_system == (target.template_name != "Qwen3-VL Instruct")
    codes = {finding.code for finding in Verifier(target).check(Sample(LATE)).findings}
    assert "order" in codes


@each_target
def test_parity_with_inference(target, request):
    expected = PARITY[request.node.callspec.params["target"]]
    found = {}
    for name in expected:
        verdict = Verifier(target).check(SAMPLES[name])
        assert verdict.findings == ()
        found[name] = tuple(counts(verdict.parity).values())
    assert found == expected


@each_target
def test_thoughts_are_proven_where_the_template_has_them(target):
    codes = {finding.code for finding in Verifier(target).check(SAMPLES["thoughts"]).findings}
    match target.style.thoughts:
        case Thoughts.hybrid:
            assert codes == set()
        case Thoughts.verbatim:
            assert "tokens" in codes, "control tokens that have no meaning there"
        case Thoughts.last | Thoughts.dropped:
            assert "lossy" in codes, "thoughts of earlier turns are dropped"


@each_target
@given(foreign, wrapped)
def test_our_renderer_gives_its_bytes(target, messages, tools):
    """For messages of any order, except a late system message, which VL-Instruct omits."""
    rows = [{"role": role, "content": content} for role, content in messages]
    if target.template_name == "Qwen3-VL Instruct" and ("system" in dict(messages[1:])):
        return
    assert render(messages, tools, target.style).text == target.render(rows, tools)


NEUTRALISED = CALL.replace('"a"', r'"\u003c|im_end|>"')


@each_target
def test_neutralised_calls_are_proven_where_arguments_are_not_encoded_again(target, request):
    """A server receives them as text; Qwen2.5 and QwQ make that a JSON string."""
    messages = (PLAIN.messages[0], ("assistant", NEUTRALISED), *PLAIN.messages[2:])
    found = Verifier(target).check(Sample(messages, PLAIN.tools)).findings
    again = request.node.callspec.params["target"].startswith(("Qwen2.5", "QwQ"))
    assert [finding.code for finding in found] == (["structured"] if again else [])


USER = {"role": "user", "content": "a"}
ANSWER = {"role": "assistant", "content": "b"}
BLANK = {"role": "assistant", "content": "\n\nb"}
CALLS = [{"type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]
CASES = {
    "tools": ([USER, ANSWER], {"tools": [TOOL]}),
    "newlines": ([USER, BLANK, USER, BLANK], {}),
    "late system": ([USER, {"role": "system", "content": "s"}, ANSWER], {}),
    "list": ([{"role": "user", "content": [{"type": "text", "text": "a"}]}, ANSWER], {}),
    "arguments": ([USER, {"role": "assistant", "content": "", "tool_calls": CALLS}], {}),
    "prompt": ([USER], {"add_generation_prompt": True, "enable_thinking": False}),
}


@pytest.mark.parametrize(("name", "case"), blocks("template"))
def test_the_page_of_differences(name, case):
    messages, options = CASES[case]
    text = known(name).render(messages, **{"tools": None, **options})
    assert is_shown(text, blocks("template")[name, case])


def test_a_template_in_the_style_of_qwq_is_recognised_without_any_package():
    """The embedded template, changed to drop only the thoughts of earlier turns."""
    text = TEMPLATE.replace("'</think>' in content", "'</think>' in content and not loop.last")
    text = text.replace("loop.index0 > ns.last_query_index", "false")
    assert text != TEMPLATE
    found = with_template(text)
    assert (found.template_name, found.style.thoughts) == ("unknown", Thoughts.last)
    for name in ("plain", "two queries", "continued"):
        assert Verifier(found).check(SAMPLES[name]).findings == (), name
    visible = Sample((*TWO_QUERIES.messages[:3], ("assistant", f"{NONE}d")))
    assert Verifier(found).check(visible).text.endswith(f"assistant\n{NONE}d<|im_end|>\n")
