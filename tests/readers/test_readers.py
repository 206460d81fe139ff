"""Every folder `tests/readers/<reader>/<case>/` is a test.

`input/` contains log files written by us, `expected.json` the golden events that the reader returns
for them (scripts/golden.py writes it; review it as a diff).
"""

import json
import re
import sqlite3
from ast import literal_eval
from dataclasses import replace

import pytest
from support.logs.cases import case_sources, rendered
from support.logs.described import describe
from support.places import CASES, DATA, TESTS

from builder import testing
from builder.conversation import Ignored
from builder.problem import Problem
from builder.readers import readers, recognise
from builder.sources.source import Source
from builder.testing import check_reader, read_counted

FOLDERS = sorted(path.parent for path in CASES.glob("*/*/input"))


FOLDER_IDS = [f"{case.parent.name}/{case.name}" for case in FOLDERS]


@pytest.mark.parametrize("case", FOLDERS, ids=FOLDER_IDS)
def test_case(case, tmp_path, verifier):
    reader = readers()[case.parent.name]
    sources = case_sources(case, tmp_path)
    events = {source.name: read_counted(reader, source) for source in sources}
    got = {name: list(map(describe, found)) for name, found in events.items()}
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(got)) == expected
    text = (case / "rendered.txt").read_bytes().decode()
    assert rendered(events, verifier.target) == text


@pytest.mark.slow
@pytest.mark.parametrize("case", FOLDERS, ids=FOLDER_IDS)
def test_contract(case, tmp_path, monkeypatch):
    monkeypatch.setattr(testing, "COPIES", 16)  # of each of 700 cases
    for source in case_sources(case, tmp_path):
        check_reader(readers()[case.parent.name], source)


CHAT = [
    {"role": "user", "content": "<TOOLCALL> is a tag"},
    {"role": "assistant", "content": "Yes."},
]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
LOOKALIKES = (
    ({"id": "1", "prompt": "p", "ground_truth": ["x"]}, []),
    ({"id": "1", "question": "q", "function": "main"}, []),
    ({"question": "q", "answers": {"A": "x"}, "correct_answer": "A"}, []),
    ({"id": "1", "content": [{"class_": "weather"}]}, []),
    ({"uuid": "u", "messages": CHAT}, ["openai-chat"]),
    ({"session_id": "s", "trace_id": "t", "messages": CHAT}, ["openai-chat"]),
    ({"messages": CHAT, "tools": [TOOL]}, ["openai-chat"]),
    ({"messages": CHAT, "tools": []}, ["openai-chat"]),
)


@pytest.mark.parametrize(("row", "owner"), LOOKALIKES)
def test_rows_that_resemble_a_published_dataset_are_not_recognised_as_it(row, owner):
    line = json.dumps(row).encode()
    assert list(recognise(Source("x", data=line + b"\n" + line + b"\n"))) == owner


def failing(is_wrong, calls):
    """Returns a reader of lines claimed by Codex's reader only, which raises for some of them.

    It appends to `calls` at each reading.
    """

    def read(source):
        calls.append(source.name)
        for record in source.records():
            if is_wrong(record):
                raise KeyError("turns")
            yield record if isinstance(record, Problem) else Ignored("row")

    return replace(readers()["codex"], read=read)


@pytest.fixture
def rows(tmp_path):
    """Returns six lines, and a source of them."""
    values = [
        {"type": "event_msg", "payload": {"type": "error"}, "turns": [number, number]}
        for number in range(6)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in values), encoding="utf-8")
    return values, Source("rows.jsonl", path)


def test_a_failure_shows_the_record_that_was_changed(rows):
    _, source = rows

    def is_wrong(record):
        row = None if isinstance(record, Problem) else record.value
        return isinstance(row, dict) and row.get("turns") not in [[at, at] for at in range(6)]

    with pytest.raises(AssertionError) as failure:
        check_reader(failing(is_wrong, []), source)
    shown = r"rows\.jsonl, record \d, \['turns'.*\]: .* became .*: KeyError: 'turns'"
    assert re.fullmatch(shown, str(failure.value))


def test_a_failure_shows_the_bytes_that_were_corrupted(rows):
    _, source = rows
    reader = failing(lambda record: isinstance(record, Problem), [])
    with pytest.raises(AssertionError) as failure:
        check_reader(reader, source)
    found = re.match(
        r"rows\.jsonl, cut to \d+ bytes, byte \d+ is (\w+): (b'.*'): KeyError", str(failure.value)
    )
    assert literal_eval(found[2]) in source.path.read_bytes()


def test_every_reader_has_cases():
    assert {case.parent.name for case in FOLDERS} == set(readers())


def test_the_example_store_matches_its_sql():
    rows = []
    for make in ("data", "text"):
        name = ":memory:" if make == "text" else str(DATA / "egirl/conversations.db")
        store = sqlite3.connect(name)
        if make == "text":
            store.executescript((TESTS / "fixtures/egirl_data.sql").read_text(encoding="utf-8"))
        rows.append(store.execute("SELECT * FROM messages ORDER BY id").fetchall())
        store.close()
    assert rows[0] == rows[1]
