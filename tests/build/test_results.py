"""A stored result that is corrupt is discarded, and its chunk is converted again."""

from __future__ import annotations

import pytest

from builder.build.results import ConversationEntry, ResultSummary, ResultWriter, find_result
from builder.problem import Problem


@pytest.fixture
def part(tmp_path):
    with ResultWriter(tmp_path / "work", ResultSummary("log.jsonl")) as writer:
        writer.sample(b'{"messages": []}\n', b"{}\n")
        writer.entry(ConversationEntry("tools", without_secrets=True))
        writer.reject(Problem("tools", "line 2", "what"))
        return writer.keep(tmp_path / "parts" / "part")


def test_a_written_result_is_found(part):
    found = find_result(part.path)
    assert found == part
    assert list(found.samples()) == [(b'{"messages": []}\n', b"{}\n")]
    assert list(found.entries()) == [ConversationEntry("tools", without_secrets=True)]
    assert [b'"line 2"' in line for line in found.rejects()] == [True]


def test_any_changed_byte_is_detected(part):
    whole = part.path.read_bytes()
    for at in range(len(whole)):
        part.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = find_result(part.path)
        assert found is None, at


@pytest.mark.parametrize("kept", [0, 1, 30, 100, -1])
def test_the_remains_of_a_crash_are_detected(part, kept):
    whole = part.path.read_bytes()
    for torn in (whole[:kept], whole[:kept] + bytes(len(whole[kept:])), whole + whole[kept:]):
        if torn != whole:
            part.path.write_bytes(torn)
            assert find_result(part.path) is None
