"""Proposed mappings read what the log holds, or ask; a build refuses what is still asked."""

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import yaml
from support.logs.mapped import contents, written
from support.places import ROOT
from support.runs.commands import run

from builder import Source, UsageError, build_dataset, inspect_log, suggest_mapping
from builder.config.load import parse_mapping
from builder.readers.mapping.read import check_mapping, mapped_reader
from builder.readers.mapping.suggest import examined_keys, is_transcript, suggest
from builder.testing import read_counted

SHAPES = {
    shape["name"]: shape
    for shape in yaml.load((Path(__file__).parent / "shapes.yaml").read_text(), yaml.CSafeLoader)
}
TALK = [{"session": "s", "role": role, "text": f"Hello you, {role}"} for role in ("user", "bot")]


def logged(folder, shape, stem="log"):
    """Returns the log of a shape."""
    rows, kind = shape["rows"], shape.get("kind")
    path = folder / f"{stem}.{kind}"
    if kind is None:
        return written(folder, rows, f"{stem}.jsonl")
    if kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executescript(";".join(rows))
    elif kind == "csv":
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return Source(path.name, path)


def as_lists(values):
    return [[[*map(list_of, message)] for message in one] for one in values]


def list_of(part):
    return [*part] if isinstance(part, tuple) else part


def questions(text):
    lines = (line.partition("# Decide: ")[2] for line in text.splitlines())
    return [*dict.fromkeys(line.partition(": ")[0] for line in lines if line)]


@pytest.mark.parametrize("name", SHAPES)
def test_a_proposal_reads_what_a_stranger_logged_or_asks(tmp_path, name):
    shape = SHAPES[name]
    source = logged(tmp_path, shape)
    text = suggest(source)
    if text is None:
        assert shape["asks"] == "nothing is proposed"
        return
    assert questions(text) == shape.get("asks", [])
    spec = parse_mapping(text, "proposal")
    if "reads" in shape:
        check_mapping("proposal", spec, [source])
        assert as_lists(contents(read_counted(mapped_reader(spec), source))) == shape["reads"]


def test_the_proposals_give_samples(tmp_path):
    inputs, expected = [], 0
    for number, shape in enumerate(SHAPES.values()):
        if "reads" in shape and "asks" not in shape:
            source = logged(tmp_path, shape, f"log{number}")
            mapping = yaml.safe_load(suggest(source))
            inputs.append({"path": tmp_path / source.name, "mapping": mapping})
            expected += len(shape["reads"])
    built = build_dataset([], tmp_path / "out", config={"inputs": inputs}, workers=1)
    ledger = built.ledger
    assert {*ledger.conversations_rejected} <= {"duplicate"}
    assert ledger.samples + ledger.duplicates == expected


def test_a_question_is_not_built_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [*TALK, {"session": "s", "role": "doctor", "text": "It hurts here"}]
    written(tmp_path, rows, "own.jsonl")
    shown = run("inspect", "own.jsonl", "--suggest-mapping")
    assert shown.returncode == 0, shown.stderr
    refused = run("build", "own.jsonl", "--mapping", "own.mapping.yaml", "-o", "out")
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert "own.mapping.yaml: a question is open, answer it, and remove its line" in line
    assert "message.roles: 'doctor': which of" in line
    proposal = suggest_mapping("own.jsonl")
    with pytest.raises(UsageError, match="a question is open"):
        build_dataset("own.jsonl", "out", mapping=proposal)
    assert inspect_log("own.jsonl", mapping=proposal).conversations == 1
    path = tmp_path / "own.mapping.yaml"
    text = "".join(line for line in path.read_text().splitlines(True) if line[0] != "#")
    path.write_text(text.replace("bot: assistant", "bot: assistant\n    doctor: skip"))
    built = build_dataset("own.jsonl", "out", mapping=path, workers=1)
    assert built.ledger.samples == 1


def test_the_examples_proposal_is_the_example():
    proposed = suggest(Source("log", ROOT / "configs" / "mappings" / "agent-steps.jsonl"))
    example = yaml.safe_load((ROOT / "configs" / "mappings" / "agent-steps.yaml").read_text())
    assert "Decide" not in proposed
    assert yaml.safe_load(proposed) == example


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        ({"deleted": True}, "message: what has 'deleted' set (1) is read: did the model see it?"),
        ({"isDraft": 1}, "message: what has 'isDraft' set (1) is read"),
        ({"kind": "internal_note"}, "message: 'kind' says that 1 are notes"),
        ({"final_reply": "Good bye then"}, "message: 'final_reply' is not read"),
        ({"result": {"text": "Yes."}}, "message: 'result' is not read"),
        ({"extra": {"parts": ["some text of a kind"]}}, "message: 'extra' is not read"),
        ({"deleted": False, "output_tokens": 3, "reply_id": "a_7", "agent": "desk-1"}, None),
    ],
)
def test_what_a_key_says_is_asked_about(tmp_path, row, asked):
    text = suggest(written(tmp_path, [TALK[0], TALK[1] | row]))
    if asked is None:
        assert "# Decide" not in text
    else:
        assert f"# Decide: {asked}" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("system\nBe good.\nuser\nWhat is 2+3?\nassistant\n", True),
        ("\n\nHuman: Say hi\n\nAssistant: Hi.", True),
        ("Below is a task.\n\n### Instruction:\nName a city\n\n### Response:", True),
        ("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", True),
        ("<s>[INST] Hi [/INST]", True),
        ("**User:** Hi\n**Assistant:** Hello\n**User:** Bye", True),
        ("Sort these words:\nuser\nsystem\nassistant", False),
        ("Summarise this chat:\nUser: hi\nAssistant: hello", False),
        ("User: who is this?", False),
        ("What is <|im_start|> for?", False),
        ("Write a response:\nResponse: none", False),
    ],
)
def test_a_transcript_is_no_message(text, expected):
    assert is_transcript(text) is expected


def test_a_log_that_a_reader_reads_needs_no_mapping(tmp_path):
    messages = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": "Hi"}]
    source = written(tmp_path, [{"messages": messages}])
    with pytest.raises(UsageError, match="the reader 'openai-chat' reads it, so it needs no"):
        suggest_mapping(tmp_path / source.name)


def test_keys_without_a_conversation_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"no conversation found in its keys \(x, y\): docs/"):
        suggest_mapping([{"x": 1, "y": "two"}])
    source = written(tmp_path, [{"ts": at, "payload": json.dumps({"x": at})} for at in range(3)])
    assert examined_keys(source) == ["ts", "json(payload)"]
