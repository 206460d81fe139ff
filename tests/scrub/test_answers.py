"""Secrets that only the call shows: results of commands that print one, and known files."""

# ruff: noqa: E501 - a table
import pytest
from planted import scrubber
from secret_examples import expand

from builder.sample import Call, Dialogue, Turn

ASKED = [
    ({"command": "gcloud secrets versions access latest --secret=a"}, "«{A32}»\n"),
    ({"command": "cat config/master.key"}, "«{h32}»"),
    ({"command": ["bash", "-lc", "sudo cat /etc/ppp/chap-secrets"]}, "# client server\nme l2tpd «{p}» *\n"),
    ({"command": "pass show mail/me"}, "«sunflower»\n"),
    ({"command": "vault kv get secret/app"}, "===== Data =====\nKey         Value\n---         -----\npassword    «{p}»\n"),
    ({"command": "az storage account keys list -n a"}, '[\n  {\n    "keyName": "key1",\n    "value": "«{B86}==»"\n  }\n]'),
    ({"file_path": "/etc/openvpn/auth-user-pass.txt"}, "     1\tme\n     2\t«{p}»\n"),
    ({"path": "/etc/pgbouncer/userlist.txt"}, '"app" "«{A15}»"\n'),
    ({"command": "openssl rand -base64 32"}, "Exit code: 0\nOutput:\n«{B43}=»\n"),
]  # fmt: skip
HARMLESS = [
    ({"command": "cat src/tokens.py"}, "TOKENS = 12\n"),
    ({"command": "git log --oneline secrets/"}, "3f78685 rotate the key of step2_of3\n"),
    ({"query": "token"}, "getCheckpointsForSession2024\n"),
    ({"command": "cat /etc/passwd"}, "root:x:0:0:root:/root:/bin/bash\n"),
    ({"command": "vault kv get secret/none"}, "No value found at secret/data/none\n"),
    ({"command": "cat secrets/README"}, "Put the values of ops2 here, see https://h.example/a1b2.\n"),
    ({"command": "terraform output instance_id"}, "i-0abc123def4567890\n"),
    ({"command": "kubectl get secrets"}, "NAME  TYPE  DATA\ndefault-token-x7k2p  Opaque  2\n"),
    ({"command": "vault read database/creds/app"}, "lease_id  database/creds/app/2f6a614cA9xQ7z\n"),
    ({"command": "cat config/master.key"}, "cat: config/master.key: No such file or directory\n"),
    ({"command": "aws secretsmanager get-secret-value --secret-id a"}, '{"ARN": "arn:aws:x:1", "VersionId": "0bc01e21-03c9-4b98-9433-6229cbf1ef1c"}'),
]  # fmt: skip


def called(arguments, answer):
    turns = (
        Turn("user", "go"),
        Turn("assistant", calls=(Call.of("run", arguments),)),
        Turn("tool", responses=(answer,)),
        Turn("assistant", "done"),
    )
    return Dialogue(turns)


@pytest.mark.parametrize(("arguments", "template"), ASKED)
def test_the_call_shows_what_its_result_is(arguments, template):
    text, (secret,) = expand(template)
    scrubbed = scrubber().dialogue(called(arguments, text)).dialogue
    (answer,) = scrubbed.turns[2].responses
    assert secret not in answer
    before, _, after = text.partition(secret)
    assert answer.startswith(before)
    assert answer.endswith(after)


@pytest.mark.parametrize(("arguments", "answer"), HARMLESS)
def test_other_results_stay(arguments, answer):
    dialogue = called(arguments, answer)
    assert scrubber().dialogue(dialogue).dialogue == dialogue


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


def test_what_a_browser_types_into_a_password_field():
    typed = {"element": "Password field", "ref": "e31", "text": "Maple92!River"}
    scrubbed = scrubber().dialogue(called(typed, "ok")).dialogue
    assert "Maple92" not in repr(scrubbed)
    named = {"element": "Search", "ref": "e3", "text": "Maple92!River"}
    assert scrubber().dialogue(called(named, "ok")).dialogue == called(named, "ok")


def test_a_hostile_call_takes_linear_time():
    for piece in ("cat secrets/a", "az a ", "token: x1y2 ", "a/b\\", '"value": "x1'):
        text = piece * (100_000 // len(piece))
        scrubber().dialogue(called({"command": text[:8000], "path": text[:400]}, text))
