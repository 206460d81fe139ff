"""Every folder `tests/readers/<reader>/<case>/` is a test.

`input/` holds log files written by us, `expected.json` the golden events that the reader gives
for them (scripts/golden.py writes it; review it as a diff).
"""

import json
import sqlite3
from pathlib import Path

import pytest
from cases import case_sources

from builder.readers import readers
from builder.testing import check_reader, describe

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in (HERE / "readers").glob("*/*/input"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_case(case, tmp_path):
    reader = readers()[case.parent.name]
    got = {
        source.name: [describe(event) for event in check_reader(reader, source)]
        for source in case_sources(case, tmp_path)
    }
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(got)) == expected


def test_every_reader_has_cases():
    assert {case.parent.name for case in CASES} == set(readers())


def test_the_example_store_is_what_its_text_says():
    rows = []
    for make in ("data", "text"):
        name = ":memory:" if make == "text" else str(HERE.parent / "data/egirl/conversations.db")
        store = sqlite3.connect(name)
        if make == "text":
            store.executescript((HERE / "fixtures/egirl_data.sql").read_text(encoding="utf-8"))
        rows.append(store.execute("SELECT * FROM messages ORDER BY id").fetchall())
        store.close()
    assert rows[0] == rows[1]
