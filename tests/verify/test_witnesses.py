"""Other engines as witnesses: each reports planted damage, and agrees where nothing is damaged.

A witness whose package is not installed is skipped; scripts/conformance.sh installs all of them.
"""

from dataclasses import replace
from importlib.util import find_spec

import pytest
from support.templates.published import text_of
from support.templates.targets import with_template
from support.templates.witnesses import WITNESSES, NotAskedError, calls_fault, case_of, replayed

from builder.qwen3.flat import flatten
from builder.qwen3.tokenizer import target_for
from builder.sample import Call, Dialogue, Turn
from builder.verify.verifier import Verifier

PACKAGES = {
    "llama.cpp": "ggufdoctor",
    "sglang": "llm_router_utils",
    "transformers": "transformers",
    "xgrammar": "xgrammar",
}
TOOL = {
    "type": "function",
    "function": {
        "name": "wc",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
            "required": ["path"],
        },
    },
}
FIRST, SECOND = ("wc", {"path": "notes.txt", "lines": 12}), ("wc", {"path": "12"})
TURNS = (
    Turn("user", "How long?"),
    Turn("assistant", "I count.", "", (Call.of(*FIRST), Call.of(*SECOND))),
    Turn("tool", responses=("12", "13")),
    Turn("assistant", "Twelve."),
)
DAMAGE = {
    "a closing tag is missing": ("</tool_call>", ""),
    "another tool is called": ("wc", "cw"),
    "an argument has another value": ("notes.txt", "note.txt"),
    "a number is written as text": ("12", "twelve"),
    "a key is written differently": ("path", "paths"),
    "the text is different": ("I count.", "I <tool_call> count."),
}
UNSEEN = {
    # Without closing tags it reads the rest of the text as the call.
    ("sglang", "XML"): ["a closing tag is missing"],
    # A grammar states which values are possible, not which one is meant.
    ("xgrammar", "JSON"): ["an argument has another value"],
    # A call begins with both tags here, so one of them is text.
    ("xgrammar", "XML"): ["an argument has another value", "the text is different"],
}
"""Damage that a witness cannot see, because of what it is."""


@pytest.fixture(scope="module", params=["JSON", "XML"])
def target(request):
    return target_for("qwen3") if request.param == "JSON" else with_template(text_of("Qwen3.5"))


@pytest.fixture(scope="module")
def case(target):
    dialogue = Dialogue(TURNS, (TOOL,))
    sample = flatten(dialogue, target.style)
    verdict = Verifier(target).check(sample, dialogue)
    assert not verdict.findings
    return case_of(sample, verdict.text, verdict.spans, target)


@pytest.fixture(params=PACKAGES)
def witness(request, target):
    if find_spec(PACKAGES[request.param]) is None:
        pytest.skip(f"{PACKAGES[request.param]} is not installed")
    return WITNESSES[request.param](target)


def damaged(case, old, new):
    """Returns the case with damaged text, and the meaning that it had."""
    generated = [replace(item, response=item.response.replace(old, new)) for item in case.generated]
    assert generated[0].response != case.generated[0].response
    return replace(case, text=case.text.replace(old, new), generated=tuple(generated))


def test_every_witness_has_a_package():
    assert PACKAGES.keys() == WITNESSES.keys()


def test_the_case_has_what_a_model_writes(case):
    first, last = case.generated
    assert first.prefix + first.response + last.prefix[len(first.prefix + first.response) :] == (
        last.prefix
    )
    assert (first.turn, last.turn) == (TURNS[1], TURNS[3])
    assert first.body.startswith("I count.")
    assert last.body == "Twelve."
    assert first.meant == [FIRST, SECOND]


def test_a_witness_agrees_with_a_proven_sample(witness, case):
    assert witness.version
    assert witness.fault(case) is None


@pytest.mark.quick(12)
@pytest.mark.parametrize("name", DAMAGE)
def test_a_witness_reports_planted_damage(witness, case, name):
    fault = witness.fault(damaged(case, *DAMAGE[name]))
    dialect = case.target.style.dialect.name
    assert (fault is None) == (name in UNSEEN.get((witness.name, dialect), ()))


@pytest.mark.parametrize("arguments", [{}, {"path": "a", "todos": [{"a": "b"}]}])
def test_forms_that_the_grammar_for_xml_refuses(witness, case, arguments):
    if (witness.name, case.target.style.dialect.name) == ("xgrammar", "XML"):
        called = Turn("assistant", "", "", (Call.of("list", arguments),))
        properties = {"path": {"type": "string"}, "todos": {"type": "array"}}
        parameters = {"type": "object", "properties": properties}
        tool = {"type": "function", "function": {"name": "list", "parameters": parameters}}
        dialogue = Dialogue((TURNS[0], called), (tool,))
        sample = flatten(dialogue, case.target.style)
        verdict = Verifier(case.target).check(sample, dialogue)
        assert not verdict.findings
        with pytest.raises(NotAskedError, match="its grammar"):
            witness.fault(case_of(sample, verdict.text, verdict.spans, case.target))


@pytest.mark.parametrize(
    "found",
    [
        [],
        [("cw", {"a": 1})],
        [("wc", {"a": True})],
        [("wc", {"a": 1.5})],
        [("wc", {})],
        [("wc", 1)],
    ],
)
def test_calls_that_are_read_differently(found):
    meant = [("wc", {"a": 1})]
    assert calls_fault(meant, meant) is None
    assert calls_fault(meant, [("wc", {"a": 1.0})]) is None
    assert calls_fault(meant, found) is not None


@pytest.mark.skipif(find_spec("llm_router_utils") is None, reason="llm-router-utils is missing")
@pytest.mark.parametrize("text", ["I count.", " I count.\n", ""])
def test_the_rule_for_sglang_is_what_its_parser_does(target, text):
    turn = replace(TURNS[1], content=text)
    sample = flatten(Dialogue((TURNS[0], turn), (TOOL,)), target.style)
    engine = WITNESSES["sglang"](target)
    read = engine.read(sample.messages[1][1], (TOOL,))
    content = read.normal_text.strip() if target.style.trims != "none" else read.normal_text
    assert replayed("sglang", turn, target.style).content == content
