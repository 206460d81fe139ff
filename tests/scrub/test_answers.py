"""Secrets that only the call shows: results of commands that print one, and known files."""

from pathlib import Path

import pytest
from builds import lines
from planted import scrubber
from secret_examples import expand

from builder.sample import Call, Dialogue, Turn

ANSWERS = lines(Path(__file__).parent / "answers.jsonl")
"""Calls and their results; `«` and `»` enclose the secrets in a result, which may have none."""


def called(arguments, answer):
    turns = (
        Turn("user", "go"),
        Turn("assistant", calls=(Call.of("run", arguments),)),
        Turn("tool", responses=(answer,)),
        Turn("assistant", "done"),
    )
    return Dialogue(turns)


@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: " ".join(map(str, row["call"].values())))
def test_a_result_is_scrubbed_if_its_call_prints_a_secret(row):
    answer, secrets = expand(row["answer"])
    scrubbed = scrubber().dialogue(called(row["call"], answer)).dialogue
    (found,) = scrubbed.turns[2].responses
    if not secrets:
        assert scrubbed == called(row["call"], answer)
        return
    (secret,) = secrets
    assert secret not in found
    before, _, after = answer.partition(secret)
    assert found.startswith(before)
    assert found.endswith(after)


@pytest.mark.parametrize(
    "arguments",
    [
        {
            "file_path": "/etc/davfs2/secrets",
            "content": "# hosts\nhttps://h.example/dav me «{p}»\n",
        },
        {"command": "sudo tee /etc/ppp/chap-secrets <<EOF\nme l2tpd «{p}» *\nEOF"},
        {"input": "*** Begin Patch\n*** Add File: secrets/db_password.txt\n+«{p}»\n*** End Patch"},
    ],
)
def test_files_that_are_written(arguments):
    (field,) = [name for name, value in arguments.items() if "«" in value]
    text, (secret,) = expand(arguments[field])
    scrubbed = scrubber().dialogue(called({**arguments, field: text}, "ok")).dialogue
    assert secret not in repr(scrubbed)
    assert len(scrubbed.turns[1].calls[0].arguments[field]) > len(text) - len(secret)


def test_text_typed_into_a_password_field_is_redacted():
    typed = {"element": "Password field", "ref": "e31", "text": "Maple92!River"}
    scrubbed = scrubber().dialogue(called(typed, "ok")).dialogue
    assert "Maple92" not in repr(scrubbed)
    named = {"element": "Search", "ref": "e3", "text": "Maple92!River"}
    assert scrubber().dialogue(called(named, "ok")).dialogue == called(named, "ok")


def test_a_hostile_call_takes_linear_time():
    for piece in ("cat secrets/a", "az a ", "token: x1y2 ", "a/b\\", '"value": "x1'):
        text = piece * (100_000 // len(piece))
        scrubber().dialogue(called({"command": text[:8000], "path": text[:400]}, text))
