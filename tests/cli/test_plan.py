"""`build --plan` and `build --all`: what to do with the logs of this machine."""

import json

import pytest
from support.places import DATA

from builder import cli


def test_a_plan_compares_three_settings_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builder.cli.plan.FILES", 2)
    (tmp_path / "notes.txt").write_text("no log")
    logs = [str(DATA / "claude-code"), str(DATA / "codex"), str(tmp_path / "notes.txt")]
    command = ["build", *logs, "--plan", "--workers", "1"]
    assert cli.main([*command, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["files"], plan["of"]) == (2, 4)
    whole, windows, questions = plan["settings"]
    assert whole["options"] == ""
    assert windows["options"] == "--set limits.max_tokens=32768 --set limits.too_long=split"
    assert whole["samples"] <= questions["samples"]
    assert whole["trained_turns"] == windows["trained_turns"] > 0
    assert cli.main(command) == 0
    shown = capsys.readouterr().out
    assert "from 2 of 4 files" in shown
    assert "one sample a question: add --set normalize.unit=query" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A home folder with the logs of two agents."""
    for agent, folder in (("codex", ".codex/sessions"), ("claude-code", ".claude/projects")):
        place = tmp_path / folder
        place.parent.mkdir(parents=True)
        place.symlink_to(DATA / agent, target_is_directory=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_all_logs_of_this_machine_are_one_dataset(machine, tmp_path, capsys):
    assert cli.main(["build"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "  builder build --all -o out/mine"
    out = tmp_path / "out"
    assert cli.main(["build", "--all", "-o", str(out), "--workers", "1"]) == 0
    assert ", for Qwen3-8B (default; change it with --for)" in " ".join(
        capsys.readouterr().out.split()
    )
    read = json.loads((out / "manifest.json").read_bytes())["inputs"]
    assert [item["path"][:7] for item in read] == ["control", "paralle", "unanswe", "rollout"]


def test_all_is_instead_of_inputs(machine, monkeypatch, tmp_path, capsys):
    assert cli.main(["build", "logs", "--all", "-o", "out"]) == 2
    assert "name no INPUT with it" in capsys.readouterr().err
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    assert cli.main(["build", "--all", "-o", "out"]) == 2
    assert "--all: no logs of known agents" in capsys.readouterr().err
