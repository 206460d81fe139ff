"""The audit of turns: its cues agree with its patterns, and it detects scripts and languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.audit import turns


@given(st.from_regex(turns._REFUSAL))
def test_every_refusal_contains_one_of_the_cues(text):
    match = turns._REFUSAL.search(text)
    assert any(cue in match[0].lower() for cue in turns._REFUSAL_CUES)


@pytest.mark.parametrize(
    ("text", "script", "language"),
    [
        ("", "none", "none"),
        ("12 + 3?", "none", "none"),
        ("ls", "Latin", "Latin script, too short to tell"),
        ("Is this the file that you are looking for?", "Latin", "English"),
        ("Das ist nicht die Datei.", "Latin", "German"),
        ("C'est une question pour vous, dans le fichier", "Latin", "French"),
        ("Где файл README?", "Cyrillic", "Cyrillic"),
        ("日本語 ok", "Han", "Han"),
        ("→ 1", "none", "none"),
    ],
)
def test_script_and_language_of_a_query(text, script, language):
    assert turns.script_and_language(text) == (script, language)
