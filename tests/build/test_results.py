"""A stored result that is corrupt is discarded, and its chunk is converted again."""

from __future__ import annotations

from dataclasses import fields

import pytest

from builder.build.results import ResultSummary, ResultWriter, find_result
from builder.problem import Problem
from builder.scrub.options import ScrubOptions
from builder.scrub.redact import Scrubber
from builder.select.alternatives import Alternative, Answer
from builder.select.table import ConversationEntry, SampleEntry


@pytest.fixture
def part(tmp_path):
    scrubber = Scrubber(ScrubOptions(), b"", ())
    with ResultWriter(tmp_path / "work", ResultSummary("log.jsonl"), scrubber) as writer:
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


@pytest.mark.parametrize("content", ["café", "\ud800"])
def test_an_entry_with_every_field_is_read_back(content):
    answer = Answer(b"\x01" * 16, content, "thought", (("tool", "{}"),))
    entry = ConversationEntry(
        code="schema",
        samples=(
            SampleEntry(
                prefix=b"\x02" * 16,
                tokens=7,
                calls=(1, 3),
                levels=(0, 1, 0, 2),
                missing=(("system", 2),),
                is_weighted=True,
                pairs=1,
                models=("m", None),
                recorded="equal",
                line=b"\x07" * 16,
            ),
        ),
        prefixes=b"\x03" * 32,
        calls=((b"\x00" * 16, None), (b"\x04" * 16, "unanswered")),
        tools_source="logged",
        session=b"\x05" * 8,
        license="MIT",
        format="codex",
        alternative=Alternative("retry", "line 3", "", b"\x06" * 16, (answer,)),
        left_out=(("no_call", 2),),
        without_secrets=True,
        is_recoverable=True,
        cut="bad_call",
    )
    for item in (entry, *entry.samples, entry.alternative, answer):
        set_ones = [field.name for field in fields(item) if getattr(item, field.name)]
        expected = {field.name for field in fields(item)} - {"fault"}
        assert set(set_ones) >= expected, "a new field belongs into this test"
    line = entry.to_json()
    restored = ConversationEntry.from_json(line)
    assert b"\n" not in line
    if content.isprintable():
        assert restored == entry
    else:
        assert restored.alternative.answers[0].content == "?"


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
