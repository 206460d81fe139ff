"""Every folder `tests/readers/<reader>/<case>/` is a test.

`input/` contains log files written by us, `expected.json` the golden events that the reader returns
for them (scripts/golden.py writes it; review it as a diff).
"""

import json
import random
import re
import sqlite3
from ast import literal_eval
from dataclasses import replace

import pytest
from support.logs.cases import case_sources, rendered
from support.places import CASES, DATA, TESTS

from builder.conversation import Ignored
from builder.problem import Problem
from builder.readers import readers, recognise
from builder.sources.source import Source
from builder.testing import (
    CHANGES,
    CUTS,
    TOGETHER,
    ChangedCopies,
    check_reader,
    describe,
    read_counted,
)

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
def test_contract(case, tmp_path):
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


def test_a_copy_with_another_type_differs_in_one_value():
    """The copies that ChangedCopies makes: in the row, its columns, JSON inside them."""
    row = {"id": "a", "turns": '[{"role": "user"}]'}
    source = Source("x", data=f"{json.dumps(row)}\nno json\n".encode())
    changed = set()
    copies = ChangedCopies(source)
    for change in copies.choose(300, random.Random(0)):
        copy = copies.apply([change])
        first, second = b"".join(copy.raw()).split(b"\n")
        assert second == b"no json"
        value = json.loads(first)
        if not isinstance(value, dict) or value.keys() != row.keys():
            changed.add("row")
            continue
        changed |= {key for key in row if value[key] != row[key]}
        assert value["id"] == "a" or value["turns"] == row["turns"]
        if isinstance(value["turns"], str) and value["turns"].startswith('[{"role": '):
            inner = json.loads(value["turns"])[0]["role"]
            changed |= {f"role {type(inner).__name__}"} if inner != "user" else set()
    types = {"NoneType", "bool", "int", "float", "str", "list", "dict"}
    assert changed == {"row", "id", "turns"} | {f"role {name}" for name in types}


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
    values, source = rows

    def is_wrong(record):
        row = None if isinstance(record, Problem) else record.value
        return isinstance(row, dict) and isinstance(row.get("turns"), dict)

    with pytest.raises(AssertionError) as failure:
        check_reader(failing(is_wrong, []), source)
    kind, place, before, after = str(failure.value).splitlines()
    assert kind == "KeyError: 'turns'"
    number = int(re.fullmatch(r"rows\.jsonl, record (\d): \.turns: .* became \{.*\}", place)[1])
    assert json.loads(before.partition("record before: ")[2]) == values[number - 1]
    changed = json.loads(after.partition("record after: ")[2])
    assert isinstance(changed.pop("turns"), dict)
    assert changed.items() <= values[number - 1].items(), "nothing else changed"


def test_a_failure_shows_the_line_that_was_corrupted(rows):
    values, source = rows
    reader = failing(lambda record: isinstance(record, Problem), [])
    with pytest.raises(AssertionError) as failure:
        check_reader(reader, source)
    found = re.match(
        r"rows\.jsonl, cut to \d+ bytes, byte \d+ from (\w+) to (\w+), "
        r"which is byte (\d+) of line (\d+): (b'.*'): KeyError",
        str(failure.value),
    )
    line = json.dumps(values[int(found[4]) - 1]).encode()
    assert line.startswith(literal_eval(found[5]))
    assert line[int(found[3])] == int(found[1], 16) != int(found[2], 16)


def test_values_are_changed_several_at_a_time(rows):
    calls = []
    check_reader(failing(lambda record: False, calls), rows[1])
    changed = len(calls) - 2 - CUTS - 1
    assert CHANGES / TOGETHER <= changed <= CHANGES / 2


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
