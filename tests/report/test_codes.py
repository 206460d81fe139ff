"""Every code that can appear in a report is explained: meaning, example, remedy."""

import json
import re

import pytest
from places import CASES, ROOT

from builder.normalize.normalise import remedy
from builder.normalize.options import NormalizeOptions
from builder.normalize.targets import FOREIGN
from builder.report.codes import code_texts, explain, explained
from builder.report.html import EMPTY

MADE = re.compile(r'\b(?:Problem|JsonFault|Finding)\(\s*"(\w+)"')
"""A fault whose code is a literal."""


def literal_codes():
    """Returns the codes of faults in the source."""
    for path in sorted((ROOT / "builder").rglob("*.py")):
        yield from MADE.findall(path.read_text(encoding="utf-8"))


def golden_codes():
    """Returns the codes of the problems in the golden cases of all readers."""
    for path in sorted(CASES.rglob("expected.json")):
        for items in json.loads(path.read_bytes()).values():
            problems = (item for item in items if isinstance(item, dict))
            for item in problems:
                if item.get("is") == "Problem":
                    yield item["code"]
                messages = item.get("messages") or ()
                yield from (code for part in messages if (code := part.get("untrained")))


def test_every_code_of_the_source_is_explained():
    found = set(literal_codes())
    assert len(found) > 60
    assert found - set(code_texts()) == set()


def test_every_code_of_a_turn_that_is_context_only_is_explained():
    assert set(FOREIGN) - set(code_texts()) == set()


def test_every_code_of_the_golden_cases_is_explained():
    found = set(golden_codes())
    assert len(found) > 15
    assert found - set(code_texts()) == set()


@pytest.mark.parametrize("code", sorted(code_texts()))
def test_an_explanation_is_complete(code):
    found = code_texts()[code]
    for words in (found.meaning, found.example, found.remedy):
        assert words
        assert words == words.strip()
        assert not words.endswith(".")
        assert words.count("`") % 2 == 0
    known = remedy(code, NormalizeOptions())
    if known is not None and known.startswith("normalize."):
        # The same remedy on every page and in the summary.
        assert known.split(":")[0] in found.remedy


def test_conditions_are_explained_and_kinds_of_records_are_not():
    assert "select.where" in explain("select_outcome_reward").meaning
    assert explain("file-history-snapshot") is None
    assert explained("file-history-snapshot") == EMPTY
    assert "<code>&lt;|im_end|&gt;</code>" in explained("control_tokens")
