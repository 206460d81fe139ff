"""A number has one value wherever it is shown, and it is the one that the files give."""

import contextlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from support.pages.reports import plain
from support.pages.viewer import viewer_of
from support.places import DATA
from support.runs.builds import build, lines

import builder
from builder import cli
from builder.audit.counts import count_dataset
from builder.audit.options import AuditOptions
from builder.audit.run import audit
from builder.audit.tables import histograms
from builder.dataset.store import Address
from builder.qwen3.tokenizer import target_for


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
    assert f"{trained:,}trained tokens (" in page
    assert f"trained tokens | {trained:,}, " in (built / "README.md").read_text()
    capsys.readouterr()
    assert cli.main(["audit", str(built)]) == 0
    (length,) = re.findall(r"\btrl +[\d,]+ .* (\d+)$", capsys.readouterr().out, re.MULTILINE)
    configured = (exported / "configs" / "trl.yaml").read_text()
    assert f"max_length: {length} " in configured


TURN = re.compile(r"<\|im_start\|>(\w+)\n(.*?)<\|im_end\|>", re.DOTALL)
ANSWER = re.compile(
    r"(?P<thoughts><think>\n(?!\n</think>).*?</think>\n\n)?(?:<think>\n\n</think>\n\n)?"
    r"(?P<answers>.*?)(?P<calls><tool_call>.*)?", re.DOTALL
)  # fmt: skip


def parts_of(tokenizer, row):
    """Counts the tokens of each part of a row in the text of the tokenizer's own template."""
    text = tokenizer.apply_chat_template(row["messages"], tools=row["tools"], tokenize=False)
    spans = []
    for turn in TURN.finditer(text):
        role, body, at = turn[1], turn[2], turn.start(2)
        if role == "assistant":
            answer = ANSWER.fullmatch(body)
            spans += [
                (name, at + answer.start(name), at + answer.end(name)) for name in ANSWER.groupindex
            ]
        elif role == "system":
            system, tools = re.fullmatch(r"(.*?)(?:\n\n)?(# Tools\n\n.*)?", body, re.DOTALL).groups(
                ""
            )
            end = at + len(body)
            spans += [("system", at, at + len(system)), ("tools", end - len(tools), end)]
        else:
            name = "results" if body.startswith("<tool_response>") else role
            spans.append((name, at, at + len(body)))
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    begins = [start for start, _ in offsets["offset_mapping"]]
    counts = Counter(
        next((name for name, start, end in spans if start <= begin < end), "template")
        for begin in begins
    )
    return dict(counts), len(begins)


@pytest.mark.parametrize("reasoning", ["keep", "drop"])
def test_the_tokens_of_the_parts_are_those_of_the_official_tokenizer(reasoning, tmp_path):
    out = tmp_path / "out"
    assert build(out, "--set", f"normalize.reasoning={reasoning}", "--workers", "1") == 0
    tokenizer = target_for("qwen3").tokenizer
    (data,), metas = (out / "data").iterdir(), meta_of(out)
    seen = Counter()
    for row, meta in zip(lines(data), metas, strict=True):
        counts, tokens = parts_of(tokenizer, row)
        assert meta["tokens_by_part"] == counts, meta["source"]
        assert tokens == meta["tokens"] == sum(counts.values())
        seen.update(counts)
    assert len(seen) == 8 - (reasoning == "drop"), "each part occurs"


def numbers_in(page, title):
    """Returns {part: tokens} that a page states below its bar, after a heading."""
    _, _, shown = page.partition(title)
    return {
        name: int(count.replace(",", ""))
        for name, count in re.findall(
            r"(system|tools|user|results|thoughts|answers|calls|template) ([\d,]+) \(", shown
        )
    }


def test_the_tokens_by_part_are_the_same_everywhere(built, tmp_path, capsys):
    metas = meta_of(built)
    total = sum((Counter(row["tokens_by_part"]) for row in metas), Counter())
    capsys.readouterr()
    assert cli.main(["audit", str(built), "--json"]) == 0
    tables_of = {item["key"]: item for item in json.loads(capsys.readouterr().out)["tables"]}
    audited = {name: count for name, count, *_ in tables_of["lengths"]["rows"] if count}
    assert audited.pop("sample") == total.total() == sum(row["tokens"] for row in metas)
    assert audited == total
    assert numbers_in(plain((built / "report.html").read_text()), "Tokens by part") == total
    card = (built / "README.md").read_text()
    for name, count in total.items():
        assert f"| `{name}` | {count:,} |" in card, name
    manifest = json.loads((built / "manifest.json").read_text())
    with contextlib.closing(viewer_of(built, manifest, tmp_path)) as viewer:
        shown = plain(viewer.overview().decode())
        assert numbers_in(shown, "Tokens by part") == total
        page = plain(viewer.sample(Address(0, 0), {}).decode())
        assert numbers_in(page, "Origin and facts") == metas[0]["tokens_by_part"]
        assert f"trained {metas[0]['trained_tokens']:,} (" in page
    (data,) = (built / "data").iterdir()
    (tmp_path / "rows.jsonl").write_bytes(data.read_bytes())
    again = audit(str(tmp_path / "rows.jsonl"), AuditOptions())
    lengths = next(item for item in again.tables if item.key == "lengths")
    assert {name: count for name, count, *_ in lengths.rows[1:] if count} == total


def test_a_histogram_counts_the_samples_in_audit_and_viewer(built, tmp_path):
    audited = audit(str(built), AuditOptions())
    assert histograms(count_dataset(str(built))) == audited.histograms
    assert [sum(item.counts) for item in audited.histograms] == [audited.samples] * 3
    turns = sum(row["assistant_turns"] for row in meta_of(built))
    assert audited.counts.turns == turns
    with contextlib.closing(viewer_of(built, {}, tmp_path)) as viewer:
        assert f"{turns:,}trained turns" in plain(viewer.overview().decode())


def test_the_price_of_a_sample_for_each_question_is_about_what_it_costs(built, tmp_path):
    whole = tmp_path / "whole"
    assert build(whole, "--workers", "1", inputs=[DATA]) == 0
    estimated = audit(str(whole), AuditOptions()).counts.query_tokens
    assert estimated == pytest.approx(sum(row["tokens"] for row in meta_of(built)), rel=0.05)
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
    for unit, counts in accounts.items():
        assert f"{unit}{''.join(map(str, counts))}" in page


def test_the_summary_has_the_same_accounting(accounted, tmp_path, capsys):
    folder = accounted.folder
    source = folder.replace("/out", "/in.jsonl")
    config = folder.replace("/out", "/config.yaml")
    assert cli.main(["build", source, "-c", config, "-o", str(tmp_path / "o"), "-v"]) == 0
    printed = capsys.readouterr().out.partition("\naccounting\n")[2]
    for one in accounted.ledger.accounts:
        (row,) = re.findall(rf"^  {one.unit} +([\d ]+)$", printed, re.MULTILINE)
        parts = [one.duplicates, sum(one.ignored.values()), one.lost]
        shown = list(map(int, row.split()))
        assert shown[:2] == [one.found, one.used]
        assert [n for n in shown[2:] if n] == [n for n in parts if n]
