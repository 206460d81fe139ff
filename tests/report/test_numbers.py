"""A number has one value wherever it is shown, and it is the one that the files give."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from support.pages.reports import plain
from support.places import DATA
from support.runs.builds import build, lines

import builder
from builder import cli
from builder.audit.options import AuditOptions
from builder.audit.run import audit


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A dataset of the quickstart's logs, with windows of turns that are context only."""
    out = tmp_path_factory.mktemp("numbers") / "out"
    config = out.parent / "config.yaml"
    config.write_text("normalize: {unit: query}\n")
    assert build(out, "-c", config, "--workers", "1", inputs=[DATA]) == 0
    return out


def meta_of(out):
    return [row for path in sorted((out / "meta").iterdir()) for row in lines(path)]


def test_trained_tokens_are_those_of_the_labels(built, tmp_path, capsys):
    rows = meta_of(built)
    exported = tmp_path / "tokens"
    assert cli.main(["export", str(built), "--to", "tokenized", "-o", str(exported)]) == 0
    import pyarrow.parquet

    labels = [
        label
        for path in sorted((exported / "data").iterdir())
        for row in pyarrow.parquet.read_table(path)["labels"].to_pylist()
        for label in row
    ]
    trained = sum(label != -100 for label in labels)
    assert trained == sum(row["trained_tokens"] for row in rows) > 0
    assert len(labels) == sum(row["tokens"] for row in rows)
    page = plain((built / "report.html").read_text())
    assert f"of the tokens are trained: {trained:,}" in page
    assert f"trained tokens | {trained:,}, " in (built / "README.md").read_text()
    capsys.readouterr()
    assert cli.main(["audit", str(built)]) == 0
    (length,) = re.findall(r"\btrl +[\d,]+ .* (\d+)$", capsys.readouterr().out, re.MULTILINE)
    configured = (exported / "configs" / "trl.yaml").read_text()
    assert f"max_length: {length} " in configured


def test_the_price_of_a_sample_for_each_question_is_about_what_it_costs(built, tmp_path):
    whole = tmp_path / "whole"
    assert build(whole, "--workers", "1", inputs=[DATA]) == 0
    estimated = audit(str(whole), AuditOptions()).facts.query_tokens
    assert estimated == pytest.approx(sum(row["tokens"] for row in meta_of(built)), rel=0.1)
    assert estimated > sum(row["tokens"] for row in meta_of(whole))


def exchange(name, calls=1):
    """Returns the messages of a question whose answer calls a tool so many times."""
    made = [{"role": "user", "content": f"Do {name}"}]
    for number in range(calls):
        call = {"id": f"{name}{number}", "type": "function"}
        call["function"] = {"name": "look", "arguments": json.dumps({"at": name})}
        made += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": f"{name} is there"},
        ]
    return [*made, {"role": "assistant", "content": f"{name} is done."}]


ROWS = (
    *(exchange(f"task{number}") for number in range(6)),
    exchange("task0"),  # a duplicate
    exchange("task1")[:2],  # the beginning of another
    exchange("task2") + exchange("more"),  # task2 is its beginning
    exchange("many", calls=9),  # left out by the condition
    [{"role": "user", "content": "Nobody answers"}],
    exchange("broken")[:1] + exchange("long " + "word " * 900)[1:],  # too long
)

CONFIG = """
normalize: {unit: query}
limits: {max_tokens: 900}
select: {where: {calls: {max: 3}}}
mix: {single_call: 0.5, direct_answer: 0.5}
"""


@pytest.fixture(scope="module")
def accounted(tmp_path_factory):
    """A build that leaves out samples for every kind of reason, and its result."""
    folder = tmp_path_factory.mktemp("accounts")
    rows = [*ROWS, *([{"role": "user", "content": f"q{n}"},
                      {"role": "assistant", "content": f"a{n}"}] for n in range(3))]  # fmt: skip
    (folder / "in.jsonl").write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
    (folder / "config.yaml").write_text(CONFIG)
    config = builder.load_config(folder / "config.yaml")
    return builder.build_dataset(folder / "in.jsonl", folder / "out", config=config)


def tables(text):
    """Returns {unit: (found, used, duplicate, ignored, rejected)} of a table of the card."""
    found = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (.*?) \| (.*?) \|$", text, re.M)
    return {
        unit: (*map(int, counts), *(sum(map(int, re.findall(r"` (\d+)", cell))) for cell in codes))
        for unit, *counts, one, other in found
        for codes in [(one, other)]
    }


def test_one_accounting_is_shown_everywhere_and_adds_up(accounted):
    out, ledger = Path(accounted.folder), accounted.ledger
    accounts = {
        one.unit: (one.found, one.used, one.duplicates, sum(one.ignored.values()), one.lost)
        for one in ledger.accounts
    }
    assert all(found == sum(others) for found, *others in accounts.values())
    _, used, duplicates, ignored, rejected = accounts["samples"]
    assert min(used, duplicates, ignored, rejected) > 0, "the build has every kind"
    assert used == len(list(accounted.samples))
    card = (out / "README.md").read_text()
    assert tables(card) == accounts
    stated = json.loads((out / "manifest.json").read_text())["ledger"]
    assert stated == ledger.to_json()
    lines_by_code = Counter(row["code"] for row in lines(out / "rejects.jsonl"))
    assert lines_by_code["duplicate"] == duplicates
    for code, count in ledger.samples_left_out.items():
        assert lines_by_code[code] == count, code
    page = plain((out / "report.html").read_text())
    for unit in ("records", "conversations"):
        found, used, *_ = accounts[unit]
        assert f"{found} {unit} found: {used} used" in page
    for at, name in ((2, "duplicate"), (3, "ignored"), (4, "rejected")):
        if count := accounts["samples"][at]:
            assert f"{count} of {accounts['samples'][0]} samples {name}" in page


def test_the_summary_has_the_same_accounting(accounted, tmp_path, capsys):
    folder = accounted.folder
    source = folder.replace("/out", "/in.jsonl")
    config = folder.replace("/out", "/config.yaml")
    assert cli.main(["build", source, "-c", config, "-o", str(tmp_path / "o")]) == 0
    printed = capsys.readouterr().out
    for one in accounted.ledger.accounts:
        (row,) = re.findall(rf"^  {one.unit} +([\d ]+)$", printed, re.MULTILINE)
        parts = [one.duplicates, sum(one.ignored.values()), one.lost]
        shown = list(map(int, row.split()))
        assert shown[:2] == [one.found, one.used]
        assert [n for n in shown[2:] if n] == [n for n in parts if n]


def test_a_difference_counts_every_row(tmp_path):
    """A dataset of any origin may hold a row twice."""
    row = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}
    other = {"messages": [{"role": "user", "content": "z"}, {"role": "assistant", "content": "y"}]}
    twice, once = tmp_path / "twice.jsonl", tmp_path / "once.jsonl"
    twice.write_text("".join(json.dumps(item) + "\n" for item in (row, row, other)))
    once.write_text("".join(json.dumps(item) + "\n" for item in (row, other)))
    assert builder.diff_datasets(twice, twice).same == 3
    fewer = builder.diff_datasets(twice, once)
    assert (fewer.same, fewer.removed, fewer.added, fewer.changed) == (2, 1, 0, 0)
