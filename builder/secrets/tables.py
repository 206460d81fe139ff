"""Finds secrets in the columns of plain-text tables: CSV, TSV, Markdown, psql, aligned columns.

A line is a header if all its cells are names and one of them is the name of a secret as in
`builder.secrets.assignments`; the rows below it have as many cells. Cells are between signs, or
have two spaces or more between them, as databases print them.

Source code has lines like headers too (`user, password, host`), so below a header with commas a
value that could be a variable does not count. Lines between signs may be those of a diff, have
numbers before them, or be in a string of JSON; aligned rows may begin with an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from builder.secrets.assignments import named_secret, names_secret
from builder.secrets.escapes import string_end
from builder.secrets.expressions import is_variable
from builder.secrets.grade import grade
from builder.secrets.hits import Hit
from builder.secrets.passphrases import is_joined
from builder.secrets.prefilter import LinePrefilter, Lines, necessary
from builder.secrets.values import is_unpronounceable, looks_random
from builder.secrets.words import KEY_OWNERS, PASSWORDS, TOKENS

MAX_ROWS, MAX_ALIGNED_ROWS = 1000, 100
"""Rows below a header that are examined."""
MAX_LINE, MAX_ALIGNED_LINE = 4000, 1000
"""Code points of a line; longer lines are not rows of such a table."""
MAX_TABLES = 50
MAX_ESCAPED = 400
"""Lines of a string that may be headers."""

_NAMES = rf"(?:{'|'.join((*PASSWORDS, *TOKENS))}|(?:{KEY_OWNERS})[_ -]?key)"
"""The names of columns of secrets, or how they end."""
_NAME = necessary(rf"[\w .-]{{0,8}}{_NAMES}[\"']?[ ]{{0,8}}", ignore_case=True)
_SEPARATED = (
    rf"(?:[,;|\t]|\\t)[ ]*[\"']?{_NAME}(?:[,;|\t\r\n\\]|$)"
    rf"|(?:^|\n|\\n)[+-]?[\"']?{_NAME}(?:[,;|\t]|\\+t)"
)
LINES = LinePrefilter(rf"{_SEPARATED}|(?i:{_NAMES}(?:  |[ \t\r]*\n))")
"""Finds the lines that may be headers, or that contain one in a string of JSON."""
_HEADER = re.compile(r"[\w .|,;\t\"'-]+")
_ALIGNED = re.compile(
    rf"(?:^|\n|  )[\w .-]{{0,42}}{_NAMES}(?:  |[ \t\r]*\n)", re.IGNORECASE | re.ASCII
)
"""The name of a secret between two spaces or edges of its line: `host  db_password  port`."""
_ALIGNED_CELL = re.compile(r"[^\s](?:[^\s]| (?! ))*")
_ALIGNED_NAME = re.compile(r"[A-Za-z][\w .]{1,40}")
_NUMBER = re.compile(
    r"[ \t]{0,12}\d{1,6}(?:[ \t]?\u2192"
    r"|\t(?=[^\t\n]*[,;|]|[ +-]{1,80}--)|\t(?=[^\t\n]+\t[^\t\n]))|[\w./-]{1,100}:\d{1,6}:"
)
"""What a viewer or grep puts before a line: `12\u2192`, `users.csv:3:`."""
_SIGN = re.compile(r"[+-](?![+-])")
"""Before the lines of a diff, and not the border of a table."""
_ESCAPED = re.compile(r"\\{1,8}n")
_STRING_START = re.compile(r".*:[ ]?\\{0,7}\"")
_RULE = re.compile(r"[\s|:+-]*")
_ALIGNED_RULE = re.compile(r"[- \t=]+")
_HAS_SIGN = re.compile(r"\d|[!@#$%^&*+=?~]")
_LONG_NUMBER = re.compile("[0-9]{3}")
_VERSION = re.compile(r"v?\d+(?:[._-][\w.-]*)?")
_EDGES = " \t\r\"'`"


@cache  # compiling it takes longer than importing the other rules, and few texts need it
def _escaped_headers() -> re.Pattern[str]:
    return re.compile(_SEPARATED)


def find_in_tables(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the secrets below column names in lines of `LINES`."""
    tables = done = done_aligned = 0
    for begin, end, line_break in _header_lines(text, lines):
        if line_break == "\n" and begin >= done_aligned and end - begin <= MAX_ALIGNED_LINE:
            hits, done_aligned = _aligned(text, begin, end)
            yield from hits
        start = _content(text, begin, end)
        header = text[start:end].replace(_tab(line_break), "\t")
        if start < done or tables == MAX_TABLES or not _HEADER.fullmatch(header):
            continue
        table = _Separated(text, line_break, end)
        if header.startswith("  ") and not table.has_rule():
            continue  # source code
        if "|" in header and not table.has_rule() and _has_row_above(text, begin, line_break):
            continue  # a table of settings, one of which is a password
        hits, done = table.secrets(header)
        yield from hits
        tables += bool(hits)


def _header_lines(text: str, lines: Lines) -> Iterator[tuple[int, int, str]]:
    """Yields [start, end) of the lines that may be headers, and the line breaks after them."""
    for start, end in lines:
        at = start
        while at < end:
            stop = text.find("\n", at, end)
            stop = end if stop < 0 else stop
            yield from _escaped_lines(text, at, stop)
            if stop - at <= MAX_LINE:
                yield at, stop, "\n"
            at = stop + 1


