"""What `builder audit` prints of its tables."""

import json

import pytest

from builder import cli
from builder.cli.audit import ROWS


@pytest.mark.parametrize(("more", "expected"), [(1, None), (2, "… 2 more (--json)")])
def test_a_table_is_not_cut_for_a_single_row(tmp_path, capsys, more, expected):
    names = [f"t{at}" for at in range(ROWS + more)]
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in names
    ]
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}
             for name in names]  # fmt: skip
    results = [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in names]
    turns = [
        {"role": "user", "content": "Call all tools."},
        {"role": "assistant", "content": "", "tool_calls": calls},
        *results,
        {"role": "assistant", "content": "Done."},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": turns, "tools": tools}) + "\n")
    assert cli.main(["audit", str(path)]) == 0
    shown = capsys.readouterr().out
    assert (f"  t{ROWS} " in shown) is (expected is None)
    assert expected in shown if expected else "more (--json)" not in shown
