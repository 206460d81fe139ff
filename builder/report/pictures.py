"""Draws charts as SVG files for the card.

The Hub shows them as images on a light or dark page, so each contains its styles and background.
"""

from __future__ import annotations

from builder.audit.result import AuditTable, Histogram
from builder.report.charts import histogram_drawing
from builder.report.html import Html, plain, shorten, tag
from builder.text import number

_STYLE = Html(
    "<style>"
    "text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1b2027}"
    ".muted{fill:#596472}"
    ".mark{fill:#a2410f;paint-order:stroke;stroke:#ffffff;stroke-width:4px}"
    ".fill{fill:#2260a8}.paper{fill:#ffffff}"
    ".grid{stroke:#dde1e7}.axis{stroke:#596472}"
    ".goal{stroke:#a2410f;stroke-width:2;stroke-dasharray:4 3}"
    "</style>"
)
_WIDTH = 640
_MARGIN = 12
_ROW = 24
_MAX_ROWS = 24
_NAME = 30


def histogram_picture(histogram: Histogram) -> bytes | None:
    """Returns a histogram as an SVG file; None if there is nothing to draw."""
    if not any(histogram.counts) or len(histogram.edges) != len(histogram.counts) + 1:
        return None
    drawn, height = histogram_drawing(histogram, "chart", _WIDTH - 2 * _MARGIN)
    return _file(drawn, height)


def bars_picture(table: AuditTable) -> bytes | None:
    """Returns the drawn column of a table as bars; None if there is nothing to draw."""
    if table.bars not in table.columns or not table.rows:
        return None
    column = table.columns.index(table.bars)
    rows = [row for row in table.rows if len(row) > column][:_MAX_ROWS]
    values = [max(float(row[column] or 0), 0.0) for row in rows if not isinstance(row[column], str)]
    if len(values) != len(rows) or not any(values):
        return None
    is_share = table.bars == "share"
    drawn = [tag("title", plain(table.title), id="chart-t")]
    left, right = 220.0, _WIDTH - 2 * _MARGIN - 70.0
    for place, (row, value) in enumerate(zip(rows, values, strict=True)):
        y = place * _ROW
        label = f"{100 * value:.1f} %" if is_share else number(value)
        name = plain(shorten(str(row[0]), _NAME))
        wide = round((right - left) * value / max(values), 2)
        drawn.append(tag("text", name, x=left - 10, y=y + 16, text_anchor="end"))
        drawn.append(tag("rect", class_="fill", x=left, y=y + 4, width=wide, height=_ROW - 8))
        drawn.append(tag("text", plain(label), x=left + wide + 6, y=y + 16, class_="muted"))
    return _file(drawn, len(rows) * _ROW)


def _file(drawn: list[Html], height: float) -> bytes:
    whole = height + 2 * _MARGIN
    paper = tag("rect", class_="paper", width=_WIDTH, height=f"{whole:g}", rx=6)
    picture = tag(
        "svg",
        _STYLE,
        paper,
        tag("g", *drawn, transform=f"translate({_MARGIN} {_MARGIN})"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {whole:g}",
        width=_WIDTH,
        height=f"{whole:g}",
        role="img",
        aria_labelledby="chart-t",
    )
    return f"{picture}\n".encode()
