"""Properties of scrubbing, on random conversations of hostile text with planted secrets."""

from dataclasses import replace
from itertools import cycle

from hypothesis import given
from hypothesis import strategies as st
from support.conversations.strategies import conversations
from support.sensitive.planted import AWS, BEARER, GITHUB, PASSWORD, PEM

from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.normalize.units import UNITS, examples
from builder.qwen3.calls import ADDED_TOKENS
from builder.qwen3.flat import flatten
from builder.scrub.options import ScrubOptions
from builder.scrub.personal import find_personal
from builder.scrub.redact import Scrubber, dialogue_strings
from builder.secrets.secrets import find_secrets

PLANTS = {
    GITHUB: f" {GITHUB} ",
    AWS: f"\n{AWS}\n",
    BEARER: f'\n"Authorization": "Bearer {BEARER}"\n',
    PASSWORD: f" postgres://app:{PASSWORD}@db/x ",
    PEM: f"\n{PEM}\n",
    "ada.l@mail.acme.io": " <ada.l@mail.acme.io> ",
    "alovelace": " /Users/alovelace/x ",
}
OPTIONS = ScrubOptions("redact", "pseudonymise")


def scrubber():
    return Scrubber(OPTIONS, b"k" * 32, ADDED_TOKENS)


def planted(turn, plants):
    """Returns the turn with something planted in each of its texts."""
    content = turn.content and f"{turn.content}{PLANTS[next(plants)]}."
    responses = tuple(f"{text}{PLANTS[next(plants)]}" for text in turn.responses)
    return replace(turn, content=content, responses=responses)


def unproven(verifier, dialogue, unit):
    """Returns whether another fault rejects the sample: a name that breaks the JSON of a call."""
    return any(
        verifier.check(flatten(one.dialogue), one.dialogue, one.targets).findings
        for one in examples(dialogue, unit)
    )


@given(conversations, st.sampled_from(UNITS), st.permutations(list(PLANTS)))
def test_a_scrubbed_sample_is_proven_and_holds_nothing(verifier, conversation, unit, plants):
    options = NormalizeOptions(unit=unit, control_tokens="neutralise", reasoning="keep")
    dialogue = normalise(conversation, options).dialogue
    if dialogue is None or unproven(verifier, dialogue, unit):
        return
    order = cycle(plants)
    turns = tuple(planted(turn, order) for turn in dialogue.turns)
    scrubbed = scrubber().dialogue(replace(dialogue, turns=turns))
    assert scrubbed.problem is None
    for example in examples(scrubbed.dialogue, unit):
        sample = flatten(example.dialogue)
        verdict = verifier.check(sample, example.dialogue, example.targets)
        assert verdict.findings == ()
    texts = [text for _, text in dialogue_strings(scrubbed.dialogue)]
    assert not [datum for datum in PLANTS for text in texts if datum in text]
    assert not [hit for text in texts for hit in (*find_secrets(text), *find_personal(text))]


@given(conversations)
def test_scrubbing_twice_changes_nothing_more(conversation):
    dialogue = normalise(conversation, NormalizeOptions(control_tokens="neutralise")).dialogue
    if dialogue is not None:
        once = scrubber().dialogue(dialogue).dialogue
        assert scrubber().dialogue(once).dialogue == once
