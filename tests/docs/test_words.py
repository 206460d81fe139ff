"""How much there is to read, and how many choices there are: the numbers only fall."""

import re

from support.places import ROOT

from builder.config import Config, InputSection
from builder.options import keys_of, places_of_keys

WORDS = {"README.md": 1_400, "all pages": 30_000}
OPTIONS = 75
KEYS = 45


def test_the_pages_have_few_words():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in pages}
    assert words["README.md"] <= WORDS["README.md"]
    assert sum(words.values()) <= WORDS["all pages"]


def test_there_are_few_options_and_keys():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| `--", page, re.MULTILINE)) <= OPTIONS
    sections = {place.partition(".")[0] for place in places_of_keys(Config).values()}
    alone = {*keys_of(Config)} - sections - {"inputs"}
    keys = [*places_of_keys(Config).values(), *keys_of(InputSection), *alone]
    assert len(keys) <= KEYS, sorted(keys)
