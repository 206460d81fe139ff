"""The size of each room may only fall (scripts/size.py prints and lowers the numbers)."""

import sys
import tomllib

import pytest
from support.places import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import size

MEAN_LINE = 51
"""Characters of a line that is not blank: shorter code, not longer lines."""


@pytest.fixture(scope="module")
def sizes():
    return size.sizes()


def test_no_room_is_larger_than_its_number(sizes):
    allowed = tomllib.loads(size.NUMBERS.read_text(encoding="utf-8"))
    assert not size.grown(sizes, allowed)


def test_every_number_belongs_to_a_room(sizes):
    allowed = tomllib.loads(size.NUMBERS.read_text(encoding="utf-8"))
    assert allowed.keys() == sizes.keys()


def test_lines_do_not_get_longer():
    assert size.mean_line() <= MEAN_LINE


def test_a_room_that_grows_is_named():
    allowed = {"builder/cli": {"lines": 10, "tokens": 50}}
    now = {"builder/cli": {"lines": 11, "tokens": 50}, "builder/new": {"lines": 1}}
    assert [text.split(":")[0] for text in size.grown(now, allowed)] == [
        "builder/cli",
        "builder/new",
    ]


def test_docstrings_and_comments_are_no_tokens():
    code = "def one():\n    return 1\n"
    documented = '"""Module."""\n# why\ndef one():\n    """Returns 1."""\n    return 1\n'
    assert size.tokens(code) == size.tokens(documented) > 0
