"""A user's name that a path shows is replaced wherever it stands in the sample."""

import json
import re

import pytest

import builder
from builder.scrub.people import UserFinder, known_users
from builder.scrub.personal import personal_in
from builder.secrets.hits import apart


def marked(*texts, reserved=()):
    """Returns the texts with the names of users between < and >."""
    found = personal_in(texts)
    finder = UserFinder(known_users(texts, found), reserved)
    results = []
    for text, hits in zip(texts, found, strict=True):
        for hit in reversed(apart([*finder.hits(text), *hits])):
            name = text[hit.start : hit.end]
            text = f"{text[: hit.start]}<{name}>{text[hit.end :]}"  # noqa: PLW2901 - from the end on
        results.append(text)
    return results


@pytest.mark.parametrize(
    ("shown", "again"),
    [
        ("/home/<alice>/x", "drwxr-xr-x 2 <alice> staff 64 Jan 1 x"),
        ("/home/<alice>/x", "-rw-r--r--. 1 root <alice> 64 Jan 1 x"),
        ("/home/<alice>/x", "home/<alice>/x"),
        ("/Users/<alice>", "Users/<alice>"),
        ("/Users/<alice>", "chown <alice>:<alice> x"),
        ("/Users/<alice>", '{"a": "b\\n<alice>"}'),
        ("/Users/<alice>", "<alice>'s, <alice>-x, malice, alice_x, Alice"),
        ("/Users/<alice>", "branch%2F<alice>%2Ffix"),
        ('{"cwd": "/home/<alice>"}', "whoami\n<alice>"),
        ("file:///home/<alice>/x", "<alice>"),
        ("C:\\Users\\<alice>\\x", "<alice>"),
        ("scp x host:/home/<alice>/y", "<alice>"),
        ("<alice>@<box>:~$ ls", "<alice>"),
        # names that are words, or short
        ("/home/<will>/x", "will you? home/<will>/x"),
        ("/home/<will>/x", "drwxr-xr-x 2 <will> <will> 64 Jan 1 will"),
        ("/home/<max>/x", "max(1, 2)"),
        ("/home/<jo>/x", "jo Users/<jo>"),
        # paths that may not begin at the root, and everybody's names
        ("src/home/<widgets>/x", "the widgets"),
        ("@/home/<widgets>", "the widgets"),
        ("/home/ubuntu/x", "drwxr-xr-x 2 ubuntu ubuntu 64 Jan 1 home/ubuntu"),
        ("/home/runner/x", "runner root user"),
    ],
)
def test_a_name_is_found_again(shown, again):
    expected = [shown, again]
    assert marked(*(re.sub("[<>]", "", text) for text in expected)) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("drwxrwxr-x 2 cboos cboos 4096 Feb 1 .", ["cboos", "cboos"]),
        ("-rw-r--r--@ 1 soph  staff  345 x", ["soph"]),
        ("-rw-r--r-- 1 root wheel 3 x\n-rw-r--r-- 1 501 20 3 x", []),
        ("Author: Ann O'Neil <ann@acme.io>", ["Ann O'Neil"]),
        ("Author: soph <s@acme.io>", ["soph"]),
        ("send it to Ann de Wit <a@acme.io>", ["Ann de Wit"]),
        ("Author:     J. R. Roe Jr. <a@acme.io>", ["J. R. Roe Jr."]),
        ("author jane roe <a@acme.io> 1700000000 +0000", ["jane roe"]),
        (r"Fix\n\nSigned-off-by: Ann Lee <a@acme.io>", ["Ann Lee"]),
        ("Ask Ann Lee <a@acme.io>", ["Ann Lee"]),
        ("by Jane Roe. Contact Us <a@acme.io>", []),
        ("Written by Ann. Will <a@acme.io>", ["Will"]),
        *(
            (f"{words} <a@acme.io>", [])
            for words in (
                "Code Owners",
                "File Reader",
                "Email",
                "Reply To",
                "Returns: List",
                "x: string",
                "version: 1.2.3",
                "Co-authored-by: Copilot",
                "Author: Test User",
                "std.Vector",
                "From: Support Team",
                "Contact: Sales",
                "- Security Team",
            )
        ),
        ("x = map <a@acme.io>; From: <a@acme.io>; Claude <noreply@acme.io>", []),
    ],
)
def test_owners_of_files_and_names_beside_mail_addresses(text, names):
    (hits,) = personal_in([text])
    assert [text[hit.start : hit.end] for hit in hits if hit.kind == "user_name"] == names


def test_a_name_that_no_label_proves_is_replaced_beside_its_address_only():
    shown, again = "Kotlin Script <k@acme.io>", "I will use Kotlin Script, in Java"
    assert marked(shown, again) == ["<Kotlin Script> <<k@acme.io>>", again]


def test_a_sample_to_publish_does_not_have_the_name(tmp_path):
    """Neither where it is trained, nor where it is context; in calls, results and texts alike."""
    listing = "total 8\n-rw-r--r-- 1 alice alice 12 Jan  1 10:00 notes.txt"
    call = {"name": "shell", "arguments": json.dumps({"command": "ls -l; tar t home/alice"})}
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "shell", "parameters": schema}}
    messages = [
        {"role": "system", "content": "Your folder is /home/alice/work."},
        {"role": "user", "content": "I am alice. What is in home/alice?"},
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": "1", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "1", "content": listing},
        {"role": "assistant", "content": "One file of alice: notes.txt."},
    ]  # fmt: skip
    made = builder.build_dataset([{"messages": messages, "tools": [tool]}], tmp_path / "out",
                                 preset="publish")  # fmt: skip
    (row,) = made.samples
    written = json.dumps(row)
    assert "alice" not in written
    assert len({*re.findall(r"user\d{12}", written)}) == 1
    assert len(re.findall(r"user\d{12}", written)) == 7
    assert builder.verify_dataset(made).ok
    (path,) = (tmp_path / "out" / "meta").glob("*.jsonl")
    assert json.loads(path.read_text())["changes"]["pseudonymised"] == 7
