"""Properties of the pipeline for targets that write calls as XML, as test_laws.py for JSON."""

from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.conversations.strategies import MANY, conversations, fit
from support.templates.published import text_of
from support.templates.targets import with_template
from test_laws import options

from builder.conversation import ToolCall
from builder.dataset.forms import read_sample
from builder.jsonio import loads
from builder.normalize.normalise import normalise
from builder.normalize.units import examples
from builder.qwen3.flat import flatten, to_dialogue
from builder.verify.verifier import Verifier

REFUSED = {"render"}
"""Some of these templates refuse a conversation without a query."""


@pytest.fixture(scope="module", params=["Qwen3.5", "Qwen3.8", "Qwen3-Coder"])
def checker(request):
    return Verifier(with_template(text_of(request.param)))


@pytest.mark.slow
@MANY
@given(st.one_of(conversations, fit, fit), options)
def test_normalised_conversations_are_verified(checker, conversation, chosen):
    """Each sample passes every check, or the template refuses it; no call is lost unnoticed."""
    style = checker.target.style
    chosen = replace(chosen, style=style, late_system="user")
    normalised = normalise(conversation, chosen)
    total = sum(isinstance(p, ToolCall) for m in conversation.messages for p in m.parts)
    assert normalised.kept | set(normalised.dropped) == set(range(total))
    if normalised.dialogue is None:
        event(f"rejected {normalised.problem.code}")
        return
    for piece in examples(normalised.dialogue, chosen.unit, style):
        sample = flatten(piece.dialogue, style)
        verdict = checker.check(sample, piece.dialogue, piece.targets)
        codes = {finding.code for finding in verdict.findings}
        assert codes <= REFUSED
        if codes:
            event("refused")
            continue
        event("built")
        alone = checker.check(sample, targets=piece.targets)
        assert alone.findings == ()
        assert read_sample(loads(sample.line)) == sample
        assert [turn.calls for turn in to_dialogue(sample, style).turns] == [
            turn.calls for turn in piece.dialogue.turns
        ]
