"""Down-sampling to shares: the shares are met, by nothing else, and recorded in the ledger."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs.builds import build, build_with_one_and_two_workers, lines

from builder import cli
from builder.audit.failures import PATTERNS
from builder.select.choice import Candidate, left_out


def candidates(**counts):
    names = [(name, n) for name, count in counts.items() for n in range(count)]
    return [Candidate(name, 1, f"{name} {n}".encode()) for name, n in names]


def kept(items, shares, seed=0):
    gone = left_out(items, shares, seed)
    return Counter(item.group for at, item in enumerate(items) if at not in gone)


HALF = {"chain": 0.5, "parallel": 0.5}


@pytest.mark.parametrize(
    ("counts", "shares", "expected"),
    [
        ({"chain": 100, "parallel": 50}, HALF, {"chain": 50, "parallel": 50}),
        ({"chain": 100, "parallel": 50, "single_call": 9}, HALF, {"chain": 50, "parallel": 50}),
        ({"chain": 100, "parallel": 50}, {"parallel": 0.5}, {"chain": 50, "parallel": 50}),
        ({"chain": 90, "parallel": 10}, {"chain": 0.5}, {"chain": 10, "parallel": 10}),
        ({"chain": 10, "parallel": 5}, {"chain": 0.0}, {"parallel": 5}),
        ({"chain": 10, "parallel": 5}, {**HALF, "clarification": 0.0}, {"chain": 5, "parallel": 5}),
        ({"chain": 10}, {"direct_answer": 1.0}, {}),
        ({}, {"chain": 0.5}, {}),
    ],
)
def test_shares(counts, shares, expected):
    assert kept(candidates(**counts), shares) == expected


@given(
    st.lists(st.tuples(st.sampled_from(PATTERNS), st.integers(1, 4)), max_size=40),
    st.dictionaries(st.sampled_from(PATTERNS), st.floats(0.05, 0.3), max_size=3),
    st.integers(0, 3),
)
def test_order_does_not_matter(rows, shares, seed):
    items = [Candidate(name, size, str(at).encode()) for at, (name, size) in enumerate(rows)]
    gone = {items[at] for at in left_out(items, shares, seed)}
    turned = items[::-1]
    assert {turned[at] for at in left_out(turned, shares, seed)} == gone


def turn(role, text):
    return {"role": role, "content": text}


@pytest.mark.slow
def test_a_build_with_a_mix(tmp_path, capsys, pooled_tasks):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = [[turn("user", f"direct {n}"), turn("assistant", "x")] for n in range(12)]
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    response = "<tool_response>\ny\n</tool_response>"
    for n in range(3):
        content = [turn("user", f"call {n}"), turn("assistant", call), turn("user", response)]
        rows.append([*content, turn("assistant", "z")])
    texts = [json.dumps({"messages": content, "tools": []}) + "\n" for content in rows]
    (folder / "a.jsonl").write_text("".join(texts[:5]))
    (folder / "b.jsonl").write_text("".join(texts[5:]))
    config = tmp_path / "c.yaml"
    config.write_text("mix: {direct_answer: 0.5, single_call: 0.5}\n")
    out = build_with_one_and_two_workers(tmp_path, "-c", config, inputs=[folder])
    assert pooled_tasks.count("_run_batch") == 2
    meta = lines(out / "meta" / "train-00000-of-00001.jsonl")
    assert Counter(line["pattern"] for line in meta) == {"direct_answer": 3, "single_call": 3}
    rejects = lines(out / "rejects.jsonl")
    assert [line["code"] for line in rejects] == ["mix"] * 9
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    assert ledger["conversations"]["rejected"] == {"mix": 9}
    capsys.readouterr()
    assert cli.main(["audit", str(out), "-c", str(config), "--json"]) == 0
    tables = {table["key"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert tables["patterns"]["target"] == [["direct_answer", 0.5], ["single_call", 0.5]]


def test_wrong_shares_are_the_users_mistake(tmp_path, capsys):
    config = tmp_path / "c.yaml"
    for text, content in (
        ("mix: {chain: 0.6, parallel: 0.6}", "more than 1"),
        ("mix: {chains: 0.5}", "did you mean 'chain'"),
        ("mix: {chain: 2}", "a share from 0 to 1"),
    ):
        config.write_text(text)
        assert build(tmp_path / "out", "-c", config) == 2
        assert content in capsys.readouterr().err
