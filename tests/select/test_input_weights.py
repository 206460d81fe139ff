"""`inputs[].weight`: a share of the sessions of an input, the same ones in every run."""

import json
import random

import pytest

from builder import cli
from builder.select.choice import is_taken


def logs(folder, names):
    folder.mkdir()
    for name in names:
        messages = [{"role": "user", "content": name}, {"role": "assistant", "content": "Yes."}]
        (folder / f"{name}.jsonl").write_text(json.dumps({"messages": messages}) + "\n")


def build(tmp_path, weights, *more):
    config = {
        "inputs": [
            {"path": name, "format": "openai-chat", "weight": weight}
            for name, weight in weights.items()
        ],
    }
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    out = tmp_path / "out"
    code = cli.main(["build", "-c", str(tmp_path / "c.yaml"), "-o", str(out), "-q", *more])
    return code, out


def text(out):
    lines = (out / "data" / "train-00000-of-00001.jsonl").read_text().splitlines()
    return [json.loads(line)["messages"][0]["content"] for line in lines]


def test_a_share_is_taken_and_the_rest_is_accounted_for(tmp_path):
    logs(tmp_path / "many", [f"m{number}" for number in range(40)])
    few = [*(f"f{number}" for number in range(9)), "m3"]
    logs(tmp_path / "few", few)
    code, out = build(tmp_path, {"many": 0.5, "few": 1.0})
    assert code == 0
    taken = text(out)
    assert set(few) <= set(taken), "an input of weight 1 loses nothing to another"
    assert 12 <= len([name for name in taken if name.startswith("m")]) <= 28
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    lost = ledger["conversations"]["rejected"]["weight"]
    assert lost + ledger["conversations"]["built"] + ledger["conversations"]["duplicates"] == 50
    rejects = (out / "rejects.jsonl").read_text().splitlines()
    codes = sorted(json.loads(line)["code"] for line in rejects)
    duplicates = ledger["conversations"]["duplicates"]
    assert codes == ["duplicate"] * duplicates + ["weight"] * lost
    _, again = build(tmp_path, {"many": 0.5, "few": 1.0}, "--workers", "1", "--fresh")
    assert text(again) == taken


def test_sessions_that_are_left_out_make_nothing_a_duplicate(tmp_path):
    logs(tmp_path / "none", ["equal"])
    logs(tmp_path / "all", ["equal", "begun"])
    begun = json.loads((tmp_path / "all" / "begun.jsonl").read_text())["messages"]
    more = [{"role": "user", "content": "More?"}, {"role": "assistant", "content": "No."}]
    (tmp_path / "none" / "longer.jsonl").write_text(json.dumps({"messages": begun + more}) + "\n")
    code, out = build(tmp_path, {"none": 0.0, "all": 1.0})
    assert code == 0
    assert text(out) == ["begun", "equal"]


@pytest.mark.parametrize("weight", [-0.1, 1.5])
def test_a_share_is_between_zero_and_one(tmp_path, weight, capsys):
    logs(tmp_path / "many", ["a"])
    assert build(tmp_path, {"many": weight})[0] == 2
    assert "inputs[0].weight" in capsys.readouterr().err


def test_the_random_draw_is_uniform():
    pick = random.Random(0)
    keys = [pick.randbytes(8) for _ in range(20_000)]
    for weight in (0.1, 0.5, 0.9):
        share = sum(is_taken(key, weight, seed=1) for key in keys) / len(keys)
        assert abs(share - weight) < 0.02
