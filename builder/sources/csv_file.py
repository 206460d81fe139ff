"""Reads comma-separated tables: the header for recognition, the rows as records.

Source: RFC 4180, as Python's csv module reads it. Fields are texts; an empty field is None.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from builder.conversation import Json
from builder.problem import Problem
from builder.sources.sniff import is_prefixed
from builder.sources.source import Record, Source
from builder.sources.stream import STREAM_ERRORS, stream_problem

_MAX_FIELD = 1 << 30
"""Characters of a field; the module's default is too small for logged prompts."""


def csv_header(source: Source) -> tuple[str, ...]:
    """Returns the names in the first line of a text; () if it is not a table."""
    if source.peek.kind != "text" or is_prefixed(source.head):
        return ()
    first = source.head.decode("utf-8-sig", "replace").splitlines()[:1]
    try:
        return tuple(next(csv.reader(first), ()))
    except csv.Error:
        return ()


def is_table(source: Source) -> bool:
    """Returns whether a text begins like a table: lines with the same number of fields."""
    names = csv_header(source)
    second = source.head.decode("utf-8-sig", "replace").splitlines()[1:2]
    try:
        return len(names) > 1 and len(names) == len(next(csv.reader(second), names))
    except csv.Error:
        return False


def csv_rows(source: Source) -> Iterator[Record | Problem]:
    """Yields the rows of a table as objects with the names of the header, and counts them.

    A row with another number of fields is a Problem (`bad_row`), and so is whatever ends the
    reading early: a truncated stream, or an unclosed quote.
    """
    before = csv.field_size_limit(_MAX_FIELD)
    try:
        with source.open() as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
            yield from _rows(source, csv.reader(text, strict=True))
            text.detach()
    except STREAM_ERRORS as error:
        source.count_records()
        yield stream_problem(error, "table")
    except csv.Error as error:
        source.count_records()
        code = "truncated" if "unexpected end" in str(error) else "bad_row"
        yield Problem(code, "table", str(error))
    finally:
        csv.field_size_limit(before)


def _rows(source: Source, rows: Iterator[list[str]]) -> Iterator[Record | Problem]:
    header = next(rows, [])
    for number, row in enumerate(rows, 1):
        if not row:
            continue
        source.count_records()
        where = f"row {number}"
        if len(row) != len(header):
            yield Problem("bad_row", where, f"{len(row)} fields, the header names {len(header)}")
            continue
        value: dict[str, Json] = {
            name: text or None for name, text in zip(header, row, strict=True)
        }
        yield Record(where, value)
