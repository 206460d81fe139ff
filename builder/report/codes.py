"""Explains the codes of a report to users: meaning, example and remedy.

The texts are in `builder/codes.tsv`.
"""

from __future__ import annotations

from collections.abc import Mapping

from builder.codes import explain
from builder.report.html import EMPTY, Html, join, prose, tag, text


def explained(code: str) -> Html:
    """Returns a paragraph with meaning, example and remedy of a code, or nothing."""
    explanation = explain(code)
    if explanation is None:
        return EMPTY
    sentence = f"{explanation.meaning[:1].upper()}{explanation.meaning[1:]}"
    words = f"{sentence}. Example: {explanation.example}. Remedy: {explanation.remedy}."
    return tag("p", prose(words), class_="note")


def codes_html(codes: Mapping[str, int]) -> Html:
    """Returns a list that explains the codes; those without a text are omitted."""
    terms = [
        join((tag("dt", tag("code", text(code))), tag("dd", explained(code))))
        for code in codes
        if explain(code) is not None
    ]
    return tag("dl", *terms, class_="codes") if terms else EMPTY
