"""Draws charts as SVG with a title and a description, each with a table of its numbers.

The content-security policy forbids style attributes, so only SVG attributes position elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from builder.audit.counts import Counts
from builder.audit.result import Audit, AuditTable, Histogram
from builder.audit.tables import Row, histograms, tables
from builder.qwen3.render import PARTS
from builder.report.html import EMPTY, Html, fit, join, macro, plain, tag
from builder.text import number, percent, shorten

_Chart = Histogram | AuditTable

_MAX_ROWS = 60
"""Rows of a table on the page; the rest is counted in a line."""
_OPEN_ROWS = 12
"""Rows that are visible without unfolding."""
_MAX_BINS = 64
"""Bins of a histogram; more are merged."""
_NAME = 72
"""Characters of a cell in a table."""
_WIDTH = 340
"""Width of a chart, which a phone shows unscaled."""
_FIRST = ("tokens", "turns", "tools", "lengths")
"""Keys of the charts on the first screen: lengths, turns, tools, tokens by part."""
_FIRST_ROWS = 6
_CHART_BYTES = 1_000_000


# -- which charts --------------------------------------------------------------------------------


def first_charts(counts: Counts, audit: Audit | None) -> Html:
    """Returns the charts of the first screen, each small, with its numbers folded below it."""
    items = {item.key: item for item in _all_charts(counts, audit)}
    figures = [_small(items[key], counts.trained_share) for key in _FIRST if key in items]
    return tag("div", *figures, class_="first-charts") if figures else EMPTY


def other_charts(counts: Counts, audit: Audit | None) -> Html:
    """Returns all other charts; those with a single value are one list at the end."""
    figures = [item for item in _all_charts(counts, audit) if item.key not in _FIRST]
    drawn = [item for item in figures if _values(item) > 1]
    narrow = [item for item in drawn if not _is_wide(item)]
    wide = [item for item in drawn if _is_wide(item)]
    single = [_single(item) for item in figures if _values(item) == 1]
    columns = tag("div", fit(_figure, narrow, _CHART_BYTES, "charts"), class_="charts")
    listed = EMPTY
    if single:
        facts = macro("charts", "facts", pairs=single, style="facts broad")
        listed = _section("single", "With one value", "", facts)
    return join((columns, fit(_figure, wide, _CHART_BYTES, "tables"), listed))


def _all_charts(counts: Counts, audit: Audit | None) -> list[_Chart]:
    """Returns the charts of the audit or the counts, behaviour first, tables without bars last."""
    drawn: Iterable[Histogram] = audit.histograms if audit is not None else histograms(counts)
    made: Iterable[AuditTable] = audit.tables if audit is not None else tables(counts)
    filled = [table for table in made if any(any(row[1:]) for row in table.rows)]
    patterns = [table for table in filled if table.key == "patterns"]
    others = [table for table in filled if table.key != "patterns"]
    drawn_first = sorted(others, key=lambda table: table.bars is None)
    return [*patterns, *(item for item in drawn if any(item.counts)), *drawn_first]


def _values(item: _Chart) -> int:
    return sum(map(bool, item.counts)) if isinstance(item, Histogram) else len(item.rows)


def _single(item: _Chart) -> tuple[str, str]:
    """Returns (title, value) of a chart with one value."""
    if isinstance(item, Histogram):
        ((name, count),) = (pair for pair in bin_counts(item) if pair[1])
        return item.title, f"{name} {item.unit}: {_cell(count)} samples"
    ((name, *values),) = item.rows
    pairs = zip(item.columns[1:], values, strict=False)
    counted = (f"{column} {_cell(value)}" for column, value in pairs if column != "share")
    return item.title, f"{_cell(name)}: {', '.join(counted)}"


def _is_wide(item: _Chart) -> bool:
    """Returns whether a table needs the full width of the page, judging by its longest cells."""
    if not isinstance(item, AuditTable):
        return False
    rows = (item.columns, *item.rows[:_OPEN_ROWS])
    letters = [
        max(min(len(_cell(row[at])), 40) for row in rows if at < len(row))
        for at in range(len(item.columns))
    ]
    return sum(letters) + (14 if item.bars else 0) > 80 or max(letters[1:], default=0) > 30


def _figure(item: _Chart) -> Html:
    if isinstance(item, Histogram):
        return histogram_figure(item)
    return _section(_anchor("table", item.key), item.title, item.note, table_html(item))


def _small(item: _Chart, trained: float | None) -> Html:
    """Returns a chart for half a column."""
    if isinstance(item, Histogram):
        return histogram_figure(item)
    if item.key == "lengths":
        return dataset_shares(item, trained)
    shown = (item.columns[0], item.bars, item.bad)
    columns = [at for at, name in enumerate(item.columns) if name in shown]
    rows = tuple(tuple(row[at] for at in columns) for row in item.rows[:_FIRST_ROWS])
    heads = tuple(item.columns[at] for at in columns)
    first = table_html(replace(item, columns=heads, rows=rows))
    key = _anchor("table", item.key)
    return _section(key, item.title, "", join((first, _numbers(item.note, table_html(item)))))


def _section(key: str, title: str, note: str, content: Html) -> Html:
    return macro("charts", "figure", key=key, title=title, note=note, content=content)


def _numbers(note: str, table: Html) -> Html:
    return macro("charts", "numbers", note=note, table=table)


def _anchor(kind: str, key: str) -> str:
    kept = "".join(char if char.isascii() and char.isalnum() else "-" for char in key)
    return f"{kind}-{kept[:60]}"


# -- tables and bars ----------------------------------------------------------------------------


def table_html(table: AuditTable) -> Html:
    """Returns a table with a bar next to each number of the drawn column.

    The first rows are visible, further ones after unfolding.
    """
    targets = dict(table.target)
    compares = len(table.rows) > 1 or bool(targets)
    drawn = table.columns.index(table.bars) if compares and table.bars in table.columns else -1
    bad = table.columns.index(table.bad) if table.bad in table.columns else None
    kinds = ["num" if _is_numeric(table, at) else "" for at in range(len(table.columns))]
    formats = [_percent if _is_share(table, at) else _cell for at in range(len(table.columns))]
    values = [_size(row[drawn]) for row in table.rows if 0 <= drawn < len(row)]
    most = max([*values, *targets.values(), 0.0]) or 1.0
    heads: list[tuple[str, str]] = []
    for at, column in enumerate(table.columns):
        heads.append((column, kinds[at]))
        if at == drawn:
            heads += [("target", "num")] if targets else []
            heads.append(("", "bar"))
    lines: list[list[tuple[str, str]]] = []
    for row in table.rows[:_MAX_ROWS]:
        cells: list[tuple[str, str]] = []
        for at, value in enumerate(row[: len(table.columns)]):
            cells.append((shorten(formats[at](value), _NAME), kinds[at]))
            if at == drawn:
                name, goal = _cell(row[0]), targets.get(_cell(row[0]))
                wanted = "" if goal is None else formats[at](goal)
                cells += [(wanted, "num")] if targets else []
                title = f"{name}: {formats[at](value)}" + (f", target {wanted}" if wanted else "")
                wrong = _size(row[bad]) if bad is not None and bad < len(row) else 0.0
                if wrong:
                    share = 100 * wrong / (_size(value) or 1)
                    title += f", {number(round(wrong))} ({share:.0f} %) {table.bad}"
                cells.append((_bar(title, _size(value), most, goal, wrong), "bar"))
        lines.append(cells)
    open_rows = _OPEN_ROWS if len(lines) >= _OPEN_ROWS + 4 else len(lines)
    return macro(
        "charts", "table", heads=heads, lines=lines[:open_rows], more=lines[open_rows:],
        left=len(table.rows) - len(lines), kind="many" if len(table.columns) > 3 else "",
    )  # fmt: skip


def _bar(title: str, value: float, most: float, goal: float | None, bad: float) -> Html:
    return macro(
        "charts", "bar", title=shorten(title, 2 * _NAME), width=100 * value / most,
        bad=max(100 * min(bad, value) / most, 1.0) if bad else 0,
        goal=None if goal is None else 100 * goal / most,
    )  # fmt: skip


def _size(value: str | float | None) -> float:
    return max(float(value), 0.0) if isinstance(value, int | float) else 0.0


def _cell(value: str | float | None) -> str:
    """Returns the text of a cell in a table."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else number(value)


