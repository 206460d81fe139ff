"""Explains the codes of a report to a user: their meaning, an example and a remedy.

The texts are in assets/codes.tsv, one line per code. Text between backticks is shown as code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import cycle

from builder.normalize import NormalizeOptions, remedy
from builder.report.html import EMPTY, Html, join, tag, text

SELECTED = "select_"
"""Prefix of the codes of `select.where`: the rest is the user's field."""


@dataclass(frozen=True, slots=True)
class CodeText:
    """The meaning of a code, an example of a place where it occurs, and a remedy."""

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
    """Returns the text of every code that has one."""
    table = (files("builder.report") / "assets" / "codes.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in table.splitlines()[1:])
    return {code: CodeText(*cells) for code, *cells in rows}


def explain(code: str) -> CodeText | None:
    """Returns the text of a code; None for one that is the name of a record type."""
    found = code_texts().get(code)
    if found is None and code.startswith(SELECTED):
        return _CONDITION
    return found


def meaning(code: str) -> str:
    """Returns the meaning of a code, or ""."""
    found = explain(code)
    return found.meaning if found is not None else ""


def mending(code: str) -> str:
    """Returns the configuration line or option that keeps what was lost, or ""."""
    return remedy(code, NormalizeOptions()) or ""


def explained(code: str) -> Html:
    """Returns meaning, example and remedy of a code as a paragraph, or nothing."""
    found = explain(code)
    if found is None:
        return EMPTY
    parts = [*_prose(f"{found.meaning[:1].upper()}{found.meaning[1:]}. "),
             text("Example: "), *_prose(f"{found.example}. "),
             text("Remedy: "), *_prose(f"{found.remedy}.")]  # fmt: skip
    return tag("p", *parts, class_="note")


def _prose(words: str) -> list[Html]:
    """Returns text in which backticks mark code."""
    kinds = cycle((False, True))
    pieces = [(piece, next(kinds)) for piece in words.split("`")]
    return [
        tag("code", text(piece)) if is_code else text(piece) for piece, is_code in pieces if piece
    ]


def codes_html(codes: Mapping[str, int]) -> Html:
    """Returns a list that explains those of the codes that have a text."""
    terms = [
        join((tag("dt", tag("code", text(code))), tag("dd", explained(code))))
        for code in codes
        if explain(code) is not None
    ]
    return tag("dl", *terms, class_="codes") if terms else EMPTY
