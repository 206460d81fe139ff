"""Explains the codes of a report to users: meaning, example and remedy.

The texts are in `builder/codes.tsv`.
"""

from __future__ import annotations

from builder.codes import explain
from builder.normalize.as_options import with_options
from builder.report.html import EMPTY, Html, prose, tag


def explained(code: str) -> Html:
    """Returns a paragraph with meaning, example and remedy of a code, or nothing."""
    explanation = explain(code)
    if explanation is None:
        return EMPTY
    sentence = f"{explanation.meaning[:1].upper()}{explanation.meaning[1:]}"
    words = (
        f"{sentence}. Example: {explanation.example}. Remedy: {with_options(explanation.remedy)}."
    )
    return tag("p", prose(words), class_="note")
