"""Everything that README states about the product is what the product does."""

import json
import re
import tomllib
from typing import get_args

import pytest
import yaml
from support.places import DATA, ROOT
from support.runs.builds import build, lines

from builder.codes import code_texts
from builder.distribution import DISTRIBUTION
from builder.options import Preset
from builder.qwen3.tokenizer import target_for
from builder.readers import readers

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def section(title):
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def cells(text, column=0):
    """Yields the names between backticks in a column of the tables of a text."""
    for line in re.findall(r"^\| (.*) \|$", text, re.MULTILINE):
        yield from re.findall(r"`([^`]+)`", line.split(" | ")[column])


def test_the_first_screen_has_what_a_newcomer_needs():
    first = TEXT.splitlines()[:26]
    assert first[0] == f"# {DISTRIBUTION}"
    commands = [line.split()[:2] for line in first if line.startswith("    ")]
    rest = [["builder", name] for name in ("build", "view", "export", "verify")]
    assert commands == [["pip", "install"], *rest]
    assert sum(line.startswith("![") for line in first) == 1
    assert "| model you train | calls |" in TEXT.partition("## Install")[0]


def test_every_model_of_the_first_table_is_described():
    page = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
    table = TEXT.partition("| model you train | calls |")[2].partition("\n\n")[0]
    named = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:-1]]
    models = [name.strip() for line in named for name in re.split(r",| and ", line)]
    assert len(models) > 12
    for name in models:
        assert name.replace("4.1", "4.0; 4.1") in page, name


def test_presets_and_extras_are_those_that_exist():
    assert TEXT.count(f"--preset {' | '.join(get_args(Preset))}") == 1
    installed = re.findall(r"\[([\w,]+)\]['`]", TEXT)
    named = {one for names in installed for one in names.split(",")}
    assert {"fast", "capture"} <= named <= set(PROJECT["optional-dependencies"])
    assert set(PROJECT["scripts"]) == {"builder", DISTRIBUTION}


def test_the_numbers_are_no_larger_than_what_there_is():
    (formats,) = re.findall(r"more than (\d+) formats", TEXT)
    assert len(readers()) > int(formats)
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in TEXT


def test_the_checks_are_codes_of_verify():
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    listed = page.partition("## What is checked\n")[2].partition("\n## ")[0]
    listed = listed.replace("`tool_calls` and role `tool`", "")
    names = re.findall(r"`([a-z]+)`", listed)
    assert len(names) == 9
    assert set(names) - {"spec"} <= set(code_texts())  # a finding of `spec` is a bug of ours


def test_the_keys_of_the_configuration_exist():
    known = yaml.safe_load((ROOT / "configs" / "default.yaml").read_text(encoding="utf-8"))
    for area, key in re.findall(r"`(normalize|audit|verify|limits|select)\.(\w+)", TEXT):
        assert key in known[area], f"{area}.{key}"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("readme") / "out"
    assert build(out, inputs=[DATA / "claude-code"]) == 0
    return out


def test_the_table_of_the_output_folder_names_every_file(built):
    named = set(cells(section("The output folder")))
    for path in built.rglob("*"):
        name = path.relative_to(built).as_posix()
        if path.is_file() and not name.startswith("."):
            assert any(re.match(one.replace("*", r"[\w-]+"), name) for one in named), name
    for one in named:
        assert list(built.glob(one.rstrip("/"))), one


def test_the_log_lines_become_the_message_and_the_text_that_are_shown(built):
    part = section("From a log line to what the model sees")
    raw, sample = re.findall(r"```json\n(.*?)```", part, re.DOTALL)
    (rendered,) = re.findall(r"```\n(<\|im_start\|>.*?)```", part, re.DOTALL)
    message = json.loads(sample)
    rows = lines(built / "data" / "train-00000-of-00001.jsonl")
    (row,) = [row for row in rows if message in row["messages"]]
    assert rendered.rstrip("\n") in target_for("qwen3").render(row["messages"], row["tools"])
    logged = (DATA / "claude-code" / "parallel.jsonl").read_text(encoding="utf-8")
    blocks = [
        block
        for line in map(json.loads, logged.splitlines())
        if isinstance(line.get("message", {}).get("content"), list)
        for block in line["message"]["content"]
    ]
    for line in map(json.loads, raw.splitlines()):
        assert line["message"]["content"][0] in blocks


def test_the_closed_loop_has_the_numbers_of_its_page():
    page = (ROOT / "docs" / "parity.md").read_text(encoding="utf-8")
    assert "gave 0 of 8 calls back in non-thinking mode, with `unit: turn` 8 of 8" in " ".join(
        TEXT.split()
    )
    assert "| `unit: conversation` | non-thinking mode | 0 of 8 |" in page
    assert "| `unit: turn` | non-thinking mode | 8 of 8 |" in page
