"""Our rows of agent traces, in place of those that `datasets` gets from Teich."""

import json
import shutil
import sys

import datasets
import pytest
from datasets.packaged_modules.json.json import AGENT_TRACES_FEATURES, Json
from support.places import ROOT

from builder import convert_traces_to_training_data, use_in_datasets, verify_dataset

SESSION = ROOT / "data" / "claude-code" / "parallel.jsonl"
CODEX = next((ROOT / "data" / "codex").rglob("*.jsonl"))


def test_results_have_the_names_of_their_tools_and_no_tool_is_invented(tmp_path):
    (row,) = convert_traces_to_training_data(SESSION)
    calls = {call["id"]: call["function"]["name"] for one in row["messages"]
             for call in one.get("tool_calls", ())}  # fmt: skip
    results = [one for one in row["messages"] if one["role"] == "tool"]
    assert len(calls) == len(results) == 3
    assert all(one["name"] == calls[one["tool_call_id"]] for one in results)
    assert {tool["function"]["name"] for tool in row["tools"]} == {*calls.values()}
    assert row["metadata"]["tools_source"] == "inferred"
    assert row["metadata"]["missing"] == ["reminders", "system", "tools"]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert verify_dataset(path).ok


def test_a_bad_line_costs_its_session_and_not_the_load(tmp_path, monkeypatch):
    for name in ("_cast_table", "_generate_tables"):
        monkeypatch.setattr(Json, name, getattr(Json, name))
    monkeypatch.setattr(datasets.config, "TEICH_AVAILABLE", False)
    monkeypatch.setitem(sys.modules, "teich", None)
    shutil.copy(SESSION, tmp_path / "a.jsonl")
    lines = SESSION.read_text().splitlines(True)
    (tmp_path / "b.jsonl").write_text("".join(lines[:10]) + lines[10][:40])
    shutil.copy(CODEX, tmp_path / "c.jsonl")
    use_in_datasets()
    files = [str(path) for path in sorted(tmp_path.glob("*.jsonl"))]
    with pytest.warns(UserWarning, match=r"b\.jsonl: line 11 is no JSON"):
        rows = datasets.load_dataset(
            "json", data_files=files, split="train", cache_dir=tmp_path / "cache"
        )
    assert rows.features == AGENT_TRACES_FEATURES
    assert [row["metadata"]["source_file"] for row in rows] == ["a.jsonl", "c.jsonl"]
    assert rows[0]["messages"] == convert_traces_to_training_data(SESSION)[0]["messages"]
    with pytest.warns(UserWarning, match="truncated 1"):
        assert len(convert_traces_to_training_data(files[1], skip_invalid_lines=True)) == 1


def test_what_no_reader_knows_is_a_warning(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.warns(UserWarning, match=r"x\.jsonl: no reader recognises it"):
        assert convert_traces_to_training_data(path) == []
