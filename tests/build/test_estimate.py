"""The cost of a training unit is printed before the work starts."""

import json

import pytest
from support.runs.builds import lines

from builder import cli
from builder.build.convert import Task
from builder.build.job import unit_cost
from builder.normalize.options import LengthOptions, NormalizeOptions
from builder.sources.source import Source

TURNS = 30


def chat(path, turns, rows=1):
    made = []
    for number in range(rows):
        for turn in range(turns):
            made.append({"role": "user", "content": f"{number} question {turn:03d} " + "q" * 100})
            made.append({"role": "assistant", "content": f"answer {turn:03d} " + "a" * 100})
    size = 2 * turns
    texts = [json.dumps({"messages": made[at : at + size]}) for at in range(0, len(made), size)]
    path.write_text("\n".join(texts) + "\n")
    return path


def cost(unit, *paths):
    options = NormalizeOptions(unit=unit)
    return unit_cost([Task(Source(path.name, path), options, path.name) for path in paths])


@pytest.mark.parametrize(("unit", "factor"), [("conversation", 1), ("turn", (TURNS + 1) / 2)])
def test_the_estimated_factor_is_that_of_the_texts(tmp_path, unit, factor):
    found = cost(unit, chat(tmp_path / "a.jsonl", TURNS), chat(tmp_path / "b.jsonl", TURNS, 3))
    assert (found.conversations, found.files, found.of_files) == (4, 2, 2)
    assert found.factor == pytest.approx(factor, rel=0.05)


@pytest.mark.parametrize("too_long", ["split", "cut", "reject"])
def test_the_estimate_knows_the_limit_of_lengths(tmp_path, too_long):
    """The window of a turn has at most the limit, here that of about four turns."""
    path = chat(tmp_path / "a.jsonl", TURNS)
    limit = 4 * 224
    limits = LengthOptions(max_tokens=round(limit / 3.5), too_long=too_long)
    options = NormalizeOptions(unit="turn")
    found = unit_cost([Task(Source("a", path), options, "a", lengths=limits)])
    text = TURNS * 224
    short = sum(224 * at for at in range(1, 5))
    long = (TURNS - 4) * limit
    wanted = {"split": (short + long) / text, "cut": (short + long) / limit, "reject": None}
    if wanted[too_long] is None:
        assert found is None  # the whole conversation is rejected
    else:
        assert found.factor == pytest.approx(wanted[too_long], rel=0.05)


def test_the_estimate_skips_unreadable_inputs(tmp_path):
    (tmp_path / "x").write_bytes(b"\x00\x01")
    assert cost("turn", tmp_path / "x", tmp_path / "absent") is None


@pytest.mark.slow
def test_a_large_factor_is_reported_and_approximately_right(tmp_path, capsys):
    log = chat(tmp_path / "a.jsonl", TURNS, 2)
    tokens = {}
    for unit in ("conversation", "turn"):
        (tmp_path / "c.yaml").write_text(f"normalize: {{unit: {unit}}}")
        out = tmp_path / unit
        command = ["build", str(log), "-o", str(out), "-c", str(tmp_path / "c.yaml")]
        assert cli.main(command) == 0
        (meta,) = (out / "meta").glob("*")
        tokens[unit] = sum(line["tokens"] for line in lines(meta))
        error = capsys.readouterr().err
        assert ("times the tokens of conversation" in error) is (unit == "turn")
    factor = float(error.split("takes about ")[1].split()[0])
    assert factor == pytest.approx(tokens["turn"] / tokens["conversation"], rel=0.1)


def test_short_conversations_cause_no_warning(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text("normalize: {unit: turn}")
    log = chat(tmp_path / "a.jsonl", 2)
    command = ["build", str(log), "-o", str(tmp_path / "out"), "-c", str(tmp_path / "c.yaml")]
    assert cli.main(command) == 0
    assert "times" not in capsys.readouterr().err