def _escaped_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yields the lines of strings of JSON on a line, as `_header_lines` does."""
    if text.find("\\n", start, end) < 0:
        return
    done = start
    for header in islice(_escaped_headers().finditer(text, start, end), MAX_ESCAPED):
        line_break = _ESCAPED.search(text, header.end() - 1, min(end, header.end() + MAX_LINE))
        if header.start() < done or line_break is None:
            continue
        done = line_break.end()
        first = max(start, header.start() - MAX_LINE)
        before = text.rfind(line_break[0], first, header.start() + len(line_break[0]))
        begin = before + len(line_break[0]) if before >= 0 else first
        if quote := _STRING_START.match(text, begin, line_break.start()):
            begin = quote.end()
        yield begin, line_break.start(), line_break[0]


def _has_row_above(text: str, begin: int, line_break: str) -> bool:
    """Returns whether the line before the one at `begin` is part of a table with bars."""
    end = max(0, begin - len(line_break))
    above = text.rfind(line_break, max(0, end - MAX_LINE), end)
    return "|" in text[above + len(line_break) : end] if above >= 0 else "|" in text[:end]


def _tab(line_break: str) -> str:
    """Returns a tab as it is written in a text with such line breaks."""
    return f"{line_break[:-1]}t" if line_break != "\n" else "\t"


def _content(text: str, start: int, end: int) -> int:
    """Returns where a line begins behind what a viewer, grep or a diff put before it."""
    number = _NUMBER.match(text, start, end)
    start = number.end() if number is not None else start
    sign = _SIGN.match(text, start, end)
    return sign.end() if sign is not None else start


def _below(text: str, line_break: str, end: int, last: int) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of the lines below one that ends at `end`, in a text up to `last`."""
    while end < last:
        start = end + len(line_break)
        end = text.find(line_break, start, last)
        end = last if end < 0 else end
        yield start, end


def _aligned(text: str, start: int, end: int) -> tuple[list[Hit], int]:
    """Returns the secrets below a header with aligned columns, and the end of the rows."""
    hits: list[Hit] = []
    done = start
    names = _ALIGNED_CELL.findall(text, start, end)
    if (
        len(names) < 3
        or not all(map(_ALIGNED_NAME.fullmatch, names))
        or _ALIGNED.search(text, max(0, start - 1), end + 1) is None
    ):
        return hits, done
    columns = _secret_columns(names)
    for row, row_end in islice(
        _below(text, "\n", end, len(text)), MAX_ALIGNED_ROWS * bool(columns)
    ):
        cells = list(_ALIGNED_CELL.finditer(text, row, row_end))
        if row_end - row > MAX_ALIGNED_LINE or not cells:
            break
        if _ALIGNED_RULE.fullmatch(text, row, row_end):
            continue
        extra = len(cells) - len(names)  # an index
        if extra not in (0, 1) or (extra and not cells[0][0].isdigit()):
            break
        done = row_end
        for column in columns:
            value = cells[column + extra][0]
            is_likely = looks_random(value) or grade(value).is_secret
            if is_likely and named_secret(names[column], value):
                hits.append(Hit(*cells[column + extra].span(), "secret", certain=False))
    return hits, done


class _Separated:
    """The rows below a header that ends at `end`, with the line breaks of its text."""

    def __init__(self, text: str, line_break: str, end: int) -> None:
        self.text = text
        self.line_break = line_break
        self.end = end
        self.last = string_end(text, line_break, end, len(text))

    def lines(self) -> Iterator[tuple[int, int]]:
        """Yields [start, end) of the lines; an empty or overlong one is the last."""
        for start, end in _below(self.text, self.line_break, self.end, self.last):
            begin = _content(self.text, start, end)
            if begin >= end or end - begin > MAX_LINE:
                return
            yield begin, end

    def has_rule(self) -> bool:
        """Returns whether the first line separates a header from its rows, as psql prints it."""
        for start, end in self.lines():
            line = self.text[start:end]
            return "--" in line and _RULE.fullmatch(line) is not None
        return False

    def secrets(self, header: str) -> tuple[list[Hit], int]:
        """Returns the secrets in the rows below a header, and the end of the rows."""
        sign = next((sign for sign in ("\t", "||", "|", ";", ",") if sign in header), "")
        cells = [cell.strip(_EDGES).replace(" ", "_") for cell in header.split(sign or None)]
        sign = sign[:1]  # Jira doubles those of a header
        columns = _secret_columns(cells)
        hits: list[Hit] = []
        done = self.end
        if not sign or not columns or sum(map(bool, cells)) < 2 or any(map(_is_number, cells)):
            return hits, done
        separator = sign if sign != "\t" else _tab(self.line_break)
        edges = _EDGES if self.line_break == "\n" else f"{_EDGES}\\"
        is_tight = f"{sign} " not in header  # source code has a space after a comma
        for start, end in islice(self.lines(), MAX_ROWS):
            line = self.text[start:end]
            done = end
            if _RULE.fullmatch(line):
                continue
            row = line.removesuffix(f"{self.line_break[:-1]}r").split(separator)
            if len(row) != len(cells):
                break
            is_tight = is_tight and " " not in line.strip()
            for column in columns:
                value = row[column].strip(edges)
                may_be_code = (
                    sign in ",;"
                    and not is_tight
                    and is_variable(value)
                    and _LONG_NUMBER.search(value) is None
                )
                if (
                    not may_be_code
                    and (_HAS_SIGN.search(value) or is_unpronounceable(value) or is_joined(value))
                    and named_secret(cells[column], value)
                ):
                    at = start + sum(map(len, row[:column])) + column * len(separator)
                    at += row[column].index(value)
                    hits.append(Hit(at, at + len(value), "secret", certain=False))
        return hits, done


def _secret_columns(names: Sequence[str]) -> list[int]:
    """Returns the numbers of the columns whose names are those of secrets."""
    return [number for number, name in enumerate(names) if name and names_secret(name)]


def _is_number(cell: str) -> bool:
    """Returns whether a cell is a number or a version, which no column is named."""
    return _VERSION.fullmatch(cell) is not None
