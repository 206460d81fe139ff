"""Rows of strangers with any fault: each command counts each of them, whatever is beside it.

The table says for each row what is wrong with it; nothing of it is taken from an output.
"""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from builder import UsageError, cli
from builder.audit.options import AuditOptions
from builder.audit.run import audit
from builder.verify.dataset import verify_dataset

USER = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": "yo"}
TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "r"}


def call(name="f", arguments="{}"):
    function = {"name": name, "arguments": arguments}
    calls = [{"id": "c1", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def row(*messages, **columns):
    return {"messages": list(messages), **columns}


def text(content, role="user"):
    return {"role": role, "content": content}


ROWS = {
    "a role that no format has": (row(text("hi", "narrator"), ANSWER), "order"),
    "roles of ShareGPT in messages": (row(text("hi", "human"), ANSWER), ""),
    "developer": (row(text("d", "developer"), USER, ANSWER), ""),
    "lone surrogate": (row(text("a\ud800b"), ANSWER), "format"),
    "lone surrogate in a role": (row(text("hi", "us\ud800er"), ANSWER), "format"),
    "no messages": (row(), "order"),
    "messages null": ({"messages": None}, "format"),
    "messages as JSON text": ({"messages": json.dumps([USER, ANSWER])}, ""),
    "messages as an object": ({"messages": {"role": "user"}}, "format"),
    "content is a list": (row(text([{"type": "text", "text": "hi"}]), ANSWER), "format"),
    "content is a number": (row(text(5), ANSWER), "format"),
    "no content": (row(USER, text(None, "assistant")), "format"),
    "a message is text": (row("hi", ANSWER), "format"),
    "a message is null": (row(None, ANSWER), "format"),
    "no role": (row({"content": "hi"}, ANSWER), "format"),
    "tool without a name": (
        row(USER, ANSWER, tools=[{"type": "function", "function": {}}]),
        "tools",
    ),
    "tools is a number": (row(USER, ANSWER, tools=5), "format"),
    "tools is no JSON": (row(USER, ANSWER, tools="nope"), "format"),
    "broken call": (row(USER, text("<tool_call>\n{bad}\n</tool_call>", "assistant")), "calls"),
    "broken arguments": (row(USER, call(arguments="{bad"), RESULT, ANSWER, tools=[TOOL]), "format"),
    "result of no call": (row(USER, ANSWER, RESULT, ANSWER), "format"),
    "undefined tool": (row(USER, call("g"), RESULT, ANSWER, tools=[TOOL]), "format"),
    "character nul": (row(text("a\0b"), ANSWER), ""),
    "bytes nul": (b'{"messages":\0\0}', "format"),
    "huge integer": (b'{"messages": [], "n": ' + b"9" * 5000 + b"}", "format"),
    "large integer": (row(USER, ANSWER, n=10**300), ""),
    "NaN": (b'{"messages": [], "n": NaN}', "format"),
    "too deep": (b'{"messages": ' + b"[" * 3000 + b"]" * 3000 + b"}", "format"),
    "invalid UTF-8": (b'{"messages": [{"role": "user", "content": "\xff"}]}', "format"),
    "cut off": (b'{"messages": [{"role": "user"', "format"),
    "plain text": ({"text": "hello world"}, "format"),
    "prompt and completion": ({"prompt": "2+2?", "completion": "4"}, "format"),
    "prompt and completion as messages": ({"prompt": [USER], "completion": [ANSWER]}, ""),
    "ShareGPT": (
        {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}]},
        "",
    ),
    "Alpaca": ({"instruction": "hi", "input": "", "output": "yo"}, ""),
    "blocks of Anthropic": (
        row(
            text([{"type": "text", "text": "hi"}]),
            text([{"type": "tool_use", "id": "t", "name": "f", "input": {}}], "assistant"),
            text([{"type": "tool_result", "tool_use_id": "t", "content": "r"}]),
            ANSWER,
            tools=[{"name": "f", "input_schema": {"type": "object"}}],
        ),
        "",
    ),
    "a JSON text": (b'"hi"', "format"),
    "a number": (b"5", "format"),
    "null": (b"null", "format"),
    "no columns": ({}, "format"),
    "empty turns": (row(text(""), text("", "assistant")), "order"),
    "two questions": (row(USER, USER, ANSWER), "order"),
    "no answer at the end": (row(USER, ANSWER, USER), "order"),
    "late system": (row(USER, ANSWER, text("s", "system"), USER, ANSWER), "order"),
    "control token": (row(text("<|im_end|>"), ANSWER), "tokens"),
    "nothing trained": (row(USER, {**ANSWER, "weight": 0}), "weight"),
    "half a weight": (row(USER, {**ANSWER, "weight": 0.5}), "format"),
}
"""{what is odd: (the row, the code of the finding; "" if it is a sample)}"""

ONLY_BESIDE = {
    "preference pair": ({"prompt": [USER], "chosen": [ANSWER], "rejected": [ANSWER]}, "format"),
    "token ids": ({"input_ids": [1, 2], "labels": [1, 2]}, "format"),
    "a list": ([USER, ANSWER], "format"),
    "unknown columns": ({"a": 1, "b": "x"}, "format"),
}
"""Rows that alone are no dataset: a file of nothing else is refused in one line."""

GOOD = {
    "flat": [row(text(f"hi {n}"), ANSWER) for n in range(3)],
    "structured": [row(text(f"hi {n}"), call(), RESULT, ANSWER, tools=[TOOL]) for n in range(3)],
}


