"""Letters drawn at random, against names of programs."""

import random
import string
import unittest
import xml.dom.minidom

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.secrets.letters import has_drawn_letters
from builder.secrets.values import is_drawn

WORDS = ("kestrel", "bramble", "Tundra", "saffron", "Lantern", "pewter", "Glacier", "Juniper")


@pytest.mark.parametrize(("words", "drawn", "least"), [(1, 8, 0.85), (0, 10, 0.9), (0, 14, 0.97)])
def test_drawn_letters_are_recognised(words, drawn, least):
    pick = random.Random(7)
    values = [
        "".join(pick.sample(WORDS, words)) + "".join(pick.choices(string.ascii_letters, k=drawn))
        for _ in range(1000)
    ]
    assert sum(map(has_drawn_letters, values)) / len(values) > least


def test_names_are_not_drawn():
    names = {
        name
        for module in (unittest.TestCase, xml.dom.minidom, xml.dom.minidom.Element)
        for name in dir(module)
        if name.isalpha() and name != name.lower()
    }
    assert len(names) > 80
    assert not [name for name in sorted(names) if has_drawn_letters(name)]
    assert not any(
        map(is_drawn, ("PasswordHelper", "userNameField2", "getTokenV2", "OAuth2Client"))
    )


@given(st.text())
def test_any_text_is_measured(text):
    assert has_drawn_letters(text) in (True, False)
    if text.isascii() and text == text.lower():
        assert not has_drawn_letters(text)
