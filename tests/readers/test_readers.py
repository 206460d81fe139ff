"""Every folder `tests/readers/<reader>/<case>/` is a test.

`input/` holds log files written by us, `expected.json` the golden events that the reader gives
for them (scripts/golden.py writes it; review it as a diff).
"""

import json
import random
import sqlite3

import pytest
from cases import case_sources
from places import CASES, DATA, TESTS

from builder.readers import readers, recognise
from builder.sources.source import Source
from builder.testing import check_reader, describe, retyped

FOLDERS = sorted(path.parent for path in CASES.glob("*/*/input"))


@pytest.mark.parametrize("case", FOLDERS, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_case(case, tmp_path):
    reader = readers()[case.parent.name]
    got = {
        source.name: [describe(event) for event in check_reader(reader, source)]
        for source in case_sources(case, tmp_path)
    }
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(got)) == expected


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
def test_rows_that_look_like_a_datasets_are_not_taken_for_it(row, owner):
    line = json.dumps(row).encode()
    assert list(recognise(Source("x", data=line + b"\n" + line + b"\n"))) == owner


def test_a_copy_with_another_type_differs_in_one_value():
    """The copies that the contract suite tries: in the row, in its columns, in JSON inside them."""
    row = {"id": "a", "turns": '[{"role": "user"}]'}
    source = Source("x", data=f"{json.dumps(row)}\nno json\n".encode())
    changed = set()
    for copy in retyped(source, 300, random.Random(0)):
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


def test_every_reader_has_cases():
    assert {case.parent.name for case in FOLDERS} == set(readers())


def test_the_example_store_is_what_its_text_says():
    rows = []
    for make in ("data", "text"):
        name = ":memory:" if make == "text" else str(DATA / "egirl/conversations.db")
        store = sqlite3.connect(name)
        if make == "text":
            store.executescript((TESTS / "fixtures/egirl_data.sql").read_text(encoding="utf-8"))
        rows.append(store.execute("SELECT * FROM messages ORDER BY id").fetchall())
        store.close()
    assert rows[0] == rows[1]
