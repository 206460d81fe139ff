"""Every folder `tests/readers/<reader>/<case>/` is a test.

`input/` holds log files written by us, `expected.json` the golden events that the reader gives
for them (scripts/golden.py writes it; review it as a diff).
"""

import json
from pathlib import Path

import pytest

from builder.inputs import find_sources
from builder.readers import readers
from builder.testing import check_reader, describe

ROOT = Path(__file__).parent / "readers"
CASES = sorted(path.parent for path in ROOT.glob("*/*/input"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_case(case):
    reader = readers()[case.parent.name]
    got = {
        source.name: [describe(event) for event in check_reader(reader, source)]
        for source in find_sources(str(case / "input"))
    }
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(got)) == expected


def test_every_reader_has_cases():
    assert {case.parent.name for case in CASES} == set(readers())
