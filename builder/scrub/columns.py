"""Finds secrets in the columns of plain-text tables: CSV, TSV, Markdown, psql.

A line is a header if all its cells are names and one of them is the name of a secret as in
`builder.scrub.assignments`; the rows below it have as many cells. Source code has such lines too
(`user, password, host`), so below a header with commas a value that could be a variable does not
count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.scrub.assignments import PASSWORDS, TOKENS, named_secret
from builder.scrub.expressions import is_variable
from builder.scrub.hits import Hit
from builder.scrub.prefilter import LinePrefilter, necessary
from builder.scrub.values import is_unpronounceable

MAX_ROWS = 1000
"""Rows below a header that are examined."""
MAX_LINE = 4000
"""Code points of a line; longer lines are not rows of such a table."""
MAX_TABLES = 50

_KEY = r"(?:api|access|secret|private|auth|account)[_ -]?key"
_CELL = rf"[\w .-]{{0,8}}(?:{'|'.join((*PASSWORDS, *TOKENS))}|{_KEY})[\"']?[ ]{{0,8}}"
_CELL_NAME = necessary(_CELL, ignore_case=True)
_HEADERS = LinePrefilter(
    rf"[,;|\t][ ]*[\"']?{_CELL_NAME}(?:[,;|\t\r\n]|$)|(?:^|\n)[\"']?{_CELL_NAME}[,;|\t]"
)
CONDITION = _HEADERS.condition
"""A pattern for RE2 that matches in every text with a header."""
_NAMES = re.compile(r"[\w .|,;\t\"'-]+")
_NUMBER = re.compile(
    r"[ \t]{0,12}\d{1,6}(?:[ \t]?\u2192"
    r"|\t(?=[^\t\n]*[,;|])|\t(?=[^\t\n]+\t[^\t\n]))|[\w./-]{1,100}:\d{1,6}:"
)
_RULE = re.compile(r"[\s|:+-]*")
_HAS_SIGN = re.compile(r"\d|[!@#$%^&*+=?~]")
_EDGES = " \t\r\"'`"


def find_in_columns(text: str) -> Iterator[Hit]:
    """Yields the secrets below column names."""
    tables = done = 0
    for begin, end in _header_lines(text):
        start = _content(text, begin, end)
        header = text[start:end]
        if start < done or not _NAMES.fullmatch(header):
            continue
        if header.startswith("  ") and not _has_rule(text, end):
            continue  # source code
        hits, done = _below(text, header, end)
        yield from hits
        tables += bool(hits)
        if tables == MAX_TABLES:
            return


def _header_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of the lines that may be headers; without RE2, of all lines."""
    for start, end in _HEADERS(text):
        at = start
        while at < end:
            stop = text.find("\n", at, end)
            stop = end if stop < 0 else stop
            if stop - at <= MAX_LINE:
                yield at, stop
            at = stop + 1


def _content(text: str, start: int, end: int) -> int:
    """Returns where a line begins behind the number that a viewer or grep put before it."""
    number = _NUMBER.match(text, start, end)
    return number.end() if number is not None else start


def _has_rule(text: str, end: int) -> bool:
    """Returns whether the line after `end` separates a header from its rows, as psql prints it."""
    stop = text.find("\n", end + 1)
    line = text[end + 1 : stop if 0 <= stop - end <= MAX_LINE else end + MAX_LINE]
    return "--" in line and _RULE.fullmatch(line) is not None


def _below(text: str, header: str, end: int) -> tuple[list[Hit], int]:
    """Returns the secrets in the rows below a header that ends at `end`, and the rows' end."""
    separator = next((sign for sign in "\t|;," if sign in header), "")
    cells = [cell.strip(_EDGES).replace(" ", "_") for cell in header.split(separator or None)]
    columns = [
        number for number, name in enumerate(cells) if name and named_secret(name, _LIKELY_SECRET)
    ]
    hits: list[Hit] = []
    if not separator or not columns or sum(map(bool, cells)) < 2:
        return hits, end
    is_tight = f"{separator} " not in header  # source code has a space after a comma
    for _ in range(MAX_ROWS):
        start = end + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        start = _content(text, start, end)
        line = text[start:end] if end - start <= MAX_LINE else ""
        if not line:
            break
        if _RULE.fullmatch(line):
            continue
        row = line.split(separator)
        if len(row) != len(cells):
            break
        is_tight = is_tight and " " not in line.strip()
        for column in columns:
            cell = row[column]
            value = cell.strip(_EDGES)
            may_be_code = separator in ",;" and not is_tight and is_variable(value)
            if (
                not may_be_code
                and (_HAS_SIGN.search(value) or is_unpronounceable(value))
                and named_secret(cells[column], value)
            ):
                at = start + sum(map(len, row[:column])) + column + cell.index(value)
                hits.append(Hit(at, at + len(value), "secret", certain=False))
    return hits, end


_LIKELY_SECRET = "x9Kq2Vt7Lm4Rz8Wp"  # noqa: S105 - not a real one: asks about the name alone