def _percent(value: str | float | None) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else _cell(value)


def _is_share(table: AuditTable, column: int) -> bool:
    """Returns whether a column contains shares from 0 to 1."""
    values = [row[column] for row in table.rows if column < len(row)]
    return table.columns[column] == "share" and all(
        isinstance(value, int | float) and 0 <= value <= 1 for value in values
    )


def _is_numeric(table: AuditTable, column: int) -> bool:
    values = [row[column] for row in table.rows if column < len(row) and row[column] is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


# -- histograms ---------------------------------------------------------------------------------


def histogram_figure(histogram: Histogram) -> Html:
    """Returns the histogram, its note in one line, and a table of its numbers, folded."""
    key = _anchor("chart", histogram.key)
    if not histogram.counts or len(histogram.edges) != len(histogram.counts) + 1:
        return _section(key, histogram.title, "nothing to count", EMPTY)
    drawn, height = _drawing(histogram, key, _WIDTH)
    svg = macro("charts", "chart", drawn=drawn, width=_WIDTH, height=f"{height:g}", key=key)
    lines = [[(str(name), ""), (_cell(count), "num")] for name, count in bin_counts(histogram)]
    heads = [(histogram.unit, ""), ("samples", "num")]
    rows = macro("charts", "rows", heads=heads, lines=lines, kind="numbers")
    below = tag("p", plain(histogram.note), class_="note") if histogram.note else EMPTY
    return _section(key, histogram.title, "", join((svg, below, _numbers("", rows))))


def bin_counts(histogram: Histogram) -> tuple[Row, ...]:
    """Returns (range, samples) of each bin that is drawn."""
    edges, counts = _merged(histogram)
    return tuple(zip(_bins(edges), counts, strict=True))


def description(histogram: Histogram) -> str:
    """Describes the histogram in a sentence, for screen readers."""
    edges, counts = _merged(histogram)
    most = max(counts)
    peak = _bins(edges)[counts.index(most)]
    low, high = histogram.extent or (edges[0], edges[-1])
    drawn = f"{number(sum(counts))} samples from {number(low)} to {number(high)}"
    return f"{drawn} {histogram.unit}; most of them, {number(most)}, at {peak}."


def _bins(edges: list[int]) -> list[str]:
    """Returns the name of each bin: `8 to 15`, for the last `16 and more`."""
    names = []
    for low, high in pairwise(edges):
        names.append(number(low) if high - low == 1 else f"{number(low)} to {number(high - 1)}")
    names[-1] = f"{number(edges[-2])} and more"
    return names


def _merged(histogram: Histogram) -> tuple[list[int], list[int]]:
    step = -(-len(histogram.counts) // _MAX_BINS) or 1
    counts = [sum(histogram.counts[at : at + step]) for at in range(0, len(histogram.counts), step)]
    return list(histogram.edges[:-1:step]) + list(histogram.edges[-1:]), counts


def _drawing(histogram: Histogram, key: str, width: int) -> tuple[Html, float]:
    """Returns the contents of an `svg` element and its height; `key` is the prefix of its ids."""
    edges, counts = _merged(histogram)
    left, right, top = 8.0, width - 8.0, 22.0
    height = 150.0 if width > 400 else 105.0
    base, most = top + height, max(counts) or 1
    step = (right - left) / len(counts)
    bars = []
    for at, (name, count) in enumerate(zip(_bins(edges), counts, strict=True)):
        tall = max(height * count / most, 1.5) if count else 0
        place = (left + at * step + 0.5, base - tall, step - 1, tall)
        bars.append((f"{name} {histogram.unit}: {number(count)}", place))
    drawn = macro(
        "charts", "bars", key=key, chart=histogram, described=description(histogram), left=left,
        right=right, top=top, height=height, base=base, most=number(most), bars=bars,
        ticks=[*_ticks(edges, left, right)],
    )  # fmt: skip
    return drawn, base + 40


def _ticks(edges: list[int], left: float, right: float) -> Iterator[tuple[float, str, str]]:
    """Yields the place of each tick, its number and the anchor of that."""
    step = (right - left) / (len(edges) - 1)
    single = all(high - low == 1 for low, high in pairwise(edges))  # labelled at its centre
    every = max(1, round((33 if single else 66) / step + 0.499))
    for at in range(0, len(edges) - single, every):
        x = round(left + (at + single / 2) * step, 2)
        anchored = "end" if x > right - 20 else "middle" if x > left + 20 else ""
        yield x, number(edges[at]), anchored


# -- tokens by part -----------------------------------------------------------------------------


def share_bar(
    parts: Mapping[str, int], spans: Iterable[tuple[int, int]], length: int, trained: int
) -> Html:
    """Returns a bar of the parts of a sample, and of its trained text, with their tokens."""
    whole = max(length, 1)
    drawn = [(100 * start / whole, max(100 * (end - start) / whole, 0.05)) for start, end in spans]
    share = percent(trained / max(sum(parts.values()), 1))
    caption = f"trained {number(trained)} ({share})" if trained else ""
    label = "Tokens by part, and the places of the trained text in the sample"
    return _shares(parts, drawn, caption, label)


def dataset_shares(table: AuditTable, trained: float | None) -> Html:
    """Returns a bar of the parts of a whole dataset, from the table `lengths`, with its numbers.

    `trained` is the share of the text that is trained, drawn below; None if it is not known.
    """
    sizes = {str(row[0]): int(_size(row[1])) for row in table.rows}
    parts = {name: size for name in PARTS if (size := sizes.get(name, 0))}
    key, numbers = _anchor("table", table.key), table_html(table)
    if not parts:
        return _section(key, table.title, table.note, numbers)
    below = [(0, 100 * trained)] if trained else []
    caption = f"trained {percent(trained)}" if trained else ""
    label = "Tokens of the dataset by part, and the share of the trained text below"
    bar = _shares(parts, below, caption, label)
    return _section(key, table.title, "", join((bar, _numbers(table.note, numbers))))


def _shares(
    parts: Mapping[str, int], below: Sequence[tuple[float, float]], caption: str, label: str
) -> Html:
    """Returns a bar of parts above what is trained, and their names with counts and shares.

    `below` has (beginning, width) of each trained piece, in percent.
    """
    drawn, at = [], 0.0
    for name, count in parts.items():
        wide = 100 * count / sum(parts.values())
        words = f"{name} {number(count)} ({percent(wide / 100)})"
        drawn.append((f"part-{PARTS.index(name)}", words, at, wide))
        at += wide
    return macro("charts", "shares", parts=drawn, below=below, caption=caption, label=label)


# -- files for the card -------------------------------------------------------------------------

_WIDE, _MARGIN, _ROW, _PICTURE_ROWS = 640, 12, 24, 24


def picture(item: _Chart) -> bytes | None:
    """Returns a histogram, or the drawn column of a table as bars, as an SVG file for the card.

    None if there is nothing to draw.
    """
    if isinstance(item, Histogram):
        if not any(item.counts) or len(item.edges) != len(item.counts) + 1:
            return None
        return _file(*_drawing(item, "chart", _WIDE - 2 * _MARGIN))
    if item.bars not in item.columns or not item.rows:
        return None
    column = item.columns.index(item.bars)
    rows = [row for row in item.rows if len(row) > column][:_PICTURE_ROWS]
    values = [_size(row[column]) for row in rows]
    if not any(values):
        return None
    left, right = 220.0, _WIDE - 2 * _MARGIN - 70.0
    lines = []
    for place, (row, value) in enumerate(zip(rows, values, strict=True)):
        caption = _percent(value) if item.bars == "share" else number(value)
        wide = (right - left) * value / max(values)
        lines.append((place * _ROW, shorten(str(row[0]), 30), wide, caption))
    drawn = macro("charts", "lines", title=item.title, left=left, lines=lines, tall=_ROW - 8)
    return _file(drawn, len(rows) * _ROW)


def _file(drawn: Html, height: float) -> bytes:
    whole = f"{height + 2 * _MARGIN:g}"
    svg = macro("charts", "file", drawn=drawn, width=_WIDE, height=whole, margin=_MARGIN)
    return f"{svg}\n".encode()
