"""Recognition reads a file once: decoded records are reused, and shared checks run once."""

import gc
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources import sniff
from builder.sources import source as source_module
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import once

LINES = [
    b'{"a": 1}', b'{"a": 2} ', b"[1, 2]", b"[]", b"{}", b"7", b'"text"', b"{", b"}", b"words",
    b"", b"  ", b'{"a": NaN}', b"\xff", b'\xef\xbb\xbf{"a": 3}', b'\x0b{"a": 4}', b'{"a": 5}\r',
]  # fmt: skip


@given(st.lists(st.sampled_from(LINES), max_size=8), st.booleans())
def test_records_seen_by_recognition_are_read_normally(lines, ended):
    data = b"\n".join(lines) + b"\n" * ended
    peeked, plain = Source("log", data=data), Source("log", data=data)
    assert peeked.peek.kind
    found = list(peeked.json_lines())
    assert repr(found) == repr(list(plain.json_lines()))
    assert repr(found) == repr(list(peeked.json_lines())), "and again"


@pytest.mark.parametrize(
    ("data", "values"),
    [(b'{"a": 1}\n{"a": 2}\n\n[3]\n', 3), (b'{"a": [1, 2]}\n', 1), (b'\xef\xbb\xbf[{"a": 1}]', 1)],
)
def test_no_value_is_decoded_twice(data, values, monkeypatch):
    decoded = []

    def loads(text):
        decoded.append(bytes(text))
        return json.loads(text), True

    monkeypatch.setattr(source_module, "loads_leniently", loads)
    monkeypatch.setattr(sniff, "loads_leniently", loads)
    source = Source("log.jsonl", data=data)
    assert source.peek.records
    assert all(isinstance(item, Record) for item in source.records())
    assert len(decoded) == values


def test_a_line_changed_in_the_meantime_is_read_again(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    source = Source("log.jsonl", path)
    assert [item["a"] for item in source.peek.objects] == [1, 2, 3]
    path.write_bytes(b'{"a": 1}\n{"a": 9}\n{"a": 3}\n')
    assert [item.value["a"] for item in source.json_lines()] == [1, 9, 3]


def test_lines_are_distinguished_from_a_document():
    source = Source("log.json", data=b'{"a":\n 1}')
    assert (source.peek.kind, source.peek.records) == ("json", ({"a": 1},))
    lines = Source("log.json", data=b'{"a": 1}\n{"a": 2}')
    assert (lines.peek.kind, len(lines.peek.records)) == ("jsonl", 2)
    broken = Source("log.json", data=b'{"a": 1\n{"a": 2}\n')
    assert (broken.peek.kind, broken.peek.records) == ("jsonl", ({"a": 2},))


def test_a_shared_check_runs_once_per_source():
    asked = []

    @once
    def judge(source):
        asked.append(source.name)
        return source.name.upper()

    sources = [Source("a"), Source("b")]
    assert [judge(source) for source in sources * 3] == ["A", "B"] * 3
    assert asked == ["a", "b"]
    del sources
    gc.collect()
    assert judge(Source("a")) == "A"
    assert asked == ["a", "b", "a"], "a released source leaves nothing behind"
