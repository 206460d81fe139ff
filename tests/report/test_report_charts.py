"""The charts of the first screen: what they draw, and that their labels can be read."""

import re

import pytest
from support.pages.reports import plain

from builder.audit.result import AuditTable, Histogram
from builder.report.charts import _labels, _marks, table_html
from builder.report.shares import dataset_shares

PARTS = AuditTable(
    "lengths", "Tokens by part", ("part", "tokens", "share"),
    (("sample", 100, 1.0), ("tools", 20, 0.2), ("results", 40, 0.4), ("answers", 10, 0.1),
     ("calls", 30, 0.3)),
)  # fmt: skip


@pytest.mark.parametrize("right", [592.0, 332.0, 302.0])
def test_no_line_crosses_a_label(right):
    marks = [("trl", 1024), ("verl", 1024), ("llama-factory", 2048), ("openrlhf", 2048)]
    marks += [("4k", 4096), ("8k", 8192), ("16k", 16384), ("32k", 32768)]
    edges = [256 << at for at in range(10)]
    drawn = Histogram("tokens", "", "tokens", tuple(edges), (1,) * 9, tuple(marks))
    placed = _labels(_marks(drawn, edges), edges, 8.0, right)
    assert [caption for caption, *_ in placed][:2] == ["trl, verl 1,024", "llama-factory 2,048"]
    for caption, _, place, at_end, row in placed:
        long = 6.4 * len(caption)
        begin, end = (place - long, place) if at_end else (place, place + long)
        assert 0 <= begin < end <= right + 8
        lines = [x for _, x, _, _, first in placed if first <= row]
        assert not any(begin < x < end for x in lines), caption


def test_the_share_of_errors_is_drawn_in_the_bar_of_a_tool():
    rows = (("Bash", 40, 10), ("Read", 20, 0))
    table = AuditTable("tools", "", ("tool", "calls", "errors"), rows, bars="calls", bad="errors")
    first, second = re.findall(r"<svg.*?</svg>", table_html(table), re.DOTALL)
    assert "Bash: 40, 10 (25 %) errors" in first
    widths = re.findall(r'class="(\w+)"[^>]*width="([\d.]+)"', first)
    assert widths == [("fill", "100.0"), ("bad", "25.0")]
    assert 'class="bad"' not in second


def test_the_tokens_of_a_dataset_are_one_bar_with_the_trained_share_below():
    drawn = dataset_shares(PARTS, 0.35)
    shown = plain(drawn)
    assert "tools 20 (20 %)" in shown
    assert "answers 10 (10 %)" in shown
    assert "calls 30 (30 %)" in shown
    assert "results 40 (40 %)" in shown
    assert "trained 35 %" in shown
    (below,) = re.findall(r'<rect class="is-trained"[^>]*width="(35.0)"', drawn)
    assert below
    assert "trained" not in plain(dataset_shares(PARTS, None)).replace("of the trained text", "")


def test_a_dataset_without_tokens_is_a_table_alone():
    empty = AuditTable("lengths", "Tokens by part", ("part", "tokens"), (("sample", 0),))
    assert "<svg" not in dataset_shares(empty, 0.5)
