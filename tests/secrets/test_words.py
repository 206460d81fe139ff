"""The vocabulary: each word once in its part, and no set without a use."""

import re

import pytest
from support.places import ROOT

from builder.secrets import words

ROOM = ROOT / "builder" / "secrets"
PARTS = (ROOM / "words.txt").read_text(encoding="utf-8").split("\n\n# ")[1:]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.partition("\n")[0][:30])
def test_a_word_stands_once_in_its_part(part):
    listed = [word for line in part.splitlines()[1:] for word in line.rpartition(" : ")[0].split()]
    assert sorted(listed) == sorted(set(listed))


def test_each_set_is_used():
    written = {
        name
        for part in PARTS
        for line in part.splitlines()[1:]
        for name in line.rpartition(" : ")[2].split()
    }
    source = "".join(path.read_text(encoding="utf-8") for path in ROOM.glob("*.py"))
    asked = set(re.findall(r"""(?:words|alternatives|literals)\(["'](\w+)["']\)""", source))
    assert written == asked


def test_a_space_is_written_as_a_line():
    assert "mot de passe" in words.alternatives("foreign").split("|")
    assert "mot_de_passe" in words.PASSWORDS
    assert r"session[ \_-]?id" in words.AROUND
