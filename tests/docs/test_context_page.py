"""The request and the samples that docs/context.md shows are what a build makes of them."""

import json
import re

import pytest
from support.places import ROOT
from support.runs.builds import build, lines

from builder import verify_dataset
from builder.codes import code_texts
from builder.conversation import MISSING
from builder.qwen3.tokenizer import target_for

PAGE = (ROOT / "docs" / "context.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<!-- (.+?) -->\n```(?:json|text)\n(.*?)```\n", PAGE, re.DOTALL))
SESSION = """
{"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "s1", "version": "2.0.42",
 "message": {"role": "user", "content": "How long is notes.txt?"}}
{"type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "s1", "version": "2.0.42",
 "message": {"role": "assistant", "id": "msg_01", "model": "claude-sonnet-4-5",
  "stop_reason": "tool_use",
  "content": [{"type": "tool_use", "id": "toolu_01", "name": "Bash",
               "input": {"command": "wc -l notes.txt"}}]}}
"""
EXCLUDED = """
{"messages": [
 {"role": "user", "content": "a?"}, {"role": "assistant", "content": "A."},
 {"role": "user", "content": "b?"}, {"role": "assistant", "content": "Wrong.", "weight": 0},
 {"role": "user", "content": "c?"}, {"role": "assistant", "content": "C."}]}
"""
ANSWER = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "stop_reason": "tool_use",
    "content": [
        {
            "type": "tool_use",
            "id": "toolu_01",
            "name": "Bash",
            "input": {"command": "wc -l notes.txt"},
        }
    ],
}


def values(text):
    """Yields the JSON values that stand one after the other in a block."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        value, end = decoder.raw_decode(text, at)
        yield value
        at = end + len(text[end:]) - len(text[end:].lstrip())


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def shown(text):
    """Returns a pattern for a rendering in which … stands for what is left out."""
    return ".*".join(re.escape(piece) for piece in text.rstrip("\n").split("…"))


def _without_reminder():
    """Returns the sample of the capture but for the reminder."""
    begin, _, end = BLOCKS["sample: capture"].partition("<system-reminder>")
    return begin + end.partition("</system-reminder>\n\n")[2]


@pytest.fixture
def logs(tmp_path):
    """Returns {name: arguments of a build} of the three logs."""
    request = json.loads(BLOCKS["request"])
    capture = written(tmp_path / "capture.jsonl", [{"request": request, "response": ANSWER}])
    session = written(tmp_path / "session.jsonl", values(SESSION.lstrip()))
    sent = {name: request[name] for name in ("system", "tools")}
    sent |= {"agent": "claude-code", "version": "2.0.42"}
    file = written(tmp_path / "claude-code.json", [sent])
    return {
        "capture": [capture],
        "session": [session],
        "supplied": [session, "--tools", file, "--system", file],
    }


LEVELS = re.findall(r'`(\{"level": "\w+".*?\})`', PAGE)


@pytest.mark.parametrize(
    ("name", "level", "source"),
    [("capture", 0, "logged"), ("session", 1, "inferred"), ("supplied", 1, "captured")],
)
def test_a_sample_is_what_the_page_shows(name, level, source, logs, tmp_path):
    log, *options = logs[name]
    assert build(tmp_path / "out", *options, inputs=[log]) == 0
    (row,) = lines(tmp_path / "out/data/train-00000-of-00001.jsonl")
    (meta,) = lines(tmp_path / "out/meta/train-00000-of-00001.jsonl")

    text = target_for("qwen3").render(row["messages"], row["tools"])
    page = {"capture": BLOCKS["sample: capture"], "supplied": _without_reminder()}
    if name in page:
        assert re.fullmatch(shown(page[name]), text.rstrip("\n"), re.DOTALL)
    assert meta["context"] == json.loads(LEVELS[level])
    assert meta["tools_source"] == source
    assert verify_dataset(tmp_path / "out").proven == 1


def test_untrained_turns_are_written_as_the_page_shows(tmp_path):
    log = written(tmp_path / "log.jsonl", values(EXCLUDED.lstrip()))
    assert build(tmp_path / "out", inputs=[log]) == 0
    (row,) = lines(tmp_path / "out/data/train-00000-of-00001.jsonl")
    assert row == json.loads(BLOCKS["row: context"])


def test_every_reason_for_a_partial_context_is_explained():
    table = PAGE.partition("| in `missing` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table.split("|---|---|")[1])) >= set(MISSING)


def test_every_code_of_an_untrained_turn_is_explained():
    table = PAGE.partition("| code | the turn |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", table)) - {"train"}
    assert named <= set(code_texts())
