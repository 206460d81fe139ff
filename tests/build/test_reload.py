"""Faults of the loader that no check predicts cost the samples concerned, never the build.

The faults are planted where rows come from the loader.
"""

import json

import pytest
from support.runs.builds import build, lines

from builder import cli
from builder.verify import as_loaded


def inputs(folder, *contents):
    folder.mkdir(exist_ok=True)
    path = folder / "in.jsonl"
    rows = [
        {"messages": [{"role": "user", "content": content}, {"role": "assistant", "content": "b"}]}
        for content in contents
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


CONTENTS = ("good 1", "bad 1", "good 2", "good 3", "bad 2", "good 4", "good 5")


def changes(rows):
    """Changes the content of each bad row."""
    for row in rows:
        if row["messages"][0]["content"].startswith("bad"):
            row["messages"][0]["content"] += "?"
        yield row


def drops(rows):
    """Returns something that is no sample."""
    for row in rows:
        yield {"messages": None} if row["messages"][0]["content"].startswith("bad") else row


def shortens(rows):
    """Loses each bad row, so that all later ones move."""
    return (row for row in rows if not row["messages"][0]["content"].startswith("bad"))


@pytest.fixture
def plant(monkeypatch):
    real = as_loaded._rows

    def planted(fault):
        monkeypatch.setattr(as_loaded, "_rows", lambda *args: fault(real(*args)))

    return planted


@pytest.mark.quick(1)
@pytest.mark.parametrize("fault", [changes, drops])
def test_the_samples_of_a_planted_fault_are_left_out_and_counted(tmp_path, plant, fault, capsys):
    plant(fault)
    out = tmp_path / "out"
    path = inputs(tmp_path / "logs", *CONTENTS)
    assert cli.main(["build", str(path), "-o", str(out), "--workers", "1"]) == 0
    rows = lines(out / "data" / "train-00000-of-00001.jsonl")
    assert [row["messages"][0]["content"] for row in rows] == [
        f"good {number}" for number in range(1, 6)
    ]
    rejects = lines(out / "rejects.jsonl")
    assert [(one["code"], one["record"]) for one in rejects] == [
        ("loader", "line 2"), ("loader", "line 5"),
    ]  # fmt: skip
    ledger = json.loads((out / "manifest.json").read_text())["ledger"]
    assert ledger["conversations"]["rejected"] == {"loader": 2}
    printed = capsys.readouterr()
    assert "declare the features" not in printed.out + printed.err + str(rejects)


def test_lost_rows_are_taken_out_until_the_rest_is_clean(tmp_path, plant):
    plant(shortens)
    out = tmp_path / "out"
    assert build(out, inputs=[inputs(tmp_path / "logs", "good 1", "good 2", "bad 1")]) == 0
    assert len(lines(out / "data" / "train-00000-of-00001.jsonl")) == 2


def test_a_loader_that_does_not_work_at_all_costs_no_sample(tmp_path, plant, capsys):
    def broken(rows):
        raise OSError("planted: no space left")
        yield

    plant(broken)
    out = tmp_path / "out"
    path = inputs(tmp_path / "logs", *CONTENTS)
    assert build(out, inputs=[path]) == 0
    assert len(lines(out / "data" / "train-00000-of-00001.jsonl")) == len(CONTENTS)
    assert "not as `datasets` loads it" in capsys.readouterr().err
    assert build(tmp_path / "strict", "--strict", inputs=[path]) == 1


def test_a_build_of_only_faulty_samples_names_the_reason(tmp_path, plant, capsys):
    plant(changes)
    out = tmp_path / "out"
    assert build(out, inputs=[inputs(tmp_path / "logs", "bad 1")]) == 1
    assert "no sample could be built" in capsys.readouterr().err
