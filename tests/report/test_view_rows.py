"""Lookups of `builder view` without reading a whole file: raw records, rows by number."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.dataset.rows import json_lines
from builder.dataset.store import STEP, LineIndex
from builder.view.viewer import MAX_RECORDS, raw_html, raw_records


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw") / "logs"
    (folder / "store").mkdir(parents=True)
    (folder / "a.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(1, 201)))
    (folder / "store" / "b.jsonl").write_text('{"b": 1}\n')
    (folder / "list.json").write_text(json.dumps([{"n": n} for n in range(5)]))
    (folder / "keyed.json").write_text(json.dumps({"history": ["x", "y", "z"]}))
    (folder / "scalar.json").write_text("5")
    (folder.parent / "secret.jsonl").write_text('{"secret": 1}\n')
    (folder / "link.jsonl").symlink_to(folder.parent / "secret.jsonl")
    return folder


@pytest.mark.parametrize(
    ("source", "record", "expected"),
    [
        ("a.jsonl", "line 3", [("line 3", '{"n": 3}')]),
        ("a.jsonl", "lines 2-3", [("line 2", '{"n": 2}'), ("line 3", '{"n": 3}')]),
        ("a.jsonl", "line 2 to line 3", [("line 2", '{"n": 2}'), ("line 3", '{"n": 3}')]),
        ("a.jsonl", "line 900", []),
        ("store", "b.jsonl lines 1-1", [("line 1", '{"b": 1}')]),
        ("list.json", "[1]", [("[1]", '{\n  "n": 1\n}')]),
        ("keyed.json", "history[1]-history[2]", [("history[1]", '"y"'), ("history[2]", '"z"')]),
        ("scalar.json", "file", [("the whole file", "5")]),
        ("keyed.json", "other[1]", None),
        ("keyed.json", "session x", None),
        ("a.jsonl", "", None),
        ("", "file", None),
        ("no/such", "line 1", None),
        ("../secret.jsonl", "line 1", None),
        ("link.jsonl", "line 1", None),
        ("store", "../../secret.jsonl lines 1-1", None),
        ("/etc/passwd", "line 1", None),
        ("\x00", "line 1", None),
    ],
)  # fmt: skip
def test_raw_records(logs, source, record, expected):
    assert raw_records(logs, source, record) == expected


def test_the_number_of_raw_records_is_limited(logs):
    assert len(raw_records(logs, "a.jsonl", "lines 1-200")) == MAX_RECORDS + 1
    assert "1 record or more left out" in raw_html(raw_records(logs, "a.jsonl", "lines 1-200"))


# -- rows by number -----------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([b"{}", b"", b"  ", b"[1]", b'"a"', b"x" * 300]), max_size=400),
    st.booleans(),
    st.integers(1, 50),
)
def test_the_index_gives_the_rows_that_reading_gives(tmp_path_factory, content, ends, step):
    path = tmp_path_factory.mktemp("index") / "a.jsonl"
    path.write_bytes(b"\n".join(content) + (b"\n" if ends else b""))
    expected = [number for number, _ in json_lines(path)]
    index = LineIndex(path)
    row = -1
    while index.reach(row := row + step):
        pass
    assert index.count == len(expected)
    for row in {0, 1, STEP - 1, STEP, STEP + 1, len(expected) - 1}:
        if 0 <= row < len(expected):
            assert [number for number, _ in index.lines(row)] == expected[row:]
            assert index.row_of_line(expected[row]) == row


def test_a_row_is_found_without_reading_the_rows_after_it(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 10_000)
    index = LineIndex(path)
    assert index.reach(0)
    assert index.count == 1
    assert index.reach(5000)
    assert index.count == 5001
    assert not index.whole
    assert not index.reach(10_000)
    assert index.whole
