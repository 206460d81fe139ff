"""A number has one value wherever it is shown, and it is the one that the files give."""

import re

import pytest
from support.pages.reports import plain
from support.places import DATA
from support.runs.builds import build, lines

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
    (length,) = re.findall(r"\btrl +\d+ .* (\d+)$", capsys.readouterr().out, re.MULTILINE)
    configured = (exported / "configs" / "trl.yaml").read_text()
    assert f"max_length: {length} " in configured


def test_the_price_of_a_sample_for_each_question_is_about_what_it_costs(built, tmp_path):
    whole = tmp_path / "whole"
    assert build(whole, "--workers", "1", inputs=[DATA]) == 0
    estimated = audit(str(whole), AuditOptions()).facts.query_tokens
    assert estimated == pytest.approx(sum(row["tokens"] for row in meta_of(built)), rel=0.1)
    assert estimated > sum(row["tokens"] for row in meta_of(whole))