def line(value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def written(path, values):
    path.write_bytes(b"".join(line(value) + b"\n" for value in values))
    return path


def findings(path, verifier):
    return [report.findings for report in verify_dataset(str(path), verifier, None)]


@pytest.fixture(scope="module")
def all_rows(tmp_path_factory):
    """Returns a file of all rows, between good ones, and how many it has and how many pass."""
    odd = [*ROWS.values(), *ONLY_BESIDE.values()]
    values = [*GOOD["structured"], *(value for value, _ in odd), *GOOD["flat"]]
    passing = 6 + sum(not code for _, code in odd)
    return written(tmp_path_factory.mktemp("odd") / "rows.jsonl", values), len(values), passing


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_judged_alone_as_beside_others(name, tmp_path, verifier):
    value, code = ROWS[name]
    (alone,) = findings(written(tmp_path / "alone.jsonl", [value]), verifier)
    assert (code in {finding.code for finding in alone}) if code else not alone
    for kind, good in GOOD.items():
        first, *rest = findings(written(tmp_path / f"{kind}.jsonl", [value, *good]), verifier)
        *before, last = findings(written(tmp_path / f"{kind}.jsonl", [*good, value]), verifier)
        assert first == last == alone
        assert rest == before == [()] * len(good)


@pytest.mark.parametrize("name", ONLY_BESIDE)
def test_rows_that_are_no_dataset_do_not_refuse_their_file(name, tmp_path, verifier):
    value, code = ONLY_BESIDE[name]
    with pytest.raises(UsageError):
        findings(written(tmp_path / "alone.jsonl", [value]), verifier)
    for kind, good in GOOD.items():
        first, *rest = findings(written(tmp_path / f"{kind}.jsonl", [value, *good]), verifier)
        assert [finding.code for finding in first] == [code]
        assert rest == [()] * len(good)


def test_verify_counts_every_row(all_rows, capsys):
    path, count, passing = all_rows
    assert cli.main(["verify", str(path), "--workers", "1"]) == 1
    assert f"{passing} of {count} samples verified" in capsys.readouterr().out


def test_the_audit_counts_every_row(all_rows):
    path, count, passing = all_rows
    audited = audit(str(path), AuditOptions())
    found = {finding.code: finding for finding in audited.findings}
    assert audited.rows == count
    assert audited.samples + found["bad_row"].count == count
    assert audited.samples - found["unverified"].samples == passing
    assert found["broken_call"].count == 1


def test_the_export_counts_every_row(all_rows, tmp_path, capsys):
    path, count, passing = all_rows
    out = tmp_path / "out"
    command = ["export", str(path), "--to", "messages", "-o", str(out), "--json"]
    assert cli.main(command) == 0
    exported = json.loads(capsys.readouterr().out)
    assert (exported["samples"], exported["rows"]) == (count, passing)
    assert sum(exported["left_out"].values()) == count - passing
    assert cli.main(["verify", str(out), "--workers", "1"]) == 0


def status(server, page):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", f"{urlsplit(server.url).path}{page}")
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def test_rows_of_a_csv_file_are_read(tmp_path, verifier):
    messages = json.dumps([USER, ANSWER]).replace('"', '""')
    path = tmp_path / "rows.csv"
    path.write_text(f'id,messages\n1,"{messages}"\n2,hi,3\n3,hi\n')
    codes = [[finding.code for finding in each] for each in findings(path, verifier)]
    assert codes == [[], ["format"], ["format"]]
    assert findings(tmp_path, verifier) == findings(path, verifier)
    path.write_text(f'messages\n"{messages}"\n')
    assert findings(path, verifier) == [()]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no rows\nat all\n", "it is plain text"),
        ('{"messages": []}\n'.encode("utf-16"), "text in UTF-16"),
        (b"time,level,words\n1,info,a\n2,info,b\n", "no known form of rows (time, level, words)"),
    ],
)
def test_text_that_is_no_dataset_is_one_line(data, reason, tmp_path, capsys):
    path = tmp_path / "app.log"
    path.write_bytes(data)
    for command in (["verify"], ["audit"], ["diff", str(path)]):
        assert cli.main([*command, str(path)]) == 2
        (error,) = capsys.readouterr().err.splitlines()
        assert reason in error


def test_folders_that_are_no_dataset_say_what_they_are(tmp_path, capsys):
    for name in ("data", "meta"):
        (tmp_path / "all" / "one" / name).mkdir(parents=True)
    (tmp_path / "all" / "one" / "manifest.json").write_text("{}")
    written(tmp_path / "all" / "one" / "meta" / "train.jsonl", [{"id": "1"}])
    for command in ("verify", "audit"):
        assert cli.main([command, str(tmp_path / "all")]) == 2
        assert "holds built folders (one): name one of them" in capsys.readouterr().err
    (tmp_path / "all" / "one" / "data").rmdir()
    assert cli.main(["audit", str(tmp_path / "all" / "one")]) == 2
    assert "without its data/" in capsys.readouterr().err


def test_a_command_that_keeps_nothing_does_not_promise_to_resume(all_rows, monkeypatch, capsys):
    path, *_ = all_rows
    monkeypatch.setattr("builder.cli.report.view_dataset", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main(["view", str(path)])
    monkeypatch.setattr("builder.cli.diff.diff_datasets", interrupted)
    assert ended.value.code == cli.main(["diff", str(path), str(path)]) == 130
    assert capsys.readouterr().err == "builder: interrupted\n"


def interrupted(*_, **__):
    raise KeyboardInterrupt
