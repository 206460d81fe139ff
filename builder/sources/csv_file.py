"""Reads separated tables: the header and first rows for recognition, the rows as objects.

Source: RFC 4180, also with semicolons or tabs. Fields are texts; an empty field is None.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Sequence
from itertools import islice
from typing import BinaryIO

from builder.conversation import Json
from builder.jsonio import loads_text
from builder.problem import Problem
from builder.sources.sniff import is_prefixed
from builder.sources.stream import STREAM_ERRORS, stream_problem

_MAX_FIELD = 1 << 30
"""Characters of a field; the module's default is too small for logged prompts."""
_PEEKED = 50
_SEPARATORS = (",", ";", "\t")
_TEXTS = frozenset({
    "prompt", "completion", "text", "content", "answer", "instruction", "input", "output", "query",
    "chosen", "rejected", "question",
})  # fmt: skip
"""Columns whose fields are the words of somebody, even if these are JSON."""

Row = dict[str, Json]


def first_rows(head: bytes) -> tuple[str, tuple[str, ...], list[Row]]:
    """Returns the separator of a text, the names in its first line and its first whole rows.

    A text with one column, or whose second row has another number of fields, is no table: no names.
    """
    is_json = is_prefixed(head) or head.lstrip()[:1] in (b"{", b"[")
    for separator in () if is_json else _SEPARATORS:
        stream = io.StringIO(head.decode("utf-8-sig", "replace"), newline="")
        reader = csv.reader(stream, delimiter=separator)
        try:
            names, *rows = list(islice(reader, _PEEKED + 1)) or [[]]
        except csv.Error:
            continue
        if stream.read(1) == "" and len(rows) > 1:
            rows.pop()  # may be cut off
        # Prose has semicolons, and logs tabs: with these, each row must fit, and no name is padded.
        checked = rows[:1] if separator == "," else [[n for n in names if n == n.strip()], *rows]
        size = len(names)
        if size > 1 and all(len(row) in (0, size) for row in checked):
            return separator, tuple(names), [_row(names, row) for row in rows if len(row) == size]
    return ",", (), []


def json_columns(rows: Sequence[Row]) -> frozenset[str]:
    """Returns the columns whose fields are all JSON objects or lists, as texts."""
    return frozenset(
        name
        for name in (rows or [{}])[0].keys() - _TEXTS
        if (values := [loads_text(row[name]) for row in rows if row[name]])
        and all(isinstance(value, dict | list) for value in values)
    )


def read_rows(stream: BinaryIO, separator: str) -> Generator[tuple[str, Row] | Problem]:
    """Yields (place, row) of each row of a table, as objects with the names of the header.

    A row with another number of fields is a Problem (`bad_row`), and so is whatever ends the
    reading early: a truncated stream, or an unclosed quote.
    """
    before = csv.field_size_limit(_MAX_FIELD)
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    try:
        rows = csv.reader(text, delimiter=separator, strict=True)
        names = next(rows, [])
        for number, row in enumerate(rows, 1):
            where = f"row {number}"
            if row and len(row) != len(names):
                yield Problem("bad_row", where, f"{len(row)} fields, the header names {len(names)}")
            elif row:
                yield where, _row(names, row)
    except STREAM_ERRORS as error:
        yield stream_problem(error, "table")
    except csv.Error as error:
        is_cut = "unexpected end" in str(error)
        yield Problem("truncated" if is_cut else "bad_row", "table", str(error))
    finally:
        csv.field_size_limit(before)
        text.detach()


def _row(names: Sequence[str], row: Sequence[str]) -> Row:
    return {name: text or None for name, text in zip(names, row, strict=True)}
