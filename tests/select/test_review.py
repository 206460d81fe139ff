"""`select.review`: decisions of reviewers, by the id of the sample."""

import hashlib
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs.builds import build, lines

from builder import cli
from builder.dataset.review import Decision, read_review, review_lines
from builder.problem import UsageError


def called(number):
    call = json.dumps({"name": "look", "arguments": {"at": number}})
    return [
        {"role": "user", "content": f"look at {number}"},
        {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"},
        {"role": "user", "content": "<tool_response>\nseen\n</tool_response>"},
        {"role": "assistant", "content": f"Done {number}."},
    ]


@pytest.fixture
def logs(tmp_path):
    rows = [{"messages": called(number)} for number in range(4)]
    rows.append({"messages": called(3)[:2]})  # the beginning of another conversation
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "in.jsonl"


def built(out, logs, *more):
    assert build(out, *more, inputs=[logs]) == 0
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    rejects = Counter(line["code"] for line in lines(out / "rejects.jsonl"))
    data = (out / "data" / "train-00000-of-00001.jsonl").read_bytes().splitlines()
    return [hashlib.sha256(line).hexdigest() for line in data], ledger, rejects


def review(path, **decisions):
    found = [{"id": key, "decision": value, "note": "why"} for key, value in decisions.items()]
    path.write_text("".join(json.dumps(item) + "\n" for item in found))
    return path


def test_samples_that_a_review_rejects_are_left_out_and_counted(tmp_path, logs):
    ids, before, _ = built(tmp_path / "out", logs)
    assert [line["id"] for line in lines(tmp_path / "out/meta/train-00000-of-00001.jsonl")] == ids
    assert (before["samples"], before["calls"]["kept"]) == (4, 4)
    path = review(tmp_path / "r.jsonl", **{ids[3]: "reject", ids[0]: "accept", "gone": "reject"})
    kept, ledger, rejects = built(tmp_path / "out", logs, "--review", path)
    # The beginning of the rejected conversation does not replace it.
    assert kept == ids[:3]
    assert ledger["conversations"]["rejected"] == {"review": 1}
    assert rejects == {"review": 1, "duplicate": 1}
    assert ledger["calls"]["dropped"] == {"review": 1}
    reported = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["review"]
    assert reported == {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "accepted": 1,
        "rejected": 2,
        "applied": 2,
    }
    assert "left out by review" in (tmp_path / "out" / "rejects.jsonl").read_text()


def test_a_build_of_accepted_samples_only(tmp_path, logs):
    ids, _, _ = built(tmp_path / "out", logs)
    review(tmp_path / "r.jsonl", **{ids[1]: "accept", ids[2]: "reject", ids[3]: None})
    config = {"select": {"review": "r.jsonl", "unreviewed": "drop"}}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    kept, ledger, rejects = built(tmp_path / "out", logs, "-c", tmp_path / "c.yaml")
    assert kept == [ids[1]]
    assert ledger["conversations"]["rejected"] == {"review": 1, "unreviewed": 2}
    assert rejects == {"review": 1, "unreviewed": 2, "duplicate": 1}


def test_a_merge_applies_a_review(tmp_path, logs):
    ids, _, _ = built(tmp_path / "out", logs)
    review(tmp_path / "r.jsonl", **{ids[1]: "reject"})
    (tmp_path / "m.yaml").write_text(json.dumps({"select": {"review": "r.jsonl"}}))
    command = ["merge", str(tmp_path / "out"), "-o", str(tmp_path / "merged"), "-q", "-c"]
    assert cli.main([*command, str(tmp_path / "m.yaml")]) == 0
    merged = lines(tmp_path / "merged" / "meta" / "train-00000-of-00001.jsonl")
    assert [line["id"] for line in merged] == [ids[0], *ids[2:]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("{", "line 1: is not JSON"),
        ("\n[1]\n", "line 2: is not a JSON object"),
        ('{"decision": "accept"}', "line 1: has no id"),
        ('{"id": "a", "decision": "yes"}', "decision: must be one of accept, reject or null"),
        ('{"id": "a", "decision": []}', "decision: must be one of accept, reject or null"),
        ('{"id": "a", "note": 5}', "note: must be text"),
        ('{"id": "a"}\n{"id": "a"}', "line 2: decides on 'a' twice"),
    ],
)
def test_mistakes_in_a_review_are_named_before_the_work_begins(
    tmp_path, logs, capsys, content, message
):
    path = tmp_path / "r.jsonl"
    if content is not None:
        path.write_text(content)
    assert build(tmp_path / "out", "--review", path, inputs=[logs]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


notes = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
decisions = st.builds(Decision, st.sampled_from(["accept", "reject", ""]), notes)


@given(st.dictionaries(notes.filter(bool), decisions, max_size=6))
def test_a_review_reads_back_sorted(tmp_path_factory, made):
    path = tmp_path_factory.mktemp("review") / "r.jsonl"
    path.write_bytes(review_lines(made))
    read = read_review(path).decisions
    assert read == {key: item for key, item in made.items() if item != Decision()}
    assert list(read) == sorted(read)
    assert review_lines(dict(reversed(made.items()))) == path.read_bytes()


def test_a_review_may_be_of_any_bytes(tmp_path):
    (tmp_path / "r.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(UsageError, match="line 1"):
        read_review(tmp_path / "r.jsonl")
