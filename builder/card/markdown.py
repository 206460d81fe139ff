"""Writes Markdown in which text of logs stays text: names of models and tools may be hostile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from builder.report.html import escape_invisible, number, shorten

Cell = str | int | float | None


class Code(str):
    """Text of any origin in a cell or a sentence: shown as a code span."""

    __slots__ = ()


def code(text: str, limit: int = 80) -> str:
    """Returns a code span on one line: nothing in it is markup, a link or a mention.

    A pipe would end a table's cell in some renderers even if escaped, so it is shown as a broken
    bar. Invisible characters are shown as escapes.
    """
    escaped = shorten(escape_invisible(text), limit).replace("|", "\u00a6")
    ticks = "`" * (1 + max(map(len, re.findall("`+", escaped)), default=0))
    edge = " " if not escaped.strip() or escaped[0] == "`" or escaped[-1] == "`" else ""
    return f"{ticks}{edge}{escaped}{edge}{ticks}" if escaped else "` `"


def plain(text: str, limit: int = 80) -> str:
    """Returns text without markup outside a code span (a heading)."""
    escaped = shorten(escape_invisible(text), limit)
    return "".join(f"&#{ord(char)};" if char in _SPECIAL else char for char in escaped)


_SPECIAL = frozenset("<>&|`[]()*_~#!\\$@:")


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Returns the lines of a table. Cells are Markdown unless `Code`; numbers are right-aligned."""
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
    """Returns a block of code by indentation: no line of it can end the block."""
    return "\n".join(f"    {escape_invisible(line)}".rstrip() for line in text.split("\n"))
