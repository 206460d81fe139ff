"""Draws charts as SVG with a title and a description, each with a table of its numbers.

The content-security policy forbids style attributes, so only SVG attributes position elements. A
chart with text is drawn twice, wide and narrow, because scaled text would be illegible on a phone;
the style sheet shows one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from builder.audit.result import AuditTable, Histogram
from builder.report.html import EMPTY, Html, escape_invisible, join, plain, shorten, tag, text
from builder.text import number

MAX_ROWS = 60
"""Rows of a table on the page; the rest is counted in a line."""
OPEN_ROWS = 12
"""Rows that are visible without unfolding."""
MAX_BINS = 64
"""Bins of a histogram; more are merged."""
NAME = 72
"""Characters of a cell in a table."""

Row = tuple[str | int | float | None, ...]

_SHARED = 16
"""Characters of a label of several marks, which must fit beside its line in a small chart."""

_LETTER = 6.4
"""Approximate width of a letter in a chart's units."""


def is_wide(item: Histogram | AuditTable) -> bool:
    """Returns whether a table needs the full width of the page, judging by its longest cells."""
    if not isinstance(item, AuditTable):
        return False
    rows = (item.columns, *item.rows[:OPEN_ROWS])
    letters = [
        max(min(len(cell(row[at])), 40) for row in rows if at < len(row))
        for at in range(len(item.columns))
    ]
    return sum(letters) + (14 if item.bars else 0) > 80 or max(letters[1:], default=0) > 30


def figure(key: str, title: str, note: str, *content: Html) -> Html:
    """Returns a section with a heading, a note, and charts or tables."""
    heading = tag("h3", text(title), id=f"{key}-title")
    caption = tag("p", text(note), class_="note") if note else EMPTY
    return tag("section", heading, caption, *content, class_="figure", id=key)


def anchor(kind: str, key: str) -> str:
    """Returns a valid `id` for a key, which may contain anything."""
    kept = "".join(char if char.isascii() and char.isalnum() else "-" for char in key)
    return f"{kind}-{kept[:60]}"


# -- tables and bars ----------------------------------------------------------------------------


def table_figure(table: AuditTable) -> Html:
    """Returns a table as a section with a heading."""
    return figure(anchor("table", table.key), table.title, table.note, table_html(table))


def table_html(table: AuditTable) -> Html:
    """Returns a table with a bar next to each number of the drawn column.

    The first rows are visible, further ones after unfolding.
    """
    first, more = table.rows[:OPEN_ROWS], table.rows[OPEN_ROWS:MAX_ROWS]
    if len(more) < 4:
        first, more = (*first, *more), ()
    left = len(table.rows) - len(first) - len(more)
    pieces = [_rows(table, first)]
    lost = tag("p", text(f"and {number(left)} more, not on this page"), class_="note")
    if more:
        head = tag("summary", text(f"{number(len(table.rows) - len(first))} more"))
        pieces.append(tag("details", head, _rows(table, more), lost if left else EMPTY))
    return join(pieces)


def _rows(table: AuditTable, rows: Sequence[Row]) -> Html:
    targets = dict(table.target)
    compares = len(table.rows) > 1 or bool(targets)
    drawn = table.columns.index(table.bars) if compares and table.bars in table.columns else None
    bad = table.columns.index(table.bad) if table.bad in table.columns else None
    numeric = [_is_numeric(table, at) for at in range(len(table.columns))]
    formats = [_percent if _is_share(table, at) else cell for at in range(len(table.columns))]
    values = [_size(row[drawn]) for row in table.rows if drawn is not None and drawn < len(row)]
    most = max([*values, *targets.values(), 0.0]) or 1.0
    head: list[Html] = []
    for at, column in enumerate(table.columns):
        head.append(tag("th", text(column), scope="col", class_=_kind(numeric[at])))
        if at == drawn:
            head += [tag("th", text("target"), scope="col", class_="num")] if targets else []
            head.append(tag("td", class_="bar"))
    body = []
    for row in rows:
        name = cell(row[0]) if row else ""
        cells: list[Html] = []
        for at, value in enumerate(row[: len(table.columns)]):
            caption = text(shorten(formats[at](value), NAME))
            if at == 0:
                cells.append(tag("th", caption, scope="row", class_=_kind(numeric[at])))
            else:
                cells.append(tag("td", caption, class_=_kind(numeric[at])))
            if at == drawn:
                goal = targets.get(name)
                wanted = "" if goal is None else formats[at](goal)
                cells += [tag("td", text(wanted), class_="num")] if targets else []
                title = f"{name}: {formats[at](value)}" + (f", target {wanted}" if wanted else "")
                wrong = _size(row[bad]) if bad is not None and bad < len(row) else 0.0
                title += f", {_part(wrong, _size(value))} {table.bad}" if wrong else ""
                cells.append(tag("td", _bar(title, _size(value), most, goal, wrong), class_="bar"))
        body.append(tag("tr", *cells))
    kind = "many" if len(table.columns) > 3 else None
    drawn_table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), class_=kind)
    return tag("div", drawn_table, class_="scroll")


