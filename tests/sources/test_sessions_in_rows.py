"""Rows that hold whole sessions, as the Hub's tables of traces do."""

import json
from types import SimpleNamespace

import pyarrow
import pyarrow.parquet
import pytest

from builder.problem import Problem
from builder.readers import discovery, recognise
from builder.readers.discovery import find_sources
from builder.sources.table import hub_table

SESSION = "".join(
    json.dumps({"type": role, "uuid": f"u{at}", "sessionId": "s1", "version": "2.1.76",
                "parentUuid": f"u{at - 1}" if at else None,
                "message": {"role": role, "content": "Hi."}}) + "\n"
    for at, role in enumerate(("user", "assistant"))
)  # fmt: skip
ROWS = [
    {"harness": "claude_code", "messages": [], "trace": None, "file_path": "a.jsonl"},
    {"harness": "claude_code", "messages": [], "trace": SESSION, "file_path": "b/s1.jsonl"},
    {"harness": "claude_code", "messages": [], "trace": SESSION, "file_path": "b/s1.jsonl"},
]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_a_session_in_a_row_is_a_source(tmp_path, name):
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / name)
    else:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "s1.jsonl").write_text(SESSION)
    sources = [one for one in find_sources(str(tmp_path)) if not isinstance(one, Problem)]
    assert [(one.name, [*recognise(one)]) for one in sources] == [
        (f"{name}/a.jsonl", []),
        (f"{name}/b/s1.jsonl", ["claude-code"]),
        (f"{name}/b/s1.jsonl #2", ["claude-code"]),
        ("s1.jsonl", ["claude-code"]),
    ]
    assert sources[1].whole() == SESSION.encode()


@pytest.mark.parametrize(
    ("tags", "files", "is_raw"),
    [
        (["agent-traces"], ["a.jsonl", "README.md"], True),
        (["format:agent-traces"], ["a.jsonl"], True),
        (["agent-traces"], ["data/train-00000.parquet"], False),
        (None, ["a.jsonl"], False),
    ],
)
def test_a_repository_of_raw_sessions_is_read_as_files(monkeypatch, tags, files, is_raw):
    listed = [SimpleNamespace(rfilename=name) for name in files]
    info = SimpleNamespace(sha="c1", tags=tags, siblings=listed)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: info)
    asked = []
    monkeypatch.setattr(discovery, "_stored", lambda spec: asked.append(spec) or iter(()))
    assert hub_table("hf://team/logs").is_raw is is_raw
    if is_raw:
        assert list(find_sources("hf://team/logs")) == []
        assert asked == ["hf://datasets/team/logs@c1"]
