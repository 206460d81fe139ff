"""Chooses the charts of the report: four on the first screen, all others below it."""

from __future__ import annotations

from dataclasses import replace

from builder.audit.result import Audit, AuditTable, Histogram
from builder.report.charts import (
    anchor,
    bin_counts,
    cell,
    figure,
    folded_numbers,
    histogram_figure,
    is_wide,
    table_figure,
    table_html,
)
from builder.report.html import EMPTY, Html, facts_list, join, tag
from builder.report.page import fit
from builder.report.shares import dataset_shares
from builder.report.survey import Survey, charts

Chart = Histogram | AuditTable

_FIRST = ("tokens", "turns", "tools", "lengths")
"""Keys of the charts on the first screen: lengths, turns, tools, tokens by role."""
_ELSEWHERE = ("rejects",)
"""Keys of tables that a section of their own has."""
_FIRST_ROWS = 6
"""Rows of a table that the first screen draws."""
_CHART_BYTES = 1_000_000


def first_charts(surveyed: Survey, audit: Audit | None) -> Html:
    """Returns the charts of the first screen, each small, with its numbers folded below it."""
    items = {item.key: item for item in _all_charts(surveyed, audit)}
    trained = trained_share(surveyed, audit)
    figures = [_small(items[key], trained) for key in _FIRST if key in items]
    return tag("div", *figures, class_="first-charts") if figures else EMPTY


def other_charts(surveyed: Survey, audit: Audit | None) -> Html:
    """Returns all other charts; those with a single value are one list at the end."""
    elsewhere = (*_FIRST, *_ELSEWHERE)
    figures = [item for item in _all_charts(surveyed, audit) if item.key not in elsewhere]
    drawn = [item for item in figures if _values(item) > 1]
    narrow = [item for item in drawn if not is_wide(item)]
    wide = [item for item in drawn if is_wide(item)]
    single = [_single(item) for item in figures if _values(item) == 1]
    columns = tag("div", fit(_figure, narrow, _CHART_BYTES, "charts"), class_="charts")
    tables = tag("div", fit(_figure, wide, _CHART_BYTES, "tables"))
    listed = EMPTY
    if single:
        listed = figure("single", "With one value", "", facts_list(single, "facts broad"))
    return join((columns, tables, listed))


def trained_share(surveyed: Survey, audit: Audit | None) -> float | None:
    """Returns the share of the tokens that is trained; None if no sample has meta/."""
    trained = audit.facts.trained if audit is not None else None
    if trained is None and surveyed.trained_tokens:
        return surveyed.trained_tokens / surveyed.tokens
    return trained


def _all_charts(surveyed: Survey, audit: Audit | None) -> list[Chart]:
    """Returns the charts of the audit, and those of the survey for everything else.

    Behaviour comes first, tables without bars last.
    """
    histograms, tables = charts(surveyed)
    if audit is not None:
        drawn = {histogram.key for histogram in audit.histograms}
        known = {table.key for table in audit.tables}
        histograms = (*audit.histograms, *(item for item in histograms if item.key not in drawn))
        tables = (*audit.tables, *(item for item in tables if item.key not in known))
    filled = [table for table in tables if any(any(row[1:]) for row in table.rows)]
    patterns = [table for table in filled if table.key == "patterns"]
    others = [table for table in filled if table.key != "patterns"]
    drawn_first = sorted(others, key=lambda table: table.bars is None)
    return [*patterns, *(item for item in histograms if any(item.counts)), *drawn_first]


def _values(item: Chart) -> int:
    """Returns the number of bins or rows that are not empty."""
    if isinstance(item, Histogram):
        return sum(map(bool, item.counts))
    return len(item.rows)


def _single(item: Chart) -> tuple[str, str]:
    """Returns (title, value) of a chart with one value."""
    if isinstance(item, Histogram):
        ((name, count),) = (pair for pair in bin_counts(item) if pair[1])
        return item.title, f"{name} {item.unit}: {cell(count)} samples"
    ((name, *values),) = item.rows
    pairs = zip(item.columns[1:], values, strict=False)
    counted = (f"{column} {cell(value)}" for column, value in pairs if column != "share")
    return item.title, f"{cell(name)}: {', '.join(counted)}"


def _figure(item: Chart) -> Html:
    return histogram_figure(item) if isinstance(item, Histogram) else table_figure(item)


def _small(item: Chart, trained: float | None) -> Html:
    """Returns a chart for half a column."""
    if isinstance(item, Histogram):
        return histogram_figure(item, is_small=True)
    if item.key == "lengths":
        return dataset_shares(item, trained)
    shown = (item.columns[0], item.bars, item.bad)
    columns = [at for at, name in enumerate(item.columns) if name in shown]
    rows = tuple(tuple(row[at] for at in columns) for row in item.rows[:_FIRST_ROWS])
    heads = tuple(item.columns[at] for at in columns)
    first = table_html(replace(item, columns=heads, rows=rows))
    numbers = folded_numbers(item.note, table_html(item))
    return figure(anchor("table", item.key), item.title, "", first, numbers)