def _kind(is_number: bool) -> str | None:
    return "num" if is_number else None


def _part(part: float, whole: float) -> str:
    return f"{number(round(part))} ({100 * part / (whole or 1):.0f} %)"


def _bar(title: str, value: float, most: float, goal: float | None, bad: float = 0.0) -> Html:
    marks = [
        tag("title", plain(shorten(title, 2 * NAME))),
        rect("fill", 0, 2, 100 * value / most, 8),
    ]
    if bad:
        marks.append(rect("bad", 0, 2, max(100 * min(bad, value) / most, 1.0), 8))
    if goal is not None:
        goal_x = round(100 * goal / most, 2)
        marks.append(
            tag(
                "line",
                class_="goal",
                x1=goal_x,
                x2=goal_x,
                y1=0,
                y2=12,
                vector_effect="non-scaling-stroke",
            )
        )
    return tag("svg", *marks, role="img", viewBox="0 0 100 12", preserveAspectRatio="none")


def rect(kind: str, x: float, y: float, width: float, height: float) -> Html:
    """Returns a rectangle of a class `kind`."""
    return tag(
        "rect", class_=kind, x=round(x, 2), y=round(y, 2), width=round(max(width, 0), 2),
        height=round(max(height, 0), 2),
    )  # fmt: skip


def _size(value: str | float | None) -> float:
    return max(float(value), 0.0) if isinstance(value, int | float) else 0.0


