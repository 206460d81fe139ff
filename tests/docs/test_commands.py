"""Every command in README and docs/: run as written where it needs no network, else parsed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml
from places import CASES, DATA, ROOT

from builder import cli
from builder.cli.app import COMMANDS, app
from builder.cli.each import run_each
from builder.testing import assert_proven

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ROW = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}


def blocks(path, kinds=("sh", "console")):
    """The commands of each fenced block of a page."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if kind in kinds:
            lines = [line.removeprefix("$ ").strip() for line in block.splitlines()]
            yield [line for line in lines if line.startswith("builder ")]


def recipes():
    return [commands for commands in blocks(ROOT / "README.md") if commands]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A home folder with Claude Code logs, and the files that the recipes name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    logs = tmp_path / "home" / ".claude" / "projects" / "shop"
    logs.mkdir(parents=True)
    shutil.copy(DATA / "claude-code" / "parallel.jsonl", logs / "b1f0c9a2.jsonl")
    shutil.copytree(DATA, tmp_path / "data")
    shutil.copytree(DATA / "openai-chat", tmp_path / "logs")
    entry = {
        "id": 1,
        "query": "How long is a?",
        "tools": json.dumps([{"name": "wc", "description": "counts", "parameters": {}}]),
        "answers": json.dumps([{"name": "wc", "arguments": {"path": "a"}}]),
    }
    (tmp_path / "xlam.json").write_text(json.dumps([entry]))
    (tmp_path / "mine.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "tools.json").write_text("[]")
    text = (ROOT / "README.md").read_text()
    (tmp_path / "production.yaml").write_text(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])
    return tmp_path


def needs_network(command):
    return "hf://" in command or " push " in command or " view " in command


def test_there_are_five_recipes():
    assert len(recipes()) == 5


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_a_recipe_runs_as_written(here, number):
    for command in recipes()[number]:
        if needs_network(command):
            continue
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command, comments=True)],
            check=False,
            capture_output=True,
            text=True,
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_every_command_of_every_page_has_options_that_exist():
    """Commands in running text and blocks: each named command and option is declared."""
    declared = (ROOT / "docs" / "cli.md").read_text()
    sections = dict(re.findall(r"^## builder (\w+)\n(.*?)(?=^## |\Z)", declared, re.M | re.S))
    assert set(sections) == set(COMMANDS)
    seen = 0
    for page in PAGES:
        for line in re.findall(r"builder (\w+)((?: [^`\n|)]*)?)", page.read_text()):
            name, rest = line
            if name not in sections:
                continue
            for option in re.findall(r"(?<!\w)--?[a-z][\w-]*", rest.partition("  #")[0]):
                seen += 1
                known = f"`{option}`" in sections[name] or option in ("-h", "--help")
                assert known, f"{page.name}: builder {name}{rest}"
    assert seen > 20


def test_the_generated_page_is_up_to_date():
    done = subprocess.run(
        [sys.executable, "scripts/cli_docs.py", "--check"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0
    assert app.registered_commands


def test_every_link_between_pages_leads_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_lists_every_page():
    text = (ROOT / "README.md").read_text()
    for page in PAGES[1:]:
        assert f"(docs/{page.name})" in text, page.name


def test_the_action_and_the_hooks_run_commands_that_exist(tmp_path, capsys):
    action = yaml.safe_load((ROOT / ".github/actions/check/action.yml").read_text())
    steps = [step["run"] for step in action["runs"]["steps"]]
    used = [re.search(r"-m builder (\w+)", step)[1] for step in steps if "-m builder" in step]
    assert used == ["verify", "audit"]
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text(json.dumps(ROW) + "\n")
    bad.write_text(json.dumps({"messages": 3}) + "\n")
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        command = hook["entry"].split()[3:]
        assert hook["entry"].startswith("python -m builder.cli.each ")
        assert run_each([*command, str(good)]) == 0
        assert run_each([*command, str(good), str(bad)]) == 1
    secret = tmp_path / "secret.jsonl"
    leak = ROW["messages"][0] | {"content": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}
    secret.write_text(json.dumps({"messages": [leak, ROW["messages"][1]]}) + "\n")
    capsys.readouterr()


def test_the_helper_for_pytest(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    assert_proven(path, fail_on=["secrets", "exact_duplicate"])
    path.write_text(2 * (json.dumps(ROW) + "\n"))
    with pytest.raises(AssertionError, match="duplicates: exact_duplicate"):
        assert_proven(path, fail_on=["duplicates"])
    with pytest.raises(AssertionError, match="no such audit or code: secretz"):
        assert_proven(path, fail_on=["secretz"])
    path.write_text(json.dumps({"messages": 3}) + "\n")
    with pytest.raises(AssertionError, match="0 of 1 samples proven"):
        assert_proven(path)
    path.write_text("")
    with pytest.raises(AssertionError, match="holds no samples"):
        assert_proven(path)


def test_the_logs_of_this_machine_are_listed_with_commands_that_run(here, capsys):
    assert cli.main(["build"]) == 0
    listed = capsys.readouterr().out
    assert "builder build ~/.claude/projects -o out/claude-code" in listed
    assert CASES.is_dir()
