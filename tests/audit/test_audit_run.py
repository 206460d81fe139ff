"""The audit of a dataset: planted faults are found in their places, clean data pass the gates."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.conversations.strategies import json_values
from support.conversations.words import words
from support.runs.builds import build
from support.sensitive.planted import GITHUB, PASSWORD, row

from builder import UsageError, cli
from builder.audit.options import AuditOptions
from builder.audit.result import Audit
from builder.audit.run import CODES, Audits, audit
from builder.dataset.rows import dataset_rows
from builder.parallel import pool
from builder.paths import UserPath
from builder.trainers.table import DEFAULT_LENGTHS

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
        },
    },
}


def sample(*turns, tools=()):
    roles = [role for role, _ in turns]
    assert roles[-1] == "assistant"
    messages = [{"role": role, "content": content} for role, content in turns]
    return {"messages": messages, "tools": list(tools)}


def call(name="look", **arguments):
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


def response(text):
    return f"<tool_response>\n{text}\n</tool_response>"


CLEAN = [sample(("user", words(n)), ("assistant", words(-n))) for n in range(1, 6)]
CLEAN.append(
    sample(
        ("user", "Look at a and b."),
        ("assistant", call(path="a", depth=1)),
        ("user", response("nothing")),
        ("assistant", "There is nothing in it."),
        tools=[TOOL],
    )
)


def write(path, rows):
    path.write_text("".join(json.dumps(item) + "\n" for item in rows))
    return path


def run(path, **options) -> Audit:
    return audit(str(path), AuditOptions(**options))


def found(audited):
    return {finding.code: finding for finding in audited.findings}


def table(audited, key):
    return next(item for item in audited.tables if item.key == key)


def test_clean_data_have_no_findings_and_exit_0(tmp_path, capsys):
    path = write(tmp_path / "d.jsonl", CLEAN)
    assert run(path).findings == ()
    gates = [name for name in CODES if name != "contamination"]  # needs an evaluation set
    assert cli.main(["audit", str(path), "--fail-on", ",".join(gates)]) == 0
    out = capsys.readouterr().out
    assert "6 samples" in out
    assert f"nothing found: {', '.join(gates).replace('_', ' ')}" in out.splitlines()


def test_picks_name_rows_of_the_file_despite_bad_lines_between_them(tmp_path):
    long = sample(("user", words(9)), ("assistant", words(10) * 20))
    path = write(tmp_path / "d.jsonl", [{"text": "none"}, CLEAN[0], {"text": "none"}, long])
    rows = {pick.reason: pick.row for pick in run(path).picks}
    assert rows["longest"] == 3
    assert rows["direct_answer"] == 1


def test_a_missing_evaluation_set_is_reported_before_any_work(tmp_path, capsys):
    write(tmp_path / "rows.jsonl", CLEAN)
    config = tmp_path / "c.yaml"
    config.write_text("inputs: [{path: rows.jsonl}]\naudit: {contamination: [./none.json]}\n")
    assert cli.main(["build", "-c", str(config), "-o", str(tmp_path / "out")]) == 2
    assert "none.json" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


PLANTED = {
    "secret": sample(("user", f"password: {PASSWORD}"), ("assistant", "ok")),
    "github_token": sample(("user", f"it is {GITHUB}"), ("assistant", "ok")),
    "mail": sample(("user", "ada@mail.acme.io"), ("assistant", "ok")),
    "refusal": sample(("user", "x"), ("assistant", "I'm sorry, but I can't help with that.")),
    "repeated_turn": sample(
        ("user", "x"), ("assistant", words(7)), ("user", "y"), ("assistant", words(7))
    ),
    "truncated_response": sample(
        ("user", "x"),
        ("assistant", call(path="a", depth=1)),
        ("user", response("much [output truncated]")),
        ("assistant", "ok"),
        tools=[TOOL],
    ),
    "error_result": sample(
        ("user", "y"),
        ("assistant", call(path="a", depth=1)),
        ("user", response("Error: no such file")),
        ("assistant", "ok"),
        tools=[TOOL],
    ),
    "schema_violation": sample(
        ("user", "z"),
        ("assistant", call(path=1, depth=1)),
        ("user", response("ok")),
        ("assistant", "ok"),
        tools=[TOOL],
    ),
    "tool_not_defined": sample(
        ("user", "w"),
        ("assistant", call("other")),
        ("user", response("ok")),
        ("assistant", "ok"),
        tools=[TOOL],
    ),
    "unread": sample(("user", "v"), ("assistant", "<tool_call>\nno JSON\n</tool_call>")),
    "bad_row": {"messages": "no list"},
    "redacted": sample(("user", "it is REDACTED_SECRET_123456789012"), ("assistant", "ok")),
    "exact_duplicate": CLEAN[0],
}


@pytest.mark.parametrize("code", PLANTED)
def test_planted(tmp_path, code, capsys):
    path = write(tmp_path / "d.jsonl", [*CLEAN, PLANTED[code]])
    finding = found(run(path))[code]
    assert finding.count == 1
    assert finding.examples[0].where == "d.jsonl:7"
    assert code in CODES[finding.audit]
    gate = "secrets.secret" if code == "secret" else code
    assert cli.main(["audit", str(path), "--fail-on", gate, "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["failed"] == [code]
    assert code in printed.err
    for secret in (PASSWORD, GITHUB, "ada@mail"):
        assert secret not in printed.out


def test_gates_and_mistakes(tmp_path, capsys):
    path = write(tmp_path / "d.jsonl", [*CLEAN, PLANTED["redacted"]])
    assert cli.main(["audit", str(path), "--fail-on", "secrets", "--quiet"]) == 0
    assert cli.main(["audit", str(path), "--fail-on", "secretz"]) == 2
    assert "no such audit or code, did you mean" in capsys.readouterr().err
    assert cli.main(["audit", str(tmp_path / "none.jsonl")]) == 2
    assert cli.main(["audit", str(write(tmp_path / "e.jsonl", [])), "--quiet"]) == 1
    (tmp_path / "d.parquet").write_bytes(b"PAR1 and no more")
    assert cli.main(["audit", str(tmp_path / "d.parquet")]) == 2
    assert "'d.parquet': cannot be read" in capsys.readouterr().err


def test_a_name_in_arguments_marks_a_secret(tmp_path):
    rows = [
        sample(
            ("user", "log in"),
            ("assistant", call(path="x", password=PASSWORD)),
            ("user", response("ok")),
            ("assistant", "ok"),
        )
    ]
    finding = found(run(write(tmp_path / "d.jsonl", rows)))["secret"]
    assert finding.examples[0].part == "messages[1].calls[0].arguments"


def test_near_and_prefix_duplicates_and_the_sample_that_is_kept(tmp_path):
    text = words(99, 100).split()
    changed = [*text[:50], "changed", *text[51:]]
    begin = [("user", words(50)), ("assistant", words(51))]
    rows = [
        *CLEAN,
        sample(("user", " ".join(text)), ("assistant", "ok")),
        sample(("user", " ".join([*changed, "more"])), ("assistant", "ok")),
        sample(*begin),
        sample(*begin, ("user", words(52, 200)), ("assistant", "ok")),
    ]
    audited = run(write(tmp_path / "d.jsonl", rows))
    near = found(audited)["near_duplicate"]
    assert (near.count, near.examples[0].where, near.examples[0].detail) == (
        1,
        "d.jsonl:7",
        "of d.jsonl:8",
    )
    prefix = found(audited)["prefix_of_another"]
    assert (prefix.examples[0].where, prefix.examples[0].detail) == ("d.jsonl:9", "of d.jsonl:10")
    assert [pick.row for pick in audited.picks if pick.reason == "near_duplicate"] == [7, 6]


def test_duplicates_across_splits(tmp_path):
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "train-00000-of-00001.jsonl", CLEAN)
    write(tmp_path / "data" / "validation-00000-of-00001.jsonl", CLEAN[:1])
    finding = found(run(tmp_path))["duplicate_across_splits"]
    assert finding.examples[0].where == "data/validation-00000-of-00001.jsonl:1"
    assert table(run(tmp_path), "duplicates").rows[0] == ("exact_duplicate", 1, 0, 1)


def test_contamination(tmp_path):
    held = [{"question": words(1000 + n, 20), "answer": "short"} for n in range(10)]
    inside = words(1004, 20).split()
    rows = [
        *CLEAN,
        sample(("user", f"please: {held[3]['question'].upper()}!"), ("assistant", "ok")),
        sample(("user", " ".join(inside[:17])), ("assistant", "ok")),
        sample(("user", " ".join(inside[:9])), ("assistant", "ok")),
    ]
    for name in ("eval.jsonl", "eval.json"):
        held_out = tmp_path / name
        if name.endswith("l"):
            write(held_out, held)
        else:
            held_out.write_text(json.dumps(held))
        audited = run(write(tmp_path / "d.jsonl", rows), contamination=(UserPath(str(held_out)),))
        finding = found(audited)["contaminated"]
        assert [example.where for example in finding.examples] == ["d.jsonl:7", "d.jsonl:8"]
        assert [line[2] for line in table(audited, "contaminated").rows] == [4, 5]


def test_contamination_of_nothing_is_a_mistake(tmp_path, capsys):
    path = write(tmp_path / "d.jsonl", CLEAN)
    short = write(tmp_path / "e.jsonl", [{"a": "b"}])
    assert cli.main(["audit", str(path), "--contamination", str(short)]) == 2
    assert cli.main(["audit", str(path), "--contamination", str(tmp_path / "none.txt")]) == 2
    assert "no text of 8 or more words" in capsys.readouterr().err


def test_lengths_and_trainers(tmp_path):
    rows = [*CLEAN, sample(("user", words(5, 3000)), ("assistant", "ok"))]
    audited = run(write(tmp_path / "d.jsonl", rows))
    assert [line[2] for line in table(audited, "trainers").rows] == [1] * len(DEFAULT_LENGTHS)
    lengths = {line[0]: line[1] for line in table(audited, "lengths").rows}
    assert lengths["user"] > lengths["answers"] > lengths["calls"] > 0
    assert lengths["tools"] > 0
    histogram = audited.histograms[0]
    assert len(histogram.edges) == len(histogram.counts) + 1
    assert sum(histogram.counts) == audited.samples == 7
    assert {pick.reason: pick.row for pick in audited.picks}["longest"] == 6


def test_the_tables_of_a_built_folder(tmp_path):
    answers = [
        turn
        for at, model in enumerate("ab")
        for turn in (
            {"role": "user", "content": f"Question {at}?"},
            {"role": "assistant", "content": f"Answer {at}.", "model": model},
        )
    ]
    looked = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    called = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "tool_calls": [looked]},
        {"role": "tool", "tool_call_id": "c", "content": "seen"},
        {"role": "assistant", "content": "I saw it."},
    ]
    log = write(tmp_path / "a.jsonl", [{"messages": answers}, {"messages": called}])
    assert build(tmp_path / "out", inputs=[log]) == 0
    audited = run(tmp_path / "out")
    models = table(audited, "models")
    assert [line[:2] for line in models.rows] == [("(not stated)", 1), ("a", 1), ("b", 1)]
    assert models.note == "a sample of several models counts for each of them"
    assert table(audited, "patterns").rows[0][:2] == ("direct_answer", 1)
    assert table(audited, "parity").rows[0][1:3] == (4, 4)
    tools = table(audited, "tools")
    assert dict(zip(tools.columns, tools.rows[0], strict=True))["of these, inferred"] == 1
    assert audited.inferred == {"look": 1}


messages = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system", "tool"]),
            "content": st.text(max_size=30) | st.sampled_from([call(path="a"), response("x")]),
        }
    ),
    max_size=4,
)
tools = st.lists(json_values | st.fixed_dictionaries({"function": json_values}), max_size=2)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        json_values | st.fixed_dictionaries({"messages": messages, "tools": tools}), max_size=4
    )
)
def test_any_rows_are_audited(tmp_path_factory, rows):
    path = write(tmp_path_factory.mktemp("any") / "d.jsonl", rows)
    try:
        audited = run(path)
    except UsageError:  # objects of no known form: one line instead of a finding for each
        assert any(isinstance(row, dict) and row for row in rows)
        assert not any(isinstance(row, dict) and "messages" in row for row in rows)
        return
    bad = sum(item.count for item in audited.findings if item.code == "bad_row")
    assert audited.samples + bad == len(rows)
    json.dumps(audited.as_json())


@pytest.mark.parametrize(("together", "workers"), [(1, 1), (3, 1), (3, 3)])
def test_the_size_of_batches_does_not_matter(tmp_path, monkeypatch, pooled, together, workers):
    (tmp_path / "data").mkdir()
    rows = [*PLANTED.values(), {"text": "none"}, *CLEAN, *PLANTED.values(), {"messages": 3}]
    write(tmp_path / "data" / "train.jsonl", rows)
    write(tmp_path / "data" / "validation.jsonl", [*CLEAN, {"text": "none"}, rows[1]])
    write(tmp_path / "sets.jsonl", [{"question": words(3)}])
    options = {"contamination": (UserPath(str(tmp_path / "sets.jsonl")),)}
    audits = Audits(AuditOptions(**options))  # row by row, nothing merged
    for item in dataset_rows(str(tmp_path / "data")):
        audits.add(item)
    whole = audits.result()
    assert len(whole.findings) > 5
    monkeypatch.setattr(pool, "BATCH_ROWS", together)
    found = audit(str(tmp_path / "data"), AuditOptions(**options), workers=workers)
    assert ("_audited" in pooled) == (workers > 1)
    assert found.as_json() == whole.as_json()
    assert found.picks == whole.picks


def test_texts_without_secrets_are_not_searched_again(tmp_path):
    path = write(tmp_path / "d.jsonl", [PLANTED["secret"], PLANTED["mail"], PLANTED["secret"]])
    assert found(run(path))["secret"].samples == 2
    known = audit(str(path), AuditOptions(), without_secrets={"train": b"\1\1"})
    assert found(known)["secret"].samples == 1
    assert found(known)["mail"] == found(run(path))["mail"]


@pytest.mark.quick(1)
@pytest.mark.parametrize("options", ["", "normalize: {unit: turn}", "audit: {secrets: report}"])
def test_a_build_finds_what_an_audit_of_its_folder_finds(tmp_path, options):
    """Only conversations in which redaction found nothing are not searched again."""
    call = {"id": "c", "function": {"name": "generate_password", "arguments": "{}"}}
    made_up = [
        {"role": "user", "content": "I need a password."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps({"password": PASSWORD})},
        {"role": "assistant", "content": f"Your password: {PASSWORD}"},
    ]
    texts = ["Nothing here.", f"It is {GITHUB}."]
    texts += [f"Write to {words(number)}, or to ada@mail.acme.io." for number in range(20)]
    lines = [row(text) for text in texts] + [json.dumps({"messages": made_up})]
    (tmp_path / "logs.jsonl").write_text("".join(lines))
    config = tmp_path / "c.yaml"
    config.write_text(f"split: {{validation: 0.3, test: 0.2, seed: 1}}\n{options}\n")
    out = tmp_path / "out"
    assert build(out, "-c", config, inputs=[tmp_path / "logs.jsonl"]) == 0
    audited = audit(str(out), AuditOptions())
    assert {"secret", "mail"} <= found(audited).keys()
    built = json.loads((out / "manifest.json").read_bytes())["audit"]["findings"]
    assert [(item["code"], item["count"], item["samples"]) for item in built] == [
        (item.code, item.count, item.samples) for item in audited.findings
    ]
