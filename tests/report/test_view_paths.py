"""Short forms of paths in the list of samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.view.brief_paths import brief_paths

UUID = "9d7a9d52-7eb4-427d-847d-ee5451884f3d"


@pytest.mark.parametrize(
    ("paths", "brief"),
    [
        (["a/b/log.jsonl"], ["log.jsonl"]),
        (["runs/one/log.json", "runs/two/log.json"], ["one/log", "two/log"]),
        (["log.jsonl", "x/log.jsonl"], ["log", "x/log"]),
        (["a.json", "a.jsonl"], ["a.json", "a.jsonl"]),
        ([f"p/{UUID}.jsonl", "p/q.jsonl"], ["9d7a9d52-7e…ee5451884f3d", "q"]),
        (["x" * 30 + "1" + "y" * 30, "x" * 30 + "2" + "y" * 30], None),
        (["", "a/b"], ["", "a/b"]),
    ],
)
def test_short_forms(paths, brief):
    assert list(brief_paths(paths, (), 24).values()) == (brief or paths)


def test_what_all_files_of_the_dataset_share_is_left_out():
    assert brief_paths(["a/b/c.jsonl"], ["a/d/e.jsonl"], 24) == {"a/b/c.jsonl": "b/c"}


@given(st.lists(st.text("ab/.", max_size=40), unique=True), st.integers(4, 30))
def test_different_paths_look_different(paths, most):
    found = brief_paths(paths, (), most)
    assert set(found) == set(paths)
    assert len(set(found.values())) == len(paths)
