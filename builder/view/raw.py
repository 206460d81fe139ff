"""Finds the raw records of a sample in its logs, if they still exist.

meta/ has the source and the record. Only records that can be found without a reader are shown:
lines of a file, items of a JSON list, a whole file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from builder.conversation import Json
from builder.jsonio import dumps
from builder.paths import file_inside
from builder.problem import Problem
from builder.report.html import EMPTY, Html, cut, macro, omission
from builder.report.turns import indented
from builder.sources.source import Source

MAX_RECORDS = 60
_MAX_BYTES = 32 << 20
_CHARACTERS = 20_000
_PROBE = 80
"""Characters of a turn that are searched for in records."""

_LINES = re.compile(r"(?:(?P<member>\S+) )?lines? (?P<first>\d+)(?:(?:-| to line )(?P<last>\d+))?")
_ITEMS = re.compile(r"(?P<key>\w*)\[(?P<first>\d+)\](?:-(?P=key)\[(?P<last>\d+)\])?")

Record = tuple[str, str]
"""(location, text)"""


def raw_records(logs: Path, source: str, record: str) -> list[Record] | None:
    """Returns at most MAX_RECORDS + 1 records, or None if they cannot be found.

    `source` and `record` come from meta/, which is not trusted: nothing outside `logs` is read.
    """
    lines = _LINES.fullmatch(record)
    member = f"/{lines['member']}" if lines is not None and lines["member"] else ""
    path = file_inside(logs, source + member)
    if path is None:
        return None
    opened = Source(path.name, path, max_record_bytes=_MAX_BYTES)
    if lines is not None:
        first, last = _range(lines)
        return list(islice(_lines(opened, first, last), MAX_RECORDS + 1))
    items = _ITEMS.fullmatch(record)
    if items is None and record != "file":
        return None
    document = opened.document(exact=True)
    if isinstance(document, Problem):
        return _text(path) if items is None else None
    if items is None:
        return [("the whole file", indented(document))]
    return _items(document, items["key"], *_range(items))


def _text(path: Path) -> list[Record] | None:
    """Returns the beginning of a text file; None for a binary file."""
    with path.open("rb") as stream:
        data = stream.read(4 * _CHARACTERS)
    if b"\0" in data:
        return None
    return [("the beginning of the file", data.decode("utf-8", "replace")[:_CHARACTERS])]


def _range(match: re.Match[str]) -> tuple[int, int]:
    first = int(match["first"][:15])
    return first, int(match["last"][:15]) if match["last"] else first


def _lines(source: Source, first: int, last: int) -> Iterator[Record]:
    for item in source.lines():
        if isinstance(item, Problem):  # too long to show, or cut off at the end of the file
            place = item.where.removeprefix("line ")
            if not place.isdigit() or first <= int(place) <= last:
                yield item.where, f"({item.code}: {item.detail})"
        elif item[0] > last:
            return
        elif item[0] >= first:
            yield f"line {item[0]}", item[1].decode("utf-8", "replace")


def _items(document: Json, key: str, first: int, last: int) -> list[Record] | None:
    listed = document.get(key) if key and isinstance(document, dict) else document
    if not isinstance(listed, list):
        return None
    last = min(last, first + MAX_RECORDS, len(listed) - 1)
    return [(f"{key}[{at}]", indented(listed[at])) for at in range(first, last + 1)]


def records_of_turns(
    messages: Sequence[tuple[str, str]], records: Sequence[Record]
) -> dict[int, tuple[str, str]]:
    """Returns {turn: (id on the page, location) of the record that contains its text}.

    meta/ does not relate turns to records, so the records are searched for the longest line of each
    turn, beginning at the record of the previous turn. Turns with changed text may not be found.
    """
    locations: dict[int, tuple[str, str]] = {}
    first = 0
    for at, (_, content) in enumerate(messages):
        line = max(content[:20_000].splitlines() or [""], key=len)[:_PROBE].strip()
        if len(line) < 8:
            continue
        once = dumps(line)[1:-1]
        probes = {line, once, dumps(once)[1:-1], json.dumps(line)[1:-1]}
        for number in range(first, min(len(records), MAX_RECORDS)):
            if any(probe in records[number][1] for probe in probes):
                locations[at] = (f"record-{number}", records[number][0])
                first = number
                break
    return locations


def raw_html(records: list[Record] | None) -> Html:
    """Returns the records, each with its location."""
    shown = [(where, cut(value, _CHARACTERS)) for where, value in (records or ())[:MAX_RECORDS]]
    more = omission(1, "record or more") if len(records or ()) > MAX_RECORDS else EMPTY
    return macro("viewer", "records", found=shown, more=more)
