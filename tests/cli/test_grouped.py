"""Faults of one kind are printed as a count with examples, and each of them on request."""

import json

import pytest

from builder import cli

TWO_QUESTIONS = [
    {"role": "user", "content": "a"},
    {"role": "user", "content": "b"},
    {"role": "assistant", "content": "c"},
]


@pytest.fixture
def dataset(tmp_path):
    path = tmp_path / "rows.jsonl"
    row = json.dumps({"messages": TWO_QUESTIONS, "tools": []})
    path.write_text(f"{row}\n" * 120 + "{broken\n")
    return path


def test_bad_rows_are_grouped_by_code(dataset, capsys):
    assert cli.main(["verify", str(dataset)]) == 1
    shown = capsys.readouterr().out
    assert "order: 120 lines (no messages, unknown roles, or roles that do not alternate" in shown
    assert "format: 1 line" in shown
    assert [f"rows.jsonl:{line} " in shown for line in (1, 2, 3, 120, 121)] == [1, 1, 0, 0, 1]
    assert "… 118 more (-v prints all)" in shown
    assert shown.count("\n") < 12


@pytest.mark.parametrize("option", ["-v", "--verbose", "--all"])
def test_each_bad_row_is_printed_on_request(dataset, capsys, option):
    assert cli.main(["verify", str(dataset), option]) == 1
    shown = capsys.readouterr().out
    assert all(f"rows.jsonl:{line} " in shown for line in range(1, 122))
    assert "more" not in shown
    assert "order: 120 lines" in shown


UNREAD = '{"type": null}\n{"type": "user", "uuid": "u-9", "message": "error"}\n'
