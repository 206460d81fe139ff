"""Writes Markdown with escaped log text: names of models and tools may be hostile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from builder.report.html import escape_invisible
from builder.text import number, shorten

Cell = str | int | float | None


class Code(str):
    """Text from a log, written as a code span."""

    __slots__ = ()


def code(text: str, limit: int = 80) -> str:
    """Returns a code span on one line, in which nothing is markup, a link or a mention.

    A pipe becomes a broken bar, because some renderers end a table cell even at an escaped pipe.
    Invisible characters become escapes.
    """
    escaped = shorten(escape_invisible(text), limit).replace("|", "\u00a6")
    ticks = "`" * (1 + max(map(len, re.findall("`+", escaped)), default=0))
    edge = " " if not escaped.strip() or escaped[0] == "`" or escaped[-1] == "`" else ""
    return f"{ticks}{edge}{escaped}{edge}{ticks}" if escaped else "` `"


def plain(text: str, limit: int = 80) -> str:
    """Returns text without markup for use outside a code span, such as a heading."""
    escaped = shorten(escape_invisible(text), limit)
    return "".join(f"&#{ord(char)};" if char in _SPECIAL else char for char in escaped)


_SPECIAL = frozenset("<>&|`[]()*_~#!\\$@:")


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Returns the lines of a table; a `str` is Markdown, `Code` is escaped."""
    written = list(rows)
    is_number = [
        any(len(row) > at and isinstance(row[at], int | float) for row in written)
        for at in range(len(columns))
    ]
    lines = [f"| {' | '.join(columns)} |"]
    lines.append("|" + "|".join("---:" if right else "---" for right in is_number) + "|")
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in written]
    return lines


def _cell(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, Code):
        return code(value)
    return value if isinstance(value, str) else number(value)


def indented(text: str) -> str:
    """Returns an indented code block, which no line of the text can end."""
    return "\n".join(f"    {escape_invisible(line)}".rstrip() for line in text.split("\n"))
