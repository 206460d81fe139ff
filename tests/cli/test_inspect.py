"""`inspect` shows what `build` makes of a log, and the help lists what there is."""

import json
import re

import pytest
from support.runs.builds import build, lines

from builder import cli
from builder.cli import options
from builder.export.trace import TRACES
from builder.export.variants import VARIANTS

SECRET = "AKIA" + "Q3EGRCWMTHHVCTPA"


def rows(path, *texts):
    turns = ("user", "assistant")
    text = "".join(
        json.dumps({"messages": [{"role": role, "content": one} for role in turns]}) + "\n"
        for one in texts
    )
    path.write_text(text)
    return path


@pytest.fixture
def inspect(capsys):
    def run(*arguments):
        assert cli.main(["inspect", *map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_the_tokens_are_those_of_the_build(tmp_path, inspect):
    log = rows(tmp_path / "log.jsonl", f"the key is {SECRET}")
    config = tmp_path / "c.yaml"
    config.write_text("audit: {secrets: redact}")
    assert build(tmp_path / "out", "-c", config, inputs=[log]) == 0
    (meta,) = lines(tmp_path / "out" / "meta" / "train-00000-of-00001.jsonl")
    shown = inspect(log, "-c", config)["conversation"]
    assert shown["tokens"] == meta["tokens"]
    assert SECRET not in shown["text"]


def test_a_folder_is_inspected_by_its_first_file_with_a_conversation(tmp_path, inspect, capsys):
    (tmp_path / "a.jsonl").write_text('{"type": "summary", "summary": "s", "leafUuid": "u"}\n')
    log = rows(tmp_path / "b.jsonl", "x")
    found = inspect(tmp_path)
    assert found["source"] == "b.jsonl"
    assert found["records"] == inspect(log)["records"] == 1
    assert found["files"]["formats"] == {"claude-code": 1, "openai-chat": 1}
    assert cli.main(["inspect", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "no model named" in shown
    assert "None" not in shown


def test_an_audit_counts_rows_also_without_a_sample(tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    good = {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}
    bad = {"conversations": [{"from": "human", "value": "a"}]}
    path.write_text("".join(json.dumps(row) + "\n" for row in (good, bad, bad)))
    cli.main(["audit", str(path)])
    assert "3 of 3 rows were read as" in capsys.readouterr().out


def test_the_help_of_export_names_each_variant():
    (option,) = options.ExportVariant.__metadata__
    words = set(re.findall(r"[a-z0-9-]+", option.help))
    assert {*VARIANTS, *TRACES} <= words


def test_the_help_shows_whole_sentences(capsys):
    for arguments, code in (([], 2), (["-h"], 0)):
        assert cli.main(arguments) == code
        printed = capsys.readouterr()
        assert "..." not in printed.out.partition("Commands:")[2]
        assert not printed.err
        shown = " ".join(printed.out.split())
        assert "Check a dataset of any origin against the chat template, line by line." in shown


def test_a_folder_shows_the_first_conversation_that_is_usable(tmp_path, inspect):
    only_user = {"messages": [{"role": "user", "content": "a"}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(only_user) + "\n")
    rows(tmp_path / "b.jsonl", "good")
    found = inspect(tmp_path)
    assert found["source"] == "b.jsonl"
    assert found["conversation"]["rejected"] is None
