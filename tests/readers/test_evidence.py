"""What formats are known from, and formats whose meaning is not settled."""

import json
import re
import shutil
from dataclasses import replace
from typing import get_args

import pytest
from support.places import CASES

from builder import build_dataset, cli, read
from builder.conversation import Conversation
from builder.problem import Problem
from builder.readers import Evidence, readers

NAME = "qwen-code"
WHY = "the order of its turns is not known"


def test_each_format_states_its_evidence():
    for name, reader in readers().items():
        assert reader.evidence, name
        assert set(reader.evidence) <= set(get_args(Evidence)), name
        assert len(set(reader.evidence)) == len(reader.evidence), name


def test_evidence_and_version_are_listed(capsys):
    assert cli.main(["formats"]) == 0
    shown = capsys.readouterr().out
    line = " ".join(re.split(r"\n(?=\S)", shown[shown.index("\ncodex ") :], maxsplit=2)[1].split())
    assert line.endswith(f"[source, files; checked with {readers()['codex'].checked}]")
    assert cli.main(["formats", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["goose"]["evidence"] == ["source"]
    assert listed["goose"]["checked"] is None
    assert listed.keys() == readers().keys()


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Returns a log whose format is not settled."""
    doubtful = replace(readers()[NAME], unsettled=lambda source: WHY)
    monkeypatch.setitem(readers(), NAME, doubtful)
    (path,) = (CASES / NAME / "plain" / "input").iterdir()
    return shutil.copy(path, tmp_path / path.name)


def test_a_format_that_is_not_settled_is_rejected(log):
    (found,) = read(log)
    assert isinstance(found, Problem)
    assert found.code == "unverified_format"
    assert found.detail == f"{WHY}; --format {NAME} reads it"


def test_it_is_read_and_marked_if_it_is_named(log):
    found = [event for event in read(log, NAME) if isinstance(event, Conversation)]
    assert found
    assert all(event.changes["unverified_format"] == 1 for event in found)


def test_a_layout_that_is_settled_is_read(log, monkeypatch):
    settled = replace(readers()[NAME], unsettled=lambda source: None)
    monkeypatch.setitem(readers(), NAME, settled)
    found = [event for event in read(log) if isinstance(event, Conversation)]
    assert found
    assert all("unverified_format" not in event.changes for event in found)


def test_a_build_counts_the_reject_and_marks_what_it_reads_on_demand(log, tmp_path):
    inputs = [{"path": str(log)}, {"path": str(log), "format": NAME}]
    built = build_dataset([], tmp_path / "out", config={"inputs": inputs})
    assert built.ledger.rejected == {"unverified_format": 1}
    (meta,) = (tmp_path / "out" / "meta").glob("*.jsonl")
    rows = [json.loads(line) for line in meta.read_text(encoding="utf-8").splitlines()]
    assert rows
    assert all(row["changes"]["unverified_format"] == 1 for row in rows)
