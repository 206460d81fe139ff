"""Secrets: found by form, place and name; replaced consistently; in none of the files."""

import json
import runpy
import time
from dataclasses import asdict, replace
from itertools import pairwise

import pytest
from support.places import ROOT
from support.runs.builds import build, files, lines
from support.sensitive.planted import (
    AWS_SECRET,
    BEARER,
    GITHUB,
    NO_SECRETS,
    PASSWORD,
    PEM,
    SECRETS,
    every_byte,
    row,
    scrubber,
)

from builder.problem import Problem
from builder.sample import Call, Dialogue, Turn
from builder.scrub.redact import derive_key
from builder.secrets.secrets import find_secrets, named_secret
from builder.sources.source import Source


@pytest.mark.parametrize("case", SECRETS)
def test_found(case):
    text, secret = SECRETS[case]
    assert secret in [text[hit.start : hit.end] for hit in find_secrets(text)]


@pytest.mark.parametrize("text", NO_SECRETS)
def test_clean(text):
    assert find_secrets(text) == ()


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("password", PASSWORD, True),
        ("X-Api-Key", BEARER, True),
        ("awsSecretAccessKey", AWS_SECRET, True),
        ("password", "required", False),
        ("tokens", BEARER, True),
        ("bypass", BEARER, False),
        ("page_token", BEARER, False),
        ("primary_key", BEARER, False),
        ("password", "REDACTED_SECRET_123456789012", False),
    ],
)
def test_names_of_members(name, value, is_secret):
    assert named_secret(name, value) is is_secret


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["cookie ", "zai", "discord", "pass:=", "/pass:", "vault s."])
def test_literals_side_by_side_are_searched_in_linear_time(piece):
    started = time.process_time()
    find_secrets(piece * (50_000 // len(piece)))
    assert time.process_time() - started < 3  # it was up to 9 s


def test_hits_in_hostile_text_do_not_overlap():
    hostile = (
        "://a:" * 9,
        "eyJa-",
        "sk-" * 9,
        "machine x ",
        "password=",
        "-----BEGIN PRIV" + "ATE KEY-----",
    )
    for piece in hostile:
        text = piece * (40_000 // len(piece))
        hits = find_secrets(text)
        assert all(one.end <= two.start for one, two in pairwise(hits)), piece
        assert not hits or 0 <= hits[0].start < hits[-1].end <= len(text)


def dialogue(text):
    call = Call.of("login", {"password": PASSWORD, "note": "a < b </tool_call>"})
    turns = (
        Turn("system", f"token: {GITHUB}"),
        Turn("user", text),
        Turn("assistant", "", f"it is {PASSWORD}", (call,)),
        Turn("tool", responses=(f"{PASSWORD} accepted, {GITHUB}x is not {GITHUB}",)),
        Turn("assistant", "done"),
    )
    tool = {"type": "function", "function": {"name": "login", "description": f"e.g. {GITHUB}"}}
    return Dialogue(turns, (tool,))


def test_one_secret_has_one_placeholder_in_every_field():
    scrubbed = scrubber().dialogue(dialogue("hello"))
    reported = repr(asdict(scrubbed.dialogue))
    assert PASSWORD not in reported
    assert reported.count(GITHUB) == 0
    stand_in = scrubbed.dialogue.turns[2].calls[0].arguments["password"]
    assert stand_in.startswith("REDACTED_SECRET_")
    assert scrubbed.dialogue.turns[2].reasoning == f"it is {stand_in}"
    assert scrubbed.dialogue.turns[3].responses[0].startswith(f"{stand_in} accepted")
    assert scrubbed.changes == {"secret_redacted": 7}
    call = scrubbed.dialogue.turns[2].calls[0]
    assert json.loads(call.text) == call.arguments
    assert "</tool_call>" not in call.text


def test_the_placeholder_depends_only_on_the_key_and_the_secret():
    first = scrubber().text(f"password={PASSWORD}")
    assert first.removeprefix("password=") in scrubber().text(f"https://me:{PASSWORD}@h/")
    assert scrubber(key=b"other" * 6).text(f"password={PASSWORD}") != first
    assert find_secrets(first) == ()


def test_a_private_key_is_the_same_in_both_spellings():
    one = scrubber().text(PEM)
    assert one == scrubber().text(PEM.replace("\n", "\\n"))
    assert one.startswith("REDACTED_PRIVATE_KEY_")


def test_names_of_surrounding_members_mark_a_secret():
    call = Call.of("deploy", {"env": [{"name": "DB_PASSWORD", "value": PASSWORD}]})
    schema = {"type": "object", "properties": {"api_key": {"type": "string", "default": BEARER}}}
    tool = {"type": "function", "function": {"name": "deploy", "parameters": schema}}
    turns = (Turn("user", "go"), Turn("assistant", calls=(call,)))
    scrubbed = scrubber().dialogue(Dialogue(turns, (tool,)))
    assert PASSWORD not in repr(asdict(scrubbed.dialogue))
    assert BEARER not in repr(asdict(scrubbed.dialogue))


def test_a_word_that_is_a_password_is_replaced_only_where_it_is_one():
    turns = (
        Turn("user", "db: postgres://app:sunflower@db/x and a sunflower"),
        Turn("assistant", "ok"),
    )
    message = scrubber().dialogue(Dialogue(turns)).dialogue.turns[0].content
    assert "app:sunflower" not in message
    assert message.endswith("and a sunflower")


def test_keys_that_become_equal_reject():
    spelled = PEM.replace("\n", "\\n")
    call = Call.of("f", {PEM: 1, spelled: 2})
    turns = (Turn("user", "go"), Turn("assistant", calls=(call,)))
    assert scrubber().dialogue(Dialogue(turns)).problem.code == "secret"


def generated(tool, preceding=""):
    call = Call.of(tool, {"length": 12})
    return Dialogue((
        Turn("user", f"I need a new password. {preceding}"),
        Turn("assistant", calls=(call,)),
        Turn("tool", responses=(json.dumps({"password": PASSWORD}),)),
        Turn("assistant", f"Your new password: {PASSWORD}"),
    ))  # fmt: skip


@pytest.mark.parametrize("tool", ["generate_password", "random_password", "PasswordGenerator"])
def test_a_password_that_a_tool_generates_stays(tool):
    made_up = generated(tool)
    scrubbed = scrubber().dialogue(made_up)
    assert scrubbed.dialogue == made_up
    assert scrubbed.changes == {}


def test_a_password_of_another_tool_or_known_before_is_replaced():
    for dialogue_ in (
        generated("read_file"),
        generated("generate_password", f"Not password={PASSWORD} as before"),
    ):
        assert PASSWORD not in repr(asdict(scrubber().dialogue(dialogue_).dialogue))
    token = generated("generate_password")
    answer = replace(token.turns[2], responses=(f"password: {GITHUB}",))
    token = replace(token, turns=(*token.turns[:2], answer, Turn("assistant", GITHUB)))
    assert GITHUB not in repr(asdict(scrubber().dialogue(token).dialogue))


IDS = (
    "result for call toolu_01AbCdEfGh2345678JkLmN that nothing asked for",
    "the agent's requests were not logged ([0] span 9f86d081884c7d65)",
    "calls call_Qx7Zp2Lm9Kd3Rt5Vb8Nc, call_Aa1Bb2Cc3Dd4Ee5Ff6Gg have no answer",
    "session 0199a213-81c0-7800-8aa1-bbab2a035a53 of rollout-2026-05-01T10-00-00-0199a213.jsonl",
    "another entry is called msg_01XkDzLp9QvTr4Bn2Wm",
    "parent 7c1f0e2d9ab34c55 is missing",
)


@pytest.mark.parametrize("detail", IDS)
def test_ids_of_calls_and_records_stay_in_rejects(detail):
    problem = Problem("x", "line 1", detail)
    assert scrubber().problem(problem).detail == detail


def test_parts_of_secrets_are_masked_in_rejects():
    for detail in (
        f"a name cut off: {GITHUB[:20]}",
        f"call {GITHUB[:20]}",
        f"calls: get_{GITHUB[:36]}",
        f"'{BEARER[3:30]}",
    ):
        masked = scrubber().problem(Problem("x", "line 1", detail)).detail
        assert "REDACTED_" in masked
        assert not any(secret[8:20] in masked for secret in (GITHUB, BEARER))


def test_clean_text_is_left_alone():
    clean = Dialogue((Turn("user", "hi"), Turn("assistant", "hello")))
    assert scrubber().dialogue(clean).dialogue is clean


def test_reject_names_kinds_and_no_secret():
    problem = scrubber("reject").dialogue(dialogue("x")).problem
    assert problem.code == "secret"
    assert "github_token" in problem.detail
    assert GITHUB not in problem.detail


def test_the_key_depends_only_on_the_logs():
    one, other = Source("a", data=b"one"), Source("b", data=b"other")
    assert derive_key([one]) == derive_key([Source("elsewhere", data=b"one")])
    assert len({derive_key(items) for items in ([one], [other], [one, other], [other, one])}) == 4


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text(row(f"my key is {GITHUB}") + row("nothing here"))
    (folder / "b.jsonl").write_text(row("clean"))
    function = {"name": f'a" {GITHUB}', "arguments": "{}"}
    unfit = [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "y"},
        {"role": "assistant", "content": "z"},
    ]
    (folder / "c.jsonl").write_text(json.dumps({"messages": unfit}) + "\n" + row("c"))
    return folder


def test_no_file_of_a_build_holds_the_secret(logs, tmp_path):
    out = tmp_path / "out"
    assert build(out, inputs=[logs]) == 0
    assert GITHUB.encode() not in every_byte(out)
    (sample,) = [
        line
        for line in lines(out / "data" / "train-00000-of-00001.jsonl")
        if "REDACTED" in str(line)
    ]
    assert sample["messages"][0]["content"].startswith("my key is REDACTED_GITHUB_TOKEN_")
    changes = [line["changes"] for line in lines(out / "meta" / "train-00000-of-00001.jsonl")]
    assert changes.count({"secret_redacted": 1}) == 1
    (reject,) = lines(out / "rejects.jsonl")
    assert "REDACTED_" in reject["message"]
    assert GITHUB[:12] not in reject["message"]


def test_a_new_input_changes_only_the_key_and_its_placeholders(logs, tmp_path):
    out, again = tmp_path / "out", tmp_path / "rebuilt"
    assert build(out, inputs=[logs]) == 0
    before = files(out)
    (logs / "d.jsonl").write_text(row("new"))
    assert build(out, inputs=[logs]) == 0
    assert build(again, inputs=[logs]) == 0
    assert files(out) == files(again) != before


@pytest.mark.parametrize(
    ("mode", "samples", "kept"), [("reject", 3, False), ("report", 4, True), ("off", 4, True)]
)
def test_modes(logs, tmp_path, mode, samples, kept):
    config = tmp_path / "c.yaml"
    config.write_text(f"audit: {{secrets: {mode}}}\n")
    out = tmp_path / "out"
    assert build(out, "-c", config, inputs=[logs]) == 0
    data = (out / "data" / "train-00000-of-00001.jsonl").read_bytes()
    assert data.count(b"\n") == samples
    assert (GITHUB.encode() in data) is kept
    assert (GITHUB[:20].encode() in (out / "rejects.jsonl").read_bytes()) is (mode == "off")


def test_recall_on_the_invented_set(capsys, monkeypatch):
    path = ROOT / "scripts" / "audit_recall.py"
    monkeypatch.setattr("sys.argv", ["audit_recall.py", "--misses"])
    runpy.run_path(str(path), run_name="__main__")
    out = capsys.readouterr().out
    assert "432 secrets of 72 kinds: recall 1.000" in out
    assert "162 hard negatives: 0 false positives" in out
