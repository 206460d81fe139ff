"""`select`: conditions, shares by any field and the token budget."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs.builds import build, files, lines

from builder.select.choice import Candidate, beyond_budget
from builder.select.conditions import Condition, condition_code, value_of


@pytest.mark.parametrize(
    ("condition", "meets", "fails"),
    [
        (Condition(min=2), [2, 2.5, 10**30], [1, None, "3", True, [3], float("nan")]),
        (Condition(max=2), [2, -1], [3, None, float("nan")]),
        (Condition(min=0, max=0), [0, 0.0], [False, 1]),
        (Condition(among=("a", 1)), ["a", 1, 1.0, ["b", "a"]], ["A", True, None, [], ["b"]]),
        (Condition(among=("claude-*",)), ["claude-4", "claude-*"], ["my-claude-4", None]),
        (Condition(among=(True,)), [True], [1, "true", False]),
        (Condition(among=(None, "x")), [None, [], "x"], ["", 0]),
        (Condition(none_of=("a", None)), ["b", 0, ["b"]], ["a", None, ["b", "a"], []]),
        (Condition(min=1, none_of=(3,)), [1, 2], [3, 0]),
    ],
)
def test_a_value_meets_a_condition_or_not(condition, meets, fails):
    assert [value for value in meets if not condition.holds(value)] == []
    assert [value for value in fails if condition.holds(value)] == []


def test_dots_address_members_unless_the_name_contains_them():
    values = {"outcome": {"reward": 1, "a.b": 2}, "x.y": 3, "tokens": 4}
    names = ["outcome.reward", "outcome.a.b", "x.y", "tokens", "tokens.of", "outcome.no", "no"]
    assert [value_of(values, name) for name in names] == [1, 2, 3, 4, None, None, None]
    assert condition_code("outcome.reward") == "select_outcome_reward"


rows_of_sizes = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 50)), max_size=30)


@given(rows_of_sizes, st.integers(0, 600), st.integers(0, 3))
def test_the_budget_is_kept_and_nothing_that_fits_is_left_out(rows, total, seed):
    items = [Candidate(name, size, str(at).encode()) for at, (name, size) in enumerate(rows)]
    gone = beyond_budget(items, total, seed)
    kept = sum(item.size for at, item in enumerate(items) if at not in gone)
    assert kept <= total
    assert all(items[at].size > total - kept for at in gone)
    turned = beyond_budget(items[::-1], total, seed)
    assert {len(items) - 1 - at for at in turned} == gone


# -- a build -------------------------------------------------------------------------------------


def messages(number, tool=None):
    made = [{"role": "user", "content": f"question {number}"}]
    if tool is not None:
        call = json.dumps({"name": tool, "arguments": {}})
        made.append({"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"})
        text = "<tool_response>\nok\n</tool_response>"
        made.append({"role": "user", "content": text})
    return [*made, {"role": "assistant", "content": "yes " * number}]


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("none", "read", "write"):
        tool = None if name == "none" else name
        rows = [{"messages": messages(number, tool)} for number in range(1, 11)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


def selected(tmp_path, logs, select, *, unit="conversation"):
    (tmp_path / "c.yaml").write_text(json.dumps({"select": select, "normalize": {"unit": unit}}))
    out = tmp_path / "out"
    assert build(out, "-c", tmp_path / "c.yaml", "--fresh", inputs=[logs]) == 0
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    rejects = Counter(line["code"] for line in lines(out / "rejects.jsonl"))
    return lines(out / "meta" / "train-00000-of-00001.jsonl"), ledger, rejects


def test_samples_that_fail_a_condition_are_counted_in_the_ledger(tmp_path, logs):
    where = {"tools": {"in": ["read", None]}, "source": {"not": ["none.*"]}}
    meta, ledger, rejects = selected(tmp_path, logs, {"where": where})
    assert {line["source"] for line in meta} == {"read.jsonl"}
    codes = {"select_source": 10, "select_tools": 10}
    assert ledger["conversations"]["rejected"] == codes == rejects
    assert ledger["calls"] == {"logged": 20, "kept": 10, "dropped": {"select_tools": 10}}
    assert ledger["samples"] == 10


def test_shares_by_a_field(tmp_path, logs):
    shares = {"source": {"none.jsonl": 0.5, "read.jsonl": 0.25}}
    meta, ledger, _ = selected(tmp_path, logs, {"shares": shares})
    found = Counter(line["source"] for line in meta)
    assert found == {"none.jsonl": 10, "read.jsonl": 5, "write.jsonl": 5}
    assert ledger["conversations"]["rejected"] == {"select_shares": 10}


def test_a_token_budget_holds_and_the_same_seed_gives_the_same_rows(tmp_path, logs):
    select = {"max_tokens_total": 500}
    meta, ledger, _ = selected(tmp_path, logs, select)
    assert 400 < sum(line["tokens"] for line in meta) <= 500
    assert list(ledger["conversations"]["rejected"]) == ["select_max_tokens_total"]
    before = files(tmp_path / "out")
    selected(tmp_path, logs, select)
    assert files(tmp_path / "out") == before


def test_mistakes_in_conditions_are_named(tmp_path, capsys):
    for select, message in (
        ({"where": {"tokens": {"minimum": 1}}}, "select.where.tokens.minimum: unknown key"),
        ({"where": {"tokens": {"min": "1"}}}, "select.where.tokens.min: must be a number"),
        ({"where": {"model": {"in": [["a"]]}}}, "select.where.model.in[0]: must be text"),
        ({"where": {"model": {}}}, "select.where.model: has no condition"),
        ({"where": {"tokens": {"max": 9}}}, "select.where.tokens.max: is limits.max_tokens"),
        ({"shares": {"model": {"a": 0.7, "b": 0.7}}}, "add up to more than 1"),
        ({"shares": {"model": {"a": 0.1}, "source": {"b": 0.1}}}, "more than one field"),
        ({"max_tokens_total": 0}, "select.max_tokens_total: must be a whole number"),
    ):
        (tmp_path / "c.yaml").write_text(json.dumps({"select": select}))
        assert build(tmp_path / "out", "-c", tmp_path / "c.yaml") == 2
        assert message in capsys.readouterr().err
