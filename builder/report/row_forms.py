"""Says on a page how a row of another form was converted, or why it is shown unconverted."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from builder.dataset.rows import DatasetRow
from builder.report.codes import explained
from builder.report.html import EMPTY, Html, join, number, shorten, tag, text
from builder.sample import Sample

_HOW: Mapping[str, str] = MappingProxyType(
    {
        "messages-str": "its tool definitions were decoded from JSON text",
        "tools-in-system": "its tool definitions were read from the system message",
        "prompt-completion": "prompt and completion were joined",
        "prompt-completion-text": "the rendered text was parsed",
        "text": "the rendered text was parsed",
    }
)
"""{form: how it is converted where no reader does it}."""


def how_converted(form: str, reader: str | None) -> Html:
    """Returns what reads rows of a form."""
    if reader is not None:
        return join((text("converted by the reader "), tag("code", text(reader))))
    return text(_HOW.get(form, "converted"))


def conversion_html(row: DatasetRow) -> Html:
    """Returns the form that a row was converted from, how, and with which changes, or nothing."""
    if row.converted is None:
        return EMPTY
    reading = row.reading
    parts = [
        tag("strong", text("Converted for display: ")),
        text("a row of the form "),
        tag("code", text(reading.form)),
        text(", "),
        how_converted(reading.form, reading.reader),
        text("."),
    ]
    if reading.changes:
        listed = ", ".join(f"{code} {number(n)}" for code, n in sorted(reading.changes.items()))
        parts.append(text(f" Changed by the conversion: {listed}."))
    return tag("p", *parts, class_="verdict converted")


def fault_html(row: DatasetRow) -> Html:
    """Returns why a row is not a sample: the code of the problem, and each finding."""
    reading = row.reading
    assert not isinstance(reading.sample, Sample), "a row without a sample"
    form = join((text(" of the form "), tag("code", text(reading.form)))) if reading.form else EMPTY
    head = tag(
        "p",
        tag("strong", text("Not a sample: ")),
        tag("code", text(reading.code)),
        text(". The row"),
        form,
        text(" is shown as it is in the file."),
        class_="verdict open",
    )
    found = [tag("li", text(shorten(finding.message, 400))) for finding in reading.sample[:20]]
    return join((head, tag("ul", *found, class_="note"), explained(reading.code)))
