"""Runs every command in README and docs/ as written, with stand-ins for remote services.

A stand-in of the Hub on loopback serves `hf://`; placeholder names of the pages (`LOGS`,
`out/mine`) are files created here.
"""

import json
import os
import re
import shlex
import shutil
import urllib.request

import pytest
import yaml
from support.hub.client import Client
from support.hub.scenarios import LFS, environment
from support.hub.server import Hub
from support.hub.state import WRITER
from support.logs.preference import rewound
from support.pages import agents
from support.places import DATA, ROOT
from support.runs.builds import build

import builder
from builder import cli
from builder.cli.app import COMMANDS
from builder.cli.each import run_each
from builder.cli.help import examples_of
from builder.testing import assert_proven

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {
    "cli.md": "is made from the code",
    "readers.md": "tests/readers/test_third_party.py",
}
"""Pages whose commands are checked elsewhere, and where."""

ROW = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
SHAREGPT = {
    "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
}
XLAM = {
    "id": 1,
    "query": "How long is a?",
    "tools": json.dumps([{"name": "wc", "description": "counts", "parameters": {}}]),
    "answers": json.dumps([{"name": "wc", "arguments": {"path": "a"}}]),
}

STAND_INS = {
    "you/": "team/",
    "Qwen/Qwen3-4B-Instruct-2507": "qwen3",
    "s3://": "file://{here}/store/",
    " --engine ray": "",
    "~/": "{here}/home/",
    "--all --for Qwen3-4B-Instruct-2507 -o out/mine": "--all -o out/all",
    "hf://OWNER/NAME": "hf://NousResearch/hermes-function-calling-v1",
}
"""Replacements for what a test lacks: an account, a Hub model, a store, a shell."""

OTHER_PROGRAMS = {"scripts/quickstart.sh", "scripts/test.sh", "pip", "uvx", "python", "trl", "hf"}
"""Programs other than `builder` on the pages; CI runs the two scripts."""


def commands(text):
    """Returns the commands of a text: lines of shell blocks, and indented lines with a command."""
    text = text.replace("\\\n", " ")
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from (line.removeprefix("$ ").strip() for line in block.splitlines())
    yield from (line.strip() for line in re.findall(r"^    (?:builder|python) .*$", text, re.M))


def of_builder(text):
    return [line for line in commands(text) if line.startswith("builder ")]


def sections():
    """Returns {name: commands} of each recipe of the README and of each page."""
    recipes = README.read_text().partition("## Recipes")[2].partition("\n## ")[0]
    titled = re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", recipes, re.MULTILINE | re.DOTALL)
    found = {title: of_builder(body) for title, body in titled}
    rest = README.read_text().replace(recipes, "")
    found["README.md"] = of_builder(rest)
    found |= {f"builder {name} -h": [line for line, _ in examples_of(name)] for name in COMMANDS}
    for page in PAGES[1:]:
        if page.name not in ELSEWHERE:
            found[page.name] = of_builder(page.read_text())
    return {name: listed for name, listed in found.items() if listed}


SECTIONS = sections()


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Yields (folder with the files that the pages name, a process that runs commands in it)."""
    here = tmp_path_factory.mktemp("docs")
    logs = here / "home" / ".claude" / "projects" / "shop"
    logs.mkdir(parents=True)
    shutil.copy(DATA / "claude-code" / "parallel.jsonl", logs / "b1f0c9a2.jsonl")
    shutil.copytree(DATA, here / "data")
    for name in ("logs", "LOGS", "store/logs/agents"):
        shutil.copytree(DATA / "openai-chat", here / name)
    (here / "LOGS" / "rewound.jsonl").write_text(rewound())
    (here / "own.jsonl").write_text('{"who": "user", "text": "a"}\n{"who": "bot", "text": "b"}\n')
    (here / "xlam.json").write_text(json.dumps([XLAM]))
    (here / "theirs.jsonl").write_text(json.dumps(SHAREGPT) + "\n")
    (here / "mine.jsonl").write_text(json.dumps(ROW) + "\n")
    (here / "eval.jsonl").write_text('{"question": "one two three four five six seven eight?"}\n')
    (here / "tools.json").write_text('[{"name": "look", "parameters": {"type": "object"}}]')
    for name, text in named_files(README.read_text()):
        (here / name).write_text(text)
    assert build(here / "out" / "mine", inputs=[DATA / "claude-code"]) == 0
    shutil.copytree(here / "out" / "mine", here / "out" / "quickstart")
    assert build(here / "out" / "theirs", inputs=[DATA / "codex"]) == 0
    (about,) = (here / "out" / "mine" / "meta").glob("*.jsonl")
    accepted = {"id": json.loads(about.read_text().split("\n")[0])["id"], "decision": "accept"}
    (here / "out" / "mine.review.jsonl").write_text(json.dumps({**accepted, "note": ""}) + "\n")
    shutil.copytree(ROOT / "configs" / "mappings", here / "configs" / "mappings")
    agents.install(here / "bin")
    with Hub() as hub, agents.provider() as gemini:
        rows = {"rows.jsonl": (json.dumps(SHAREGPT) + "\n").encode()}
        hub.add_repo("NousResearch/hermes-function-calling-v1", rows, private=False)
        env = environment(LFS, hub.url, str(here / "hub-home"))
        env |= {"HOME": str(here / "home"), "GOOGLE_GEMINI_BASE_URL": gemini}
        env["PATH"] = f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}"
        client = Client(env, cwd=here)
        yield here, client
        client.close()


def named_files(text):
    """Yields (name, content) of each block whose first line is a comment with a file name."""
    return re.findall(r"```yaml\n# ([\w.]+)\n(.*?)```", text, re.DOTALL)


def test_recipes_are_short():
    recipes = README.read_text().partition("## Recipes")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\w+\n(.*?)^```", recipes, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    assert all(block.count("\n") <= 10 for block in blocks)


@pytest.mark.slow
@pytest.mark.parametrize("name", SECTIONS)
def test_the_commands_run_as_written(shell, name, monkeypatch):
    here, client = shell
    for line in SECTIONS[name]:
        command = line
        for written, stand_in in STAND_INS.items():
            command = command.replace(written, stand_in.format(here=here))
        arguments = shlex.split(command, comments=True)[1:]
        for path in read_by(arguments, here):
            missing_is_named(client, arguments, path)
        if arguments[0] == "view":
            assert viewed(here, arguments, monkeypatch).startswith("<!doctype html>")
            continue
        ran = client.run(*arguments, token=WRITER)
        assert ran.code == expected(arguments), (line, ran)
    if name == "From logs to the Hub":
        assert "9 of 9 samples verified" in ran.out


def read_by(arguments, here):
    """Yields the files and folders that a command reads: those it names, and its configuration."""
    outputs = {at + 1 for at, word in enumerate(arguments) if word in ("-o", "--out")}
    for at, word in enumerate(arguments):
        if word == "--":
            return
        if at in outputs or not (here / word).exists():
            continue
        yield here / word
        if "-c" in arguments[at - 1 : at]:
            named = re.findall(r"[\w./-]+", re.sub("#.*", "", (here / word).read_text()))
            yield from (here / name for name in named if (here / name).is_file())


def missing_is_named(client, arguments, path):
    """Runs a command without one of its files: one line names it, and nothing is written."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    try:
        ran = client.run(*arguments, token=WRITER)
    finally:
        aside.rename(path)
    assert ran.code == 2, (arguments, path, ran)
    assert ran.out == ""
    (line,) = ran.err.splitlines()
    assert line.startswith("builder: "), line
    assert path.name in line, (line, path)


