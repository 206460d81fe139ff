"""The version of an agent with which its reader was checked."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.logs.cases import case_sources

from builder.conversation import Conversation
from builder.readers import is_newer, read_events, readers


@pytest.mark.parametrize(
    ("version", "checked", "expected"),
    [
        ("0.172.0", "0.171.0", True),
        ("0.171.0", "0.171.0", False),
        ("0.99.9", "0.171.0", False),
        ("1.10.0-beta.2", "1.9.3", True),
        ("rust-v0.1", "0.0.1", False),
        (None, "1.0", False),
        ("1.0", None, False),
    ],
)
def test_versions_are_compared_by_number(version, checked, expected):
    assert is_newer(version, checked) is expected


def test_a_conversation_of_a_newer_version_is_counted(tmp_path):
    case = Path(__file__).parent / "qwen-code" / "plain"
    for checked, expected in (("0.0.1", 1), ("99.0.0", None)):
        reader = replace(readers()["qwen-code"], checked=checked)
        (source,) = case_sources(case, tmp_path / checked)
        found = [item for item in read_events(reader, source) if isinstance(item, Conversation)]
        assert found
        assert [item.changes.get("newer_version") for item in found] == [expected] * len(found)
