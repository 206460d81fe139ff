"""The audit of turns: its cues agree with its patterns, and it detects languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.audit import turns


@given(st.from_regex(turns._REFUSAL))
def test_every_refusal_contains_one_of_the_cues(text):
    match = turns._REFUSAL.search(text)
    assert any(cue in match[0].lower() for cue in turns._REFUSAL_CUES)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "none"),
        ("12 + 3?", "none"),
        ("ls", "Latin script, too short to tell"),
        ("Is this the file that you are looking for?", "English"),
        ("Das ist nicht die Datei.", "German"),
        ("C'est une question pour vous, dans le fichier", "French"),
        ("Где файл README?", "Cyrillic"),
        ("日本語 ok", "Han"),
    ],
)
def test_the_language_of_a_query(text, language):
    assert turns.language(text) == language