def expected(arguments):
    """Returns the expected exit code: 1 for a difference or a failed gate, else 0."""
    return 1 if arguments[0] == "diff" else 0


def viewed(here, arguments, monkeypatch):
    """Runs `view` until its first page has been fetched; returns the page."""
    pages = []

    def look_and_stop(url):
        with urllib.request.urlopen(url) as answer:
            pages.append(answer.read().decode())
        raise KeyboardInterrupt

    monkeypatch.chdir(here)
    monkeypatch.setattr("webbrowser.open", look_and_stop)
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 130
    return pages[0].lower()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_other_programs_are_known_and_scripts_exist(page):
    if page.name == "cli.md":
        return
    block = r"^```(?:sh|console)\n(?!#!)(.*?)^```"
    text = page.read_text().replace("\\\n", " ")
    lines = [
        *commands("".join(f"```sh\n{one}```\n" for one in re.findall(block, text, re.M | re.S)))
    ]
    lines += re.findall(r"^    (python scripts/.*)$", text, re.MULTILINE)
    for line in filter(None, lines):
        program = line.split()[0]
        if program == "builder" or page.name == "readers.md":
            continue
        assert program in OTHER_PROGRAMS, line
        for script in re.findall(r"scripts/[\w.]+", line):
            assert (ROOT / script).exists(), line


def test_every_command_of_every_page_has_options_that_exist():
    """In running text and blocks, each named command and option is declared."""
    declared = (ROOT / "docs" / "cli.md").read_text()
    sections = dict(re.findall(r"^## builder (\w+)\n(.*?)(?=^## |\Z)", declared, re.M | re.S))
    assert set(sections) == set(COMMANDS)
    seen = 0
    for page in PAGES:
        for line in re.findall(r"builder (\w+)((?: [^`\n|)]*)?)", page.read_text()):
            name, rest = line
            if name not in sections:
                continue
            for option in re.findall(r"(?<!\w)--?[a-z][\w-]*", re.split("  #| -- ", rest)[0]):
                seen += 1
                known = f"`{option}`" in sections[name] or option in ("-h", "--help")
                assert known, f"{page.name}: builder {name}{rest}"
    assert seen > 20


def test_every_link_between_pages_leads_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_is_linked_from_another():
    linked = {
        (page.parent / target).resolve()
        for page in [*PAGES, ROOT / "CONTRIBUTING.md"]
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        if (page.parent / target).resolve() != page
    }
    assert not {*PAGES[1:], ROOT / "docs" / "notebook.ipynb"} - linked


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
    for gate, refused in (
        ("secretz", "no such audit or code, did you mean 'secrets'"),
        ("secret", "is one code of the audit 'secrets'"),
        ("contaminated", "does not run without --contamination SET"),
    ):
        with pytest.raises(builder.UsageError, match=refused):
            assert_proven(path, fail_on=[gate])
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    leak = [{"role": "user", "content": token}, {"role": "assistant", "content": "ok"}]
    path.write_text(json.dumps({"messages": leak}) + "\n")
    with pytest.raises(AssertionError, match="github_token"):
        assert_proven(path, fail_on=["secrets"])
    path.write_text(json.dumps({"messages": 3}) + "\n")
    with pytest.raises(AssertionError, match="0 of 1 samples verified"):
        assert_proven(path)
    path.write_text("")
    with pytest.raises(AssertionError, match="contains no samples"):
        assert_proven(path)


@pytest.mark.slow
def test_the_logs_of_this_machine_are_listed_with_commands_that_run(shell):
    _, client = shell
    ran = client.run("build", token=WRITER)
    assert ran.code == 0
    assert "builder build ~/.claude/projects -o out/claude-code" in ran.out