def cell(value: str | float | None) -> str:
    """Returns the text of a cell in a table."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else number(value)


def _percent(value: str | float | None) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else cell(value)


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


def histogram_figure(histogram: Histogram, *, is_small: bool = False) -> Html:
    """Returns the histogram, wide and narrow, and a table of its numbers.

    `is_small`: only narrow, with its notes among the numbers.
    """
    edges, counts = _merged(histogram)
    key = anchor("chart", histogram.key)
    if not counts or len(edges) != len(counts) + 1:
        return figure(key, histogram.title, "nothing to count")
    numbers = _every_row((histogram.unit, "samples"), bin_counts(histogram))
    beyond = [f"{name} at {number(value)}" for name, value in histogram.marks if value > edges[-1]]
    notes = [histogram.note] if histogram.note else []
    notes += [f"Beyond the right edge: {', '.join(beyond)}."] if beyond else []
    note = " ".join(notes)
    narrow = _drawing(histogram, f"{key}-narrow", 310 if is_small else 340, "narrow")
    if is_small:
        return figure(key, histogram.title, "", narrow, folded_numbers(note, numbers))
    wide = _drawing(histogram, f"{key}-wide", 600, "wide")
    return figure(key, histogram.title, note, wide, narrow, folded_numbers("", numbers))


def folded_numbers(note: str, numbers: Html) -> Html:
    """Returns the numbers of a chart, which unfold, below a note about them."""
    caption = tag("p", text(note), class_="note") if note else EMPTY
    return tag("details", tag("summary", text("The numbers")), caption, numbers)


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


def _drawing(histogram: Histogram, key: str, width: int, kind: str) -> Html:
    drawn, height = histogram_drawing(histogram, key, width)
    return tag(
        "svg", *drawn, role="img", class_=f"chart {kind}", viewBox=f"0 0 {width} {height:g}",
        aria_labelledby=f"{key}-t {key}-d",
    )  # fmt: skip


def _bins(edges: list[int]) -> list[str]:
    """Returns the name of each bin: `8 to 15`, for the last `16 and more`."""
    names = []
    for low, high in pairwise(edges):
        names.append(number(low) if high - low == 1 else f"{number(low)} to {number(high - 1)}")
    names[-1] = f"{number(edges[-2])} and more"
    return names


def _every_row(columns: Sequence[str], rows: Sequence[Row]) -> Html:
    body = [
        tag("tr", tag("th", text(cell(row[0])), scope="row"), tag("td", text(cell(row[1]))))
        for row in rows
    ]
    head = tag("tr", *(tag("th", text(column), scope="col") for column in columns))
    return tag("table", tag("thead", head), tag("tbody", *body), class_="numbers")


def _merged(histogram: Histogram) -> tuple[list[int], list[int]]:
    """Returns edges and counts, with neighbouring bins merged to at most MAX_BINS."""
    step = -(-len(histogram.counts) // MAX_BINS) or 1
    counts = [sum(histogram.counts[at : at + step]) for at in range(0, len(histogram.counts), step)]
    edges = list(histogram.edges[:-1:step]) + list(histogram.edges[-1:])
    return edges, counts


def histogram_drawing(histogram: Histogram, key: str, width: int) -> tuple[list[Html], float]:
    """Returns the contents of an `svg` element and its height; `key` is the prefix of its ids."""
    edges, counts = _merged(histogram)
    desc = description(histogram)
    left, right, height = 8.0, width - 8.0, 150.0 if width > 400 else 105.0
    marks = _marks(histogram, edges)
    placed = _labels(marks, edges, left, right)
    rows = 1 + max((row for *_, row in placed), default=-1)
    top = 22.0 + 15 * rows
    most = max(counts) or 1
    step = (right - left) / len(counts)
    title = tag("title", plain(histogram.title), id=f"{key}-t")
    drawn = [title, tag("desc", plain(desc), id=f"{key}-d")]
    for share in (0.5, 1.0):
        y = round(top + height * (1 - share), 2)
        drawn.append(tag("line", class_="grid", x1=left, x2=right, y1=y, y2=y))
    drawn.append(label(left, top - 5, f"{number(most)} samples", "muted"))
    names = _bins(edges)
    for at, count in enumerate(counts):
        tall = max(height * count / most, 1.5) if count else 0
        caption = f"{names[at]} {histogram.unit}: {number(count)}"
        bar = rect("fill", left + at * step + 0.5, top + height - tall, step - 1, tall)
        drawn.append(tag("g", tag("title", plain(caption)), bar))
    base = top + height
    drawn.append(tag("line", class_="axis", x1=left, x2=right, y1=base, y2=base))
    drawn += _ticks(edges, left, right, base, 66)
    drawn.append(label(right, base + 34, histogram.unit, "muted", "end"))
    # labels after all lines, so that none is struck through
    drawn += [
        tag("line", class_="goal", x1=x, x2=x, y1=3 + 15 * row, y2=base)
        for _, x, _, _, row in placed
    ]
    drawn += [
        label(place, 12 + 15 * row, name, "mark", "end" if at_end else None)
        for name, _, place, at_end, row in placed
    ]
    return drawn, base + 40


def _marks(histogram: Histogram, edges: list[int]) -> list[tuple[str, int]]:
    """Returns the marks within the edges; short names of the same value share a label."""
    marks: list[tuple[str, int]] = []
    for name, value in sorted(histogram.marks, key=lambda mark: mark[1]):
        if not edges[0] <= value <= edges[-1]:
            continue
        joined = f"{marks[-1][0]}, {name}" if marks and marks[-1][1] == value else ""
        if joined and len(joined) <= _SHARED:
            marks[-1] = (joined, value)
        else:
            marks.append((name, value))
    return marks


def _labels(
    marks: list[tuple[str, int]], edges: list[int], left: float, right: float
) -> list[tuple[str, float, float, bool, int]]:
    """Returns (label, x of the line, x of the label, label left of the line?, row) of each mark.

    Labels that would overlap get rows of their own, and a line begins below the labels that it
    would cross.
    """
    placed: list[tuple[str, float, float, bool, int]] = []
    ends: list[float] = []
    spans: list[tuple[float, float, int]] = []
    for name, value in sorted(marks, key=lambda mark: mark[1]):
        caption = shorten(escape_invisible(name), 30)
        if not name[:1].isdigit():  # "8k" is a number already
            caption += f" {number(value)}"
        x = round(_position(value, edges, left, right), 2)
        long = len(caption) * _LETTER
        at_end = x + 4 + long > right
        begin = x - 4 - long if at_end else x + 4
        above = [row + 1 for start, end, row in spans if start < x < end]
        rows = range(max(above, default=0), len(ends))
        row = next((at for at in rows if ends[at] < begin - 6), max(len(ends), *above, 0))
        ends[row : row + 1] = [begin + long]
        spans.append((begin, begin + long, row))
        placed.append((caption, x, x - 4 if at_end else x + 4, at_end, row))
    return placed


def _position(value: float, edges: list[int], left: float, right: float) -> float:
    """Returns the x coordinate of a value; bins are drawn with equal width."""
    step = (right - left) / (len(edges) - 1)
    for at, (low, high) in enumerate(pairwise(edges)):
        if value <= high:
            return left + step * (at + (value - low) / ((high - low) or 1))
    return right


def _ticks(edges: list[int], left: float, right: float, base: float, apart: float) -> list[Html]:
    step = (right - left) / (len(edges) - 1)
    every = max(1, round(apart / step + 0.499))
    single = all(high - low == 1 for low, high in pairwise(edges))  # labelled at its centre
    if single:
        every = max(1, round(apart / 2 / step + 0.499))
    drawn = []
    for at in range(0, len(edges) - single, every):
        x = round(left + (at + single / 2) * step, 2)
        anchored = "end" if x > right - 20 else "middle" if x > left + 20 else None
        drawn.append(tag("line", class_="axis", x1=x, x2=x, y1=base, y2=base + 4))
        drawn.append(label(x, base + 17, number(edges[at]), "muted", anchored))
    return drawn


def label(x: float, y: float, caption: str, kind: str, anchored: str | None = None) -> Html:
    """Returns text of a class `kind`; `anchored` is "middle", "end" or None for the start."""
    return tag(
        "text", plain(caption), class_=kind, x=round(x, 2), y=round(y, 2), text_anchor=anchored
    )
