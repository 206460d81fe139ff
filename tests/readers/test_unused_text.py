"""Text of raw logs that is in no conversation and no reject: the script, and the real logs."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"
sys.path.insert(0, str(ROOT / "scripts"))

from unused_text import measure  # noqa: E402 - a script

TEXT = "a sentence that is long enough to count"


def log(folder, *rows):
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, codes = measure(folder)
    return found, codes


def row(**message):
    user = {"role": "user", "content": f"{TEXT} of the user"}
    return {"messages": [user, {"role": "assistant", "content": f"{TEXT} of the model", **message}]}


def test_all_text_of_plain_rows_is_used(tmp_path):
    found, _ = log(tmp_path, row(), row())
    assert found.used == found.total > 0
    assert not found.left


def test_text_under_an_unread_key_is_left_with_its_path(tmp_path):
    """The script must see a loss, or it proves nothing."""
    answer = {
        "index": 0,
        "message": {"role": "assistant", "content": TEXT},
        "finish_reason": "stop",
    }
    pair = {
        "request": {"model": "m", "messages": [{"role": "user", "content": TEXT}]},
        "response": {"choices": [answer]},
        "note_of_nobody": [{"inner": json.dumps({"deep": f"{TEXT} lost"})}],
    }
    found, _ = log(tmp_path, pair, pair)
    assert dict(found.left) == {"note_of_nobody.inner.().deep": 2 * len(f"{TEXT} lost")}


def test_rejected_records_and_identifiers_are_counted_apart(tmp_path):
    bad = {"messages": [{"role": "user", "content": f"{TEXT} without an answer"}]}
    found, codes = log(tmp_path, row(id="0123456789abcdef0123456789abcdef"), bad)
    assert found.rejected == len(f"{TEXT} without an answer")
    assert found.identifiers == 32
    assert codes["reject no_response"] == 1
    assert not found.left


def test_a_result_block_with_its_result_under_another_key_is_marked(tmp_path):
    """Programs store results in blocks of the API's name but of their own shape."""
    from builder.api import read
    from builder.conversation import Unparsed
    from builder.sources.source import Source

    block = {"type": "tool_result", "toolUseID": "t1", "run": {"result": {"content": TEXT}}}
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [block]},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
    ]  # fmt: skip
    data = json.dumps({"messages": messages}).encode()
    (found,) = read(Source("log.json", data=data), "anthropic-messages")
    assert [
        part.code
        for message in found.messages
        for result in message.parts
        for part in getattr(result, "content", ())
        if isinstance(part, Unparsed)
    ] == ["unknown_part", "unknown_part"]


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the real logs are not here")
def test_no_more_text_of_the_real_logs_is_left_than_documented():
    table = (ROOT / "docs" / "formats" / "coverage.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in table.splitlines()]
    documented = {
        cells[0].strip(): float(cells[5])
        for cells in rows
        if len(cells) > 5 and re.fullmatch(r" \d+\.\d ", cells[5])
    }
    for folder in sorted(path for path in CORPUS.iterdir() if path.is_dir()):
        found, _ = measure(folder)
        share = 100 * sum(found.left.values()) / max(found.total, 1)
        assert share <= documented[folder.name] + 0.5, (folder.name, found.left.most_common(3))
