"""80 mistakes: one line each, the nearest valid name, the right exit code."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import DATA

from builder import cli
from builder.api import Progress
from builder.cli.app import COMMANDS, others
from builder.cli.help import examples_of
from builder.cli.run import commands
from builder.cli.terminal import BuildProgress
from builder.select.conditions import FIELDS, TOOLS

ROW = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}

MISTAKES = {
    # options
    "build --tokeniser x": "no such option '--tokeniser', did you mean '--tokenizer'",
    "build x --model Qwen3-8B": "no such option '--model', did you mean `--for MODEL`",
    "build x --max-tokens 9": "'--max-tokens', did you mean `--set limits.max_tokens=VALUE`",
    "build x.jsonl --for Llama-3.1-8B-Instruct": "of this family are not supported: .*Qwen",
    "build x.jsonl --for Qwen3-4B-Instruct": "did you mean 'Qwen3-4B-Instruct-2507'",
    "view x.jsonl --for Qwen3-8B": "view has no option '--for': it is one of build, export",
    "build x.jsonl --for nosuch": "there are: Hermes-4-14B, QwQ-32B",
    "build x.jsonl --outt y": "no such option '--outt', did you mean '--out'",
    "verify x.jsonl --require shema": "--require 'shema': no such value, did you mean 'schema'",
    "verify x.jsonl --mode thinkin": "--mode 'thinkin': no such value, did you mean 'thinking'",
    "verify x.jsonl --unit turns": "--unit 'turns': no such value, did you mean 'turn'",
    "verify x.jsonl --masks axolotle": "did you mean 'axolotl'",
    "build x.jsonl -o out --engine rya": "--engine 'rya': no such value, did you mean 'ray'",
    "build x.jsonl -o out --workers none": "--workers: must be a whole number",
    "build x.jsonl -o out --workers 0": "--workers: must be a whole number of at least 1",
    "build x.jsonl -o": "'-o' requires an argument",
    "build x.jsonl": "-o FOLDER is missing: where",
    "inspect x.jsonl --index -1": "--index: must be a whole number of at least 0",
    "inspect x.jsonl --index 7": "--index 7: there is 1 conversation, numbered from 0",
    "export x.jsonl --to mesages -o out": "no such variant or trainer, did you mean 'messages'",
    "export x.jsonl --to verl": "export: -o FOLDER is missing: Write the rows here",
    "view x.jsonl --port 99999": "--port: must be a whole number of at most 65535",
    "view x.jsonl --logs none": "--logs 'none': no such folder",
    "audit x.jsonl --fail-on secret": "is one code of the audit 'secrets'",
    "audit x.jsonl --fail-on secretz": "no such audit or code, did you mean 'secrets'",
    "audit x.jsonl --fail-on contaminated": "does not run without --contamination SET",
    "audit x.jsonl --fail-on ,": "names neither an audit nor a code",
    "audit x.jsonl --contamination none.txt": "--contamination 'none.txt': no such file",
    "audit x.jsonl --set audit.contamination=[none.csv]": "audit.contamination: dataset 'none.csv'",
    "push x.jsonl o/n --allow secretes": "--allow 'secretes': no such gate, did you mean 'secrets'",
    "build x.jsonl -o out --review none.jsonl": "none.jsonl",
    "build x.jsonl -o out -c value.yaml -c where.yaml": "-c: is given twice",
    "build x.jsonl --out=out --out=more": "--out: is given twice",
    "push x.jsonl o/n --public --private": "--public and --private: contradict each other",
    "build x.jsonl -o out -qv": "--quiet and --verbose: contradict each other",
    # commands
    "buidl x": "'buidl'.*did you mean 'build'|No such command 'buidl'. Did you mean 'build'",
    "verfy x": "verify",
    "select out": "no such command 'select': `build` and `merge` do it, with keys of the conf",
    "review out": "no such command 'review': `builder view DATASET` takes decisions",
    "help": "no such command 'help': `builder -h`",
    "diff x.jsonl": "diff: B is missing: The dataset to compare with it",
    "formats codex": r"codex: not expected here \(`builder formats -h` shows what is\)",
    "collect -o ready x.jsonl": "collect: 'ready' is a dataset: name a folder for logs",
    # files and folders
    "build none.jsonl -o out": "none.jsonl",
    "build *.none -o out": "nothing matches the pattern",
    "build x.jsonl -o out --preset stf": "--preset 'stf': no such value, did you mean 'sft'",
    "build x.jsonl -o out --mapping none.yaml": "none.yaml: No such file or directory",
    "collect": "collect: -o FOLDER is missing: Keep the copies here",
    "collect -o out none": "input 'none': no such file or folder",
    "capture -o out": "name a command after `--`, or --serve PORT",
    "capture --definitions -- true": "--definitions needs -o FILE",
    "capture --definitions -o d.json -- no-such-agent": "'no-such-agent': no such program",
    "merge ready none -o out": "dataset 'none': no such folder",
    "verify none.jsonl": "dataset 'none.jsonl': no such file or folder",
    "audit none": "dataset 'none': no such file or folder",
    "report none": "dataset 'none'",
    "inspect none": "none",
    "build x.jsonl -o x.jsonl": "output 'x.jsonl': is a file, not a folder",
    "build x.jsonl -o mine": "output 'mine': the folder is not empty and was not made by build",
    "export x.jsonl --to messages -o mine": "output 'mine': is not an empty folder",
    "report x.jsonl -o /proc/r.html": "output '/proc/r.html'",
    "push x.jsonl o/n": "is not a folder made by build",
    "build x.jsonl -o out -c none.yaml": "none.yaml: No such file or directory",
    "verify log.jsonl": "is in the format claude-code .*`builder build log.jsonl -o OUT`",
    "audit log.jsonl": "is in the format claude-code .*`builder build log.jsonl -o OUT`",
    "verify ids.jsonl": "contains token ids .*use the dataset that they were made from",
    "verify other.jsonl": r"no known form of rows \(left, right\): see docs/formats.md",
    "merge x.jsonl x.jsonl -o out": "x.jsonl",
    "merge mine none -o out": "mine",
    "merge x.jsonl": "merge: -o FOLDER is missing: Write the dataset here",
    "diff x.jsonl none": "dataset 'none': no such file or folder",
    "merge ready ready -o out": "merge: a dataset is named twice",
    "merge ready -o ready": "output 'ready': is one of the datasets to merge",
    "merge ready -o mine": "output 'mine': the folder is not empty",
    "merge x.jsonl ready -o out": "dataset 'x.jsonl': is not a folder made by build",
    "diff x.jsonl mine": "dataset 'mine': contains no data files",
    "export mine --to openai -o out": "dataset 'mine': contains no data files",
    "report x.jsonl -o mine": "output 'mine': Is a directory",
    "export ready --to openai -o exported": "is not an empty folder; --fresh replaces this export",
    "push ready o/n": "no token for the Hub",
    "push ready o-n": "repository 'o-n': must be OWNER/NAME",
    "view none": "dataset 'none': no such file or folder",
    # formats
    "build x.jsonl -o out --format openai-chta": "no such reader, did you mean 'openai-chat'",
    "inspect x.jsonl --format claude-cod": "no such reader, did you mean 'claude-code'",
    "inspect noise.bin": "no reader recognises it: it is binary, not JSON, JSONL",
    "inspect prose.txt": "no reader recognises it: it is plain text, not JSON, JSONL",
    "inspect table.csv": r"\(CSV\); `builder inspect table.csv --suggest-mapping` proposes",
    "inspect other.jsonl": "`builder inspect other.jsonl --suggest-mapping` proposes",
    "inspect cut.json": "bad_json: Expecting ',' delimiter at line 3, column",
    "inspect wide.jsonl": r"text in UTF-16: convert it to UTF-8",
    # configuration
    "build -c unknown.yaml -o out": "normalise: unknown key, did you mean 'normalize'",
    "build -c value.yaml -o out": r"normalize.unit: must be one of .*did you mean 'turn'",
    "build -c twice.yaml -o out": r"name: the key occurs twice \(line 2\)",
    "build -c broken.yaml -o out": "broken.yaml: not YAML",
    "build -c where.yaml -o out": "select.where.tokens.mx: unknown key",
    "build -c budget.yaml -o out": "did you mean 'max_tokens_total'",
    "build -c masked.yaml -o out": "normalize.mask",
    "build -c tab.yaml -o out": "tab.yaml: not YAML: found character .* at line 2, column 1",
    "build -c list.yaml -o out": "normalize: must be a mapping of keys, found a list",
    "build -c top.yaml -o out": "the file: must be a mapping of keys, found a list",
    "build -c unit.yaml -o out": "unit: unknown key, did you mean 'normalize.unit'",
    "build -c section.yaml -o out": "audit.max_tokens: unknown key, did you mean 'limits.max_tok",
    "build -c type.yaml -o out": "split.validation: must be a share from 0 to 1, found 'much'",
    "build -c negative.yaml -o out": "limits.max_tokens: must be a whole number from 1 .* found -5",
    "build -c field.yaml -o out": "select.where.tokenz: no field of meta/, did you mean 'tokens'",
    "build -c short.yaml -o out": r"must be a mapping of keys \(min, max, in, not\), found 5",
    "build -c mine x.jsonl -o out": "mine: Is a directory",
    # tokenizers
    "verify x.jsonl --tokenizer mine": "mine",
    "build x.jsonl -o out --tokenizer bare": "'bare': cannot be loaded: the key .* is missing",
    "verify x.jsonl --chat-template none.jinja": "'none.jinja': no such file, and not a sha256",
    "build x.jsonl -o out --tokenizer ./none": "none",
    # tools and system
    "build x.jsonl -o out --tools none.json": "tools .none.json.: No such file",
    "build x.jsonl -o out --system none.txt": "No such file .*builder capture --definitions --logs",
    "build x.jsonl -o out --tools x.jsonl": "tools 'x.jsonl': is no tool definition",
}

CONFIGURATIONS = {
    "tab": "inputs:\n\t- path: x.jsonl\n",
    "list": "normalize:\n  - unit: turn\n",
    "top": "- inputs\n",
    "unit": "unit: turn\n",
    "section": "audit: {max_tokens: 5}\n",
    "type": "split: {validation: much}\n",
    "negative": "limits: {max_tokens: -5}\n",
    "field": "select: {where: {tokenz: {min: 1}}}\n",
    "short": "select: {where: {tokens: 5}}\n",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Returns a folder that `build` made."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "x.jsonl").write_text(json.dumps(ROW) + "\n")
    out = folder / "out"
    assert cli.main(["build", str(folder / "x.jsonl"), "-o", str(out), "--quiet"]) == 0
    return out


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Returns a folder with a dataset, a foreign folder, and configurations with mistakes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_text(json.dumps(ROW) + "\n")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    (tmp_path / "prose.txt").write_text("Once, upon a time,\nthere was a log.\n")
    (tmp_path / "table.csv").write_text("name,age\na,1\n")
    (tmp_path / "cut.json").write_text('{\n "messages": [\n  {"role": "user" "content": ""}]}\n')
    (tmp_path / "wide.jsonl").write_text('{"messages": []}\n', encoding="utf-16")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    (tmp_path / "unknown.yaml").write_text("normalise: {}\n")
    (tmp_path / "value.yaml").write_text("normalize: {unit: turns}\n")
    (tmp_path / "twice.yaml").write_text("name: a\nname: b\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")
    (tmp_path / "where.yaml").write_text("select: {where: {tokens: {min: 1, mx: 9}}}\n")
    (tmp_path / "budget.yaml").write_text("select: {max_token_total: 5}\n")
    (tmp_path / "masked.yaml").write_text("normalize: {mask: [error], untrained_turns: split}\n")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "tokenizer.json").write_text("{}")
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / "README.md").write_text("Written by `builder export --to openai")
    for name, text in CONFIGURATIONS.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "ids.jsonl").write_text('{"input_ids": [1], "labels": [1]}\n')
    (tmp_path / "other.jsonl").write_text('{"left": 1, "right": 2}\n')
    shutil.copy(DATA / "claude-code" / "parallel.jsonl", tmp_path / "log.jsonl")
    return tmp_path


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_line(here, built, capsys, command):
    (here / "ready").symlink_to(built)
    assert cli.main(command.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("builder: ")
    assert len(printed.err.splitlines()) == 1, printed.err
    assert re.search(MISTAKES[command], printed.err), printed.err
    assert (here / "mine" / "thesis.txt").read_text() == "mine"
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    "command",
    [
        "build --json --tokeniser x",
        "build none -o out --json",
        "verify none.jsonl --json",
        "verify x.jsonl --json --tokenizer",
        "inspect noise.bin --json",
        "formats --bogus --json",
        "audit --json",
        "audit x.jsonl --fail-on secrtes --json",
        "report none -o r.html --json",
        "view x.jsonl --port 99999 --json",
        "export x.jsonl --to sharegtp -o out --json",
        "merge x.jsonl -o out --json",
        "diff x.jsonl --json",
        "push x.jsonl o/n --json",
        "biuld --json",
        "--json",
    ],
)
def test_json_prints_an_object_on_mistakes_too(here, capsys, command):
    assert cli.main(command.split()) == 2
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["exit_code"] == 2
    assert f"builder: {found['error']}\n" == printed.err


def test_the_version_is_printed(capsys):
    assert cli.main(["--version"]) == 0
    assert re.match(r"toolcall-builder \S+\n", capsys.readouterr().out)


def test_another_distribution_with_the_module_is_named(monkeypatch):
    from importlib import metadata

    found = {"builder": ["toolcall-builder", "builder"]}
    monkeypatch.setattr(metadata, "packages_distributions", lambda: found)
    assert others() == ["builder"]


def test_each_phase_of_a_build_has_a_bar_of_its_own(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    show = BuildProgress(visible=True)
    for done in range(3):
        show(Progress("read", done, 2, bytes=done * 50, total_bytes=100, samples=done))
    for done in (0, 4, 9):
        show(Progress("audit", done, 9))
    show.close()
    titles = re.findall(r"\[(\d/\d\] [a-z, ]+)", terminal.getvalue())
    assert list(dict.fromkeys(map(str.strip, titles))) == [
        "1/4] reading and verifying",
        "3/4] auditing, loading again",
    ]


WITHOUT_OVERRIDE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
"""Runs a command of root without its right to read everything."""


@pytest.mark.slow
def test_a_folder_without_read_permission_is_one_line(here):
    is_root = hasattr(os, "getuid") and os.getuid() == 0
    if is_root and shutil.which("setpriv") is None:
        pytest.skip("root may read everything, and setpriv is not installed")
    (here / "locked").mkdir(mode=0)
    command = [sys.executable, "-m", "builder", "build", "locked", "-o", "out"]
    prefix = WITHOUT_OVERRIDE if is_root else []
    done = subprocess.run([*prefix, *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "builder: input 'locked': Permission denied\n"


def test_a_field_of_select_is_a_key_of_meta(built):
    (meta,) = (built / "meta").glob("*.jsonl")
    keys = json.loads(meta.read_text().splitlines()[0]).keys()
    sometimes = {
        "cut",
        "preferences",
        "models",
        "failed_turns",
        "untrained_turns",
        "failed_calls",
        "token_counts",
        "tokens_recorded",
        "tokens_difference",
        "agent_version",
    }
    assert keys | sometimes | {TOOLS} == FIELDS


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_one_style(capsys, monkeypatch, name):
    monkeypatch.setattr("sys.argv", ["/usr/bin/toolcall-builder", name, "-h"])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # as for a console script
    assert cli.main([name, "-h"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Usage: toolcall-builder {name} [OPTIONS]")
    assert not re.search(r"[<{]\w", printed), "types are placeholders in capitals"
    assert printed.count("\n  toolcall-builder ") == len([*examples_of(name)]) > 0
    assert all(line.endswith(".") for line in re.findall(r"^      (\S.*)$", printed, re.M)[-1:])
    for option in commands().get_command(None, name).params:
        takes_value = not getattr(option, "is_flag", False)
        assert option.metavar or not takes_value, option.name
        assert option.help.endswith("."), option.name
        if option.param_type_name == "option" and option.multiple:
            assert printed.count(f"{option.opts[0]} {option.metavar}") >= 1


def test_the_help_of_the_program_names_every_command(capsys):
    assert cli.main(["-h"]) == 0
    printed = capsys.readouterr().out
    assert all(f"\n  {name} " in printed for name in COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["formats", "--help"])
def test_a_full_disk_behind_standard_output_is_one_line(command):
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("only Linux has /dev/full")
    with device.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "builder", command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "builder: standard output: No space left on device\n",
    )
