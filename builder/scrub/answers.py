"""Finds the secrets that only the calls of a dialogue show (`builder.secrets.answers`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from builder.sample import Dialogue
from builder.scrub.texts import value_strings
from builder.secrets.answers import find_in_call
from builder.secrets.hits import Hit


def find_answers(dialogue: Dialogue) -> Iterator[tuple[str, Hit]]:
    """Yields (text of the dialogue, secret in it) for the calls that show what a text contains."""
    for turn, following in pairwise((*dialogue.turns, None)):
        assert turn is not None, "only the last of all is None"
        answers = following.responses if following is not None else ()
        for number, call in enumerate(turn.calls):
            texts = [text for _, text in value_strings(call.arguments)]
            yield from find_in_call(texts, answers[number] if number < len(answers) else "")
