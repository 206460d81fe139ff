"""Code, lists and tables in which a word for secrets stands before something that is none.

The blocks of identifiers.txt have the forms of hits in sources, manuals and packages of others.
"""

from pathlib import Path

import pytest

from builder.secrets.secrets import find_secrets

BLOCKS = Path(__file__).with_name("identifiers.txt").read_text(encoding="utf-8").split("\n---\n")


@pytest.mark.parametrize("text", BLOCKS)
def test_no_identifier_is_a_secret(text):
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == []
