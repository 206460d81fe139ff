"""`inspect` shows what `build` makes of a log, and the help lists what there is."""

import json
import re
from zipfile import ZipFile

import pytest
from support.places import DATA, TESTS
from support.runs.builds import build, lines
from support.templates.published import text_of

from builder import cli
from builder.build import inspection
from builder.codes import meaning_of_change

ANSWER = {"role": "assistant", "content": "b"}
QUESTION = {"role": "user", "content": "a"}
UNUSABLE = {"messages": [QUESTION, {**ANSWER, "content": "<|im_end|>"}]}
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


@pytest.mark.parametrize("template", ["Qwen3", "Qwen3-Coder"])
def test_the_tokens_are_those_of_a_build_where_tools_are_inferred(template, tmp_path, inspect):
    """A build infers a tool from the calls of all sessions, and writes them as the target does."""
    first = (DATA / "claude-code" / "parallel.jsonl").read_text()
    second = first.replace("b1f0c9a2", "c2f0c9a2").replace('"timeout"', '"background"')
    assert second.count('"background"')
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, text in (("a.jsonl", first), ("b.jsonl", second)):
        (logs / name).write_text(text)
    target = tmp_path / "template.jinja"
    target.write_text(text_of(template))
    out, more = tmp_path / "out", ("--chat-template", target)
    assert build(out, *more, inputs=[logs]) == 0
    metas = lines(out / "meta" / "train-00000-of-00001.jsonl")
    assert len(metas) == 2
    for index, meta in enumerate(metas):
        shown = inspect(logs, "--index", index, *more)["conversation"]
        assert shown["tokens"] == meta["tokens"]
        assert "background" in shown["text"]
        assert "timeout" in shown["text"]
    alone = inspect(logs / "a.jsonl", *more)["conversation"]
    assert alone["tokens"] < metas[0]["tokens"]


def test_a_folder_that_is_too_large_says_that_tools_are_of_one_file(
    tmp_path, monkeypatch, inspect, capsys
):
    text = (DATA / "claude-code" / "parallel.jsonl").read_text()
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(text.replace("b1f0c9a2", f"{name}1f0c9a2"))
    monkeypatch.setattr(inspection, "SHARED", len(text))
    assert inspect(tmp_path)["conversation"]["tools_of_all_files"] is False
    assert cli.main(["inspect", str(tmp_path)]) == 0
    assert "tokens, with tools as inferred from this file alone;" in capsys.readouterr().out


def test_the_help_shows_whole_sentences(capsys):
    for arguments, code in (([], 2), (["-h"], 0)):
        assert cli.main(arguments) == code
        printed = capsys.readouterr()
        assert "..." not in printed.out.partition("Commands:")[2]
        assert not printed.err
        shown = " ".join(printed.out.split())
        assert (
            "Turn raw agent logs into fine-tuning data for Qwen models, verified byte for byte."
            in shown
        )


def test_the_number_of_a_conversation_of_a_folder_counts_all_files(tmp_path, inspect, capsys):
    rows(tmp_path / "a.jsonl", "one", "two")
    (tmp_path / "b.txt").write_text("no log")
    rows(tmp_path / "c.jsonl", "three")
    texts = ["one", "two", "three"]
    for number, text in enumerate(texts):
        found = inspect(tmp_path, "--index", str(number))
        assert text in found["conversation"]["text"]
        assert found["files"] == {"formats": {"openai-chat": 2}, "unknown": 1}
    assert (found["source"], found["conversation"]["index"]) == ("c.jsonl", 0)
    assert cli.main(["inspect", str(tmp_path)]) == 0
    assert "conversation 0 of 2 in this file, from 0 (--index N counts all files)" in (
        capsys.readouterr().out
    )
    assert cli.main(["inspect", str(tmp_path), "--index", "3"]) == 2
    assert "--index 3: there are 3 conversations, numbered from 0" in capsys.readouterr().err


def test_calls_are_counted_as_in_a_build_and_codes_have_their_words(tmp_path, inspect, capsys):
    log = TESTS / "readers/pi/compaction-v3/input/compaction.jsonl"
    assert build(tmp_path / "out", inputs=[log]) in (0, 1)
    ledger = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["ledger"]
    assert inspect(log)["calls"] == ledger["calls"]["logged"] == 3
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
    question = {**QUESTION, "content": [picture, {"type": "text", "text": "a"}]}
    (tmp_path / "log.json").write_text(json.dumps({"messages": [question, ANSWER]}))
    assert cli.main(["inspect", str(tmp_path / "log.json")]) == 0
    assert f"    media 1: {meaning_of_change('media')}" in capsys.readouterr().out


def test_the_first_usable_conversation_is_shown_and_which_were_not(tmp_path, inspect, capsys):
    log = rows(tmp_path / "log.jsonl", "good", "later")
    log.write_text(f"{json.dumps(UNUSABLE)}\n" * 2 + log.read_text())
    found = inspect(log)
    assert found["conversation"]["index"] == 2
    assert found["skipped"] == {"control_tokens": 2}
    assert cli.main(["inspect", str(log)]) == 0
    shown = capsys.readouterr().out
    assert "conversation 2 of 4 (numbered from 0; --index N shows another): line 3" in shown
    assert "the first that can be used; those before it cannot: control_tokens 2" in shown
    assert "good" in shown
    named = inspect(log, "--index", "1")["conversation"]
    assert (named["index"], named["rejected"]["code"]) == (1, "control_tokens")
    assert "later" in inspect(log, "--index", "3")["conversation"]["text"]
    assert found["conversation"]["text"] == inspect(log, "--index", "2")["conversation"]["text"]


def test_long_texts_are_folded_unless_they_are_asked_for(tmp_path, capsys):
    turns = []
    for number in range(40):
        result = "\n".join(f"row {number}.{row}" for row in range(50))
        turns += [{"role": "user", "content": result}, {**ANSWER, "content": "x" * 1000}]
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"messages": turns}) + "\n")
    assert cli.main(["inspect", str(log)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("\n") < 160
    assert "… 40 more lines (--full)" in shown
    assert "… 690 more characters (--full)" in shown
    assert re.search(r"… \d+ more messages, [\d,]+ more lines \(--full\)", shown)
    assert "row 0.0\n" in shown
    assert "row 39.49<|im_end|>\n" in shown
    assert shown.count("⟦") == shown.count("⟧")
    assert cli.main(["inspect", str(log), "--full"]) == 0
    whole = capsys.readouterr().out
    assert "more lines" not in whole
    assert all(f"row {number}.{row}" in whole for number in range(40) for row in range(50))
    assert whole.count("⟦") == 40


def test_a_folder_names_what_no_reader_recognises_and_proposes_a_mapping_for_it(
    tmp_path, monkeypatch, inspect, capsys
):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "logs"
    folder.mkdir()
    rows(folder / "a.jsonl", "one")
    (folder / "b.txt").write_text("no log")
    dialog = [{"who": "human", "says": "What is new?"}, {"who": "bot", "says": "Nothing is."}]
    (folder / "c.jsonl").write_text(json.dumps({"chat": 1, "dialog": dialog}) + "\n")
    assert cli.main(["inspect", "logs"]) == 0
    assert "(no reader)  2\n    b.txt, c.jsonl\n" in capsys.readouterr().out
    found = inspect("logs", "--suggest-mapping")
    assert (found["source"], found["conversation"]["samples"]) == ("c.jsonl", 1)
    assert inspect("logs", "--mapping", "c.mapping.yaml")["source"] == "c.jsonl"


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("empty.jsonl", b"", "empty.jsonl: is empty"),
        ("prose.txt", b"words", "it is plain text, not JSON"),
        ("app.log", b'10:00:00, chat {"a": 1, "b": 2}\n' * 2, "each line has JSON after a prefix"),
        ("b.log", b'[10:00] INFO {"a": 1, "b": 2}\n' * 2, "each line has JSON after a prefix"),
        ("c.log", b'INFO: {"a": {}}', "each line has JSON after a prefix: strip it"),
        ("log.zip", None, "log.zip: no reader recognises it (zip): unpack it, and look at its"),
    ],
)
def test_what_a_mapping_cannot_describe_is_named(tmp_path, capsys, name, data, line):
    path = tmp_path / name
    if data is None:
        with ZipFile(path, "w") as archive:
            archive.writestr("a.jsonl", '{"x": 1}\n')
    else:
        path.write_bytes(data)
    assert cli.main(["inspect", str(path), "--suggest-mapping"]) == 2
    assert line in capsys.readouterr().err
