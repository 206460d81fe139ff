"""The charts of the first screen: what they draw."""

import re

from support.pages.reports import plain

from builder.audit.result import AuditTable
from builder.report.charts import dataset_shares, table_html

PARTS = AuditTable(
    "lengths", "Tokens by part", ("part", "tokens", "share"),
    (("sample", 100, 1.0), ("tools", 20, 0.2), ("results", 40, 0.4), ("answers", 10, 0.1),
     ("calls", 30, 0.3)),
)  # fmt: skip


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
