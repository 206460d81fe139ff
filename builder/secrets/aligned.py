"""Finds secrets in tables whose columns are aligned with spaces, as databases print them.

The cells of a line have two spaces or more between them. A line is a header if one of its cells is
the name of a secret; the rows below it have as many cells, or one more before them: an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from builder.secrets.assignments import named_secret, names_secret
from builder.secrets.chosen import looks_chosen
from builder.secrets.columns import NAMES
from builder.secrets.hits import Hit
from builder.secrets.prefilter import LinePrefilter, Lines
from builder.secrets.values import looks_random

MAX_ROWS = 100
"""Rows below a header that are examined."""
MAX_LINE = 1000
"""Code points of a line; longer lines are not rows of such a table."""

_HEADER = rf"(?:^|\n|  )[\w .-]{{0,42}}{NAMES}(?:  |[ \t\r]*\n)"
"""What a header contains: the name of a secret with two spaces or an edge of its line around it."""
LINES = LinePrefilter(rf"(?i:{NAMES}(?:  |[ \t\r]*\n))")
"""Finds the lines that may be headers; the text before a name would multiply the states."""
_IS_HEADER = re.compile(_HEADER, re.IGNORECASE | re.ASCII)
_CELL = re.compile(r"[^\s](?:[^\s]| (?! ))*")
_NAME = re.compile(r"[A-Za-z][\w .]{1,40}")
_RULE = re.compile(r"[- \t=]+")


def find_in_aligned(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the secrets below column names in lines of `LINES`."""
    done = 0
    for start, end in _lines(text, lines):
        if start < done or end - start > MAX_LINE:
            continue
        names = _CELL.findall(text, start, end)
        if len(names) < 3 or not all(map(_NAME.fullmatch, names)):
            continue
        if _IS_HEADER.search(text, max(0, start - 1), end + 1) is None:
            continue
        columns = [at for at, name in enumerate(names) if names_secret(name)]
        if not columns:
            continue
        for row, row_end in islice(_below(text, end), MAX_ROWS):
            cells = list(_CELL.finditer(text, row, row_end))
            if _RULE.fullmatch(text, row, row_end):
                continue
            extra = len(cells) - len(names)
            if extra not in (0, 1) or (extra and not cells[0][0].isdigit()):
                break
            done = row_end
            for column in columns:
                cell = cells[column + extra]
                value = cell[0]
                if (looks_random(value) or looks_chosen(value)) and named_secret(
                    names[column], value
                ):
                    yield Hit(*cell.span(), "secret", certain=False)


def _lines(text: str, lines: Lines) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of each line in lines of `LINES`."""
    for first, last in lines:
        at = first
        while at <= last:
            end = text.find("\n", at, last)
            end = last if end < 0 else end
            yield at, end
            at = end + 1


def _below(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of the lines below one that ends at `end`, up to an empty one."""
    while end < len(text):
        start = end + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE or not text[start:end].strip():
            return
        yield start, end
