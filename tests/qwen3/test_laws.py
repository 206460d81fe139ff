"""Properties of the whole pipeline, on random conversations of hostile text."""

import contextlib
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.conversations.foreign import foreign, wrapped
from support.conversations.strategies import MANY, conversations, fit, texts

from builder.conversation import Conversation, Message, Text, ToolCall
from builder.dataset.forms import read_sample, targets
from builder.jsonio import JsonFault, loads
from builder.normalize.normalise import normalise
from builder.normalize.options import Masked, NormalizeOptions
from builder.normalize.units import UNITS, examples
from builder.qwen3.calls import ParseFault
from builder.qwen3.flat import flatten, parse, structured, to_dialogue
from builder.qwen3.render import render
from builder.sample import Sample

options = st.builds(
    NormalizeOptions,
    unit=st.sampled_from(UNITS),
    system=st.sampled_from(["keep", "drop"]),
    reasoning=st.sampled_from(["drop", "keep"]),
    late_system=st.sampled_from(["user", "keep", "reject"]),
    harness=st.sampled_from(["keep", "drop"]),
    end=st.sampled_from(["call", "answer"]),
    untrained_turns=st.sampled_from(["split", "weight", "weight", "reject"]),
    parallel_calls=st.sampled_from(["keep", "split", "reject"]),
    control_tokens=st.sampled_from(["neutralise", "neutralise", "context", "reject"]),
    tools=st.sampled_from(["all", "called"]),
    missing_tools=st.sampled_from(["infer", "reject"]),
    mask=st.lists(st.sampled_from(get_args(Masked)), unique=True).map(tuple),
)


@MANY
@given(conversations, options)
def test_normalised_conversations_are_proven(verifier, conversation, options):
    """Each of our samples passes every check; every call is kept or dropped with a code."""
    normalised = normalise(conversation, options)
    total = sum(isinstance(p, ToolCall) for m in conversation.messages for p in m.parts)
    assert normalised.kept.isdisjoint(normalised.dropped)
    assert normalised.kept | set(normalised.dropped) == set(range(total))
    if normalised.dialogue is None:
        event(f"rejected {normalised.problem.code}")
        assert not normalised.kept
        return
    event("built")
    dialogue = normalised.dialogue
    pieces = list(examples(dialogue, options.unit))
    answers = [turn for turn in dialogue.turns if turn.role == "assistant"]
    wanted = [at for at, turn in enumerate(answers) if turn.trained]
    assert len(normalised.contexts) == len(answers)
    may_hold_context = options.untrained_turns == "weight" or conversation.recorded
    assert all(turn.trained for turn in answers) or may_hold_context
    trained = [piece.origins[at] for piece in pieces for at in piece.targets]
    assert trained == wanted, "each target is trained once, in order"
    late_system = options.late_system == "keep"
    for piece in pieces:
        sample = flatten(piece.dialogue)
        verdict = verifier.check(sample, piece.dialogue, piece.targets, late_system=late_system)
        assert verdict.findings == ()
        # As foreign data, without the intended dialogue, it is proven as well.
        alone = verifier.check(sample, targets=piece.targets, late_system=late_system)
        assert alone.findings == ()
        assert len(verdict.spans) == len(verdict.parity) == len(piece.targets)
        assert parse(verdict.text) == replace(sample, weights=())
        assert read_sample(loads(sample.line)) == sample
        if sample.weights:
            event("weighted")
            assert sample.targets == piece.targets
        assert targets(sample, options.unit, len(piece.targets)) == piece.targets
    assert verdict.calls == len(normalised.kept), "the last one has all targets"


@MANY
@given(fit, st.sampled_from(["drop", "keep"]))
def test_hostile_text_survives_rendering_and_parsing(verifier, conversation, reasoning):
    """Flatten, render, parse; our renderer's bytes are the template's; flat is structured."""
    chosen = NormalizeOptions(control_tokens="neutralise", reasoning=reasoning)
    normalised = normalise(conversation, chosen)
    if normalised.dialogue is None:
        event(f"rejected {normalised.problem.code}")
        return
    event("built")
    dialogue = normalised.dialogue
    sample = flatten(dialogue)
    text = verifier.target.render_sample(sample)
    assert render(sample.messages, sample.tools).text == text
    assert verifier.target.render(structured(dialogue), dialogue.tools) == text
    assert parse(text) == sample
    assert to_dialogue(sample).turns == dialogue.turns
    assert verifier.check(sample, dialogue).findings == ()


@pytest.mark.parametrize("token", ["<|x|>", '<"x">', "<é>", "<\\n>", "<\n\n>", "<\t>"])
def test_tokens_in_definitions_are_broken_in_every_json_spelling(token):
    tool = {"name": "f", "description": f"{token} and {token}", "parameters": {}}
    message = (Message("user", (Text("a"),)), Message("assistant", (Text("b"),)))
    conversation = Conversation(id="a", record="a", messages=message, tools=(tool,))
    chosen = NormalizeOptions(control_tokens="neutralise", added_tokens=(token, "<|y|>"))
    normalised = normalise(conversation, chosen)
    broken = f"< {token[1:]}"
    function = normalised.dialogue.tools[0]["function"]
    assert function["description"] == f"{broken} and {broken}"
    assert normalised.changes["control_tokens"] == 2


@given(conversations, options)
def test_normalising_is_deterministic(conversation, options):
    """The same conversation and options give the same result."""
    assert normalise(conversation, options) == normalise(conversation, options)


@MANY
@given(foreign, wrapped)
def test_our_renderer_gives_the_bytes_of_the_template(verifier, messages, tools):
    """For any messages, including those that no sample may contain."""
    rows = [{"role": role, "content": content} for role, content in messages]
    assert render(messages, tools).text == verifier.target.render(rows, tools)


@MANY
@given(foreign, wrapped)
def test_any_foreign_sample_gets_a_verdict(verifier, messages, tools):
    """No crash, and a proven sample reads back from its rendering."""
    sample = Sample(tuple(messages), tuple(tools))
    verdict = verifier.check(sample)
    if not verdict.findings:
        assert parse(verdict.text) == sample


@given(st.one_of(st.text(), texts, st.binary()))
def test_any_bytes_are_a_value_or_a_fault(data):
    """Neither the JSON reader nor the parser of renderings raises other exceptions."""
    with contextlib.suppress(JsonFault):
        read_sample(loads(data))
    if isinstance(data, str):
        with contextlib.suppress(ParseFault):
            parse(data)
