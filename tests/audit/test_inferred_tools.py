"""The table of tools says which definitions were inferred from calls."""

import json

from support.runs.builds import build

from builder.audit.options import AuditOptions
from builder.audit.run import audit


def _table(folder, tools):
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": '{"at": "x"}'},
    }
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "assistant", "content": "I saw it."},
    ]
    log = folder / "log.jsonl"
    log.write_text(json.dumps({"messages": messages, **tools}) + "\n")
    assert build(folder / "out", inputs=[log]) == 0
    tables = audit(str(folder / "out"), AuditOptions()).tables
    return next(table for table in tables if table.key == "tools")


def test_inferred_definitions_are_counted_by_tool(tmp_path):
    table = _table(tmp_path, {})
    assert dict(zip(table.columns, table.rows[0], strict=True))["of these, inferred"] == 1


def test_without_inferred_definitions_there_is_no_such_column(tmp_path):
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    table = _table(tmp_path, {"tools": [{"type": "function", "function": function}]})
    assert "of these, inferred" not in table.columns
