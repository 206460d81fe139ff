"""Secrets that only a command shows: results of commands that print one, and known files."""

from dataclasses import asdict
from pathlib import Path
from time import process_time

import pytest
from support.runs.builds import lines
from support.sensitive.planted import scrubber
from support.sensitive.rule_examples import expand

from builder.sample import Call, Dialogue, Turn
from builder.secrets.secrets import find_secrets

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
    assert secret not in repr(asdict(scrubbed))
    assert len(scrubbed.turns[1].calls[0].arguments[field]) > len(text) - len(secret)


@pytest.mark.parametrize(
    "session",
    [
        "Like this:\n\n$ openssl rand -base64 24\n«{B32}»\n$ # put it in .env\n",
        "$ cat > /etc/openvpn/auth.txt <<'EOF'\ndeploy\n«{p}»\nEOF\n$ chmod 600 a\n",
        "me@h:/srv# pwgen 24 1\n«{A24}»\nme@h:/srv# ls\n",
        "[me@h srv]$ cat secrets/db_password.txt\n«{p}»",
        "(venv) $ vault kv get -field=password kv/db\n«{p}»\n",
        "+ vault kv get -field=password kv/db\n«{p}»\n+ echo done",
        "PS C:\\> az keyvault secret show --name x --query value -o tsv\n«{A24}»\nPS C:\\> ",
        "\u276f gopass show db\n«{p}»\n\n\u276f ls",
    ],
)
def test_commands_in_a_pasted_session(session):
    text, (secret,) = expand(session)
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [secret]


@pytest.mark.parametrize(
    "session",
    [
        "$ cat token.txt\npermission denied\n$ ls",
        "$ cat token.txt\nforbidden\n",
        "$ ls\ncanyonriver\n$ cat token.txt\n",
        "$ cat token.txt\n\ncanyonriver\n",
        "# cat token.txt\nopen_file_2(name)\n",
        "50% cat token.txt\ncanyonriver\n",
        '<a id="b-12"></a> in > \\_password\\_\n<a id="removed-features-previously-2"></a>\n',
        "$ cat > auth.txt\n$ canyonriver\n",
    ],
)
def test_other_lines_of_a_session_stay(session):
    assert find_secrets(session) == ()


@pytest.mark.slow
def test_a_hostile_session_takes_linear_time():
    for piece in (
        "$ pwgen\n",
        "$ cat >a/auth.txt <<E\n",
        "$ cat a/auth.txt",
        "+ apg\nx1y2z3w4v5\n",
        "me@h:",
        "$ apg\n" + "a" * 400 + "\n",
    ):
        text = piece * (300_000 // len(piece))
        begun = process_time()
        find_secrets(text)
        assert process_time() - begun < 10  # under a second


def test_text_typed_into_a_password_field_is_redacted():
    typed = {"element": "Password field", "ref": "e31", "text": "Maple92!River"}
    scrubbed = scrubber().dialogue(called(typed, "ok")).dialogue
    assert "Maple92" not in repr(asdict(scrubbed))
    named = {"element": "Search", "ref": "e3", "text": "Maple92!River"}
    assert scrubber().dialogue(called(named, "ok")).dialogue == called(named, "ok")


@pytest.mark.slow
def test_a_hostile_call_takes_linear_time():
    for piece in ("cat secrets/a", "az a ", "token: x1y2 ", "a/b\\", '"value": "x1'):
        text = piece * (100_000 // len(piece))
        scrubber().dialogue(called({"command": text[:8000], "path": text[:400]}, text))
