"""Explains the codes of a report to users: meaning, example and remedy.

The texts are in assets/codes.tsv, one line per code. Backticks mark code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from builder.report.html import EMPTY, Html, join, prose, tag, text

SELECTED = "select_"
"""Prefix of the codes of `select.where`: the rest is the user's field."""


@dataclass(frozen=True, slots=True)
class CodeText:
    """The meaning of a code, an example, and a remedy."""

    meaning: str
    example: str
    remedy: str


_CONDITION = CodeText(
    "does not meet a condition of `select.where`",
    "`select.where: {tokens: {max: 32768}}` and a longer sample",
    "`select.where`: another condition",
)


@cache
def code_texts() -> Mapping[str, CodeText]:
    """Returns the texts by code."""
    table = (files("builder.report") / "assets" / "codes.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in table.splitlines()[1:])
    return {code: CodeText(*cells) for code, *cells in rows}


def explain(code: str) -> CodeText | None:
    """Returns the text of a code, or None, as for the name of a record type."""
    found = code_texts().get(code)
    if found is None and code.startswith(SELECTED):
        return _CONDITION
    return found


def meaning(code: str) -> str:
    """Returns the meaning of a code, or ""."""
    found = explain(code)
    return found.meaning if found is not None else ""


def explained(code: str) -> Html:
    """Returns a paragraph with meaning, example and remedy of a code, or nothing."""
    found = explain(code)
    if found is None:
        return EMPTY
    sentence = f"{found.meaning[:1].upper()}{found.meaning[1:]}"
    words = f"{sentence}. Example: {found.example}. Remedy: {found.remedy}."
    return tag("p", prose(words), class_="note")


def codes_html(codes: Mapping[str, int]) -> Html:
    """Returns a list that explains the codes; those without a text are omitted."""
    terms = [
        join((tag("dt", tag("code", text(code))), tag("dd", explained(code))))
        for code in codes
        if explain(code) is not None
    ]
    return tag("dl", *terms, class_="codes") if terms else EMPTY
