"""The level of context: required, reported, and counted per target."""

import json

import pytest
from support.templates.targets import TEMPLATE, small_tokenizer_folder

from builder import cli
from builder.build.build import build as build_dataset
from builder.build.engine import local
from builder.config import load_config

USER = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": "a"}
ROWS = [
    {"messages": [{"role": "system", "content": "s"}, USER, ANSWER], "tools": []},
    {"messages": [USER, ANSWER], "tools": []},
]


def build(tmp_path, **config):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    inputs = {"inputs": [{"path": "in.jsonl"}]}
    (tmp_path / "c.yaml").write_text(json.dumps({**inputs, **config}))
    command = ["build", "-c", str(tmp_path / "c.yaml"), "-o", str(tmp_path / "out")]
    return cli.main([*command, "--quiet"])


def test_a_required_level_rejects_the_samples_below_it(tmp_path):
    assert build(tmp_path, verify={"require": ["complete"]}) == 0
    meta = (tmp_path / "out/meta/train-00000-of-00001.jsonl").read_bytes().splitlines()
    (about,) = map(json.loads, meta)
    assert about["context"] == {"level": "logged", "missing": []}
    assert about["outcome"] is None
    (reject,) = map(json.loads, (tmp_path / "out" / "rejects.jsonl").read_bytes().splitlines())
    assert reject["code"] == "context"
    assert "missing: system" in reject["message"]


def test_targets_are_counted_by_level(tmp_path):
    assert build(tmp_path) == 0
    built = build_dataset(
        load_config(tmp_path / "c.yaml"),
        tmp_path / "again",
        engine=local(1),
        fresh=True,
        progress=lambda _: lambda *_: None,
        warn=print,
    )
    assert built.context_levels == {"partial": 1, "logged": 1}
    assert built.context_missing == {"system": 1}
    assert not built.is_weighted


@pytest.mark.slow
def test_a_late_system_message_needs_a_template_that_renders_it(tmp_path, capsys):
    without = TEMPLATE.replace('(message.role == "system" and not loop.first)', "false")
    assert without != TEMPLATE
    folder = small_tokenizer_folder(tmp_path / "tokenizer", chat_template=without)
    options = {"normalize": {"late_system": "keep"}, "verify": {"tokenizer": folder}}
    assert build(tmp_path, **options) == 2
    assert "normalize.late_system: keep: the chat template" in capsys.readouterr().err


def test_a_late_system_message_that_was_kept_is_proven_again(tmp_path):
    late = [USER, ANSWER, {"role": "system", "content": "now"}, USER, ANSWER]
    (tmp_path / "in.jsonl").write_text(json.dumps({"messages": late, "tools": []}) + "\n")
    (tmp_path / "c.yaml").write_text("normalize: {late_system: keep}\n")
    command = ["build", str(tmp_path / "in.jsonl"), "-c", str(tmp_path / "c.yaml")]
    assert cli.main([*command, "-o", str(tmp_path / "out"), "--quiet"]) == 0
    lines = (tmp_path / "out/data/train-00000-of-00001.jsonl").read_bytes().splitlines()
    assert [m["role"] for m in json.loads(lines[0])["messages"]] == [m["role"] for m in late]
    assert cli.main(["verify", str(tmp_path / "out"), "--quiet"]) == 0


def test_the_card_and_the_summary_name_what_is_missing(tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    command = ["build", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out"), "-v"]
    assert cli.main(command) == 0
    summary = capsys.readouterr().out
    assert "context    1 of 2 complete; 1 lack the prompt" in summary
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| logged | 1 | 50.0 % |" in card
    assert "| partial | 1 | 50.0 % |" in card
    assert "| `system` | 1 | the system prompt is not in the log |" in card
    again = ["merge", str(tmp_path / "out"), "-o", str(tmp_path / "merged"), "--quiet"]
    assert cli.main(again) == 0
    assert "| `system` | 1 |" in (tmp_path / "merged" / "README.md").read_text()
