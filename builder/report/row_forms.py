"""Explains on a page how a row was converted from another form, or why it was not."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from builder.codes import meaning_of_change
from builder.dataset.rows import DatasetRow
from builder.report.codes import explained
from builder.report.html import EMPTY, Html, join, shorten, statement, tag, text
from builder.sample import Sample
from builder.text import number

_HOW: Mapping[str, str] = MappingProxyType(
    {
        "messages-str": "its tool definitions were decoded from JSON text",
        "tools-in-system": "its tool definitions were read from the system message",
        "prompt-completion": "prompt and completion were joined",
        "prompt-completion-text": "the rendered text was parsed",
        "text": "the rendered text was parsed",
    }
)
"""{form: how rows are converted without a reader}"""


def conversion_html(row: DatasetRow) -> Html:
    """Returns how a row was converted, from which form and with which changes, or nothing."""
    if row.converted is None:
        return EMPTY
    reading = row.reading
    how = _HOW.get(reading.form, "converted")
    if reading.reader is not None:
        how = f"converted by the reader `{reading.reader}`"
    words = f"a row of the form `{reading.form}`, {how}."
    if reading.changes:
        listed = "; ".join(
            f"{meaning_of_change(code) or code} ({number(n)})"
            for code, n in sorted(reading.changes.items())
        )
        words += f" Changed by the conversion: {listed}."
    return statement("Converted for display: ", words, "verdict converted")


def fault_html(row: DatasetRow) -> Html:
    """Returns why a row is not a sample: the code of the problem, and the findings."""
    reading = row.reading
    assert not isinstance(reading.sample, Sample), "a row without a sample"
    form = f" of the form `{reading.form}`" if reading.form else ""
    words = f"`{reading.code}`. The row{form} is shown as stored in the file."
    head = statement("Not a sample: ", words, "verdict open")
    faults = [tag("li", text(shorten(finding.message, 400))) for finding in reading.sample[:20]]
    return join((head, tag("ul", *faults, class_="note"), explained(reading.code)))
