"""Examines the beginning of a file for recognition: its kind, its first lines or rows."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import BinaryIO

from builder.conversation import Json
from builder.jsonio import JsonFault, adjacent_objects, loads_leniently
from builder.problem import Problem
from builder.sources.padding import Padding, padding_of, without_padding
from builder.sources.stream import ZIP_MAGIC, skip_line
from builder.sources.table import Table

BOM = b"\xef\xbb\xbf"
SQLITE_MAGIC = b"SQLite format 3\x00"
_MARKDOWN = (b"# ", b"```")
"""The beginnings of lines that no log has, but texts which quote one."""
PEEK_LINES = 200
PEEK_BYTES = 4 << 20

Decoded = list[tuple[bytes, Json]]
"""Lines with their values, so that they need not be decoded again."""


@dataclass(frozen=True)
class Peek:
    """The contents of the beginning of a file.

    kind     empty, folder, sqlite, zip, jsonl, json, text, utf-16 or binary; a table is "jsonl"
    records  jsonl: the decoded values of the first lines (at most 200) that are JSON;
             json: the first elements of the document if it is a list, else the document
    problem  why a text that begins like JSON could not be decoded
    padding  where the records had nulls of a table, which are left out
    """

    kind: str
    records: tuple[Json, ...] = ()
    problem: Problem | None = None
    padding: Padding = field(default_factory=Padding)

    @cached_property
    def objects(self) -> tuple[dict[str, Json], ...]:
        """The records that are JSON objects."""
        return tuple(value for value in self.records if isinstance(value, dict))


def is_utf_16(head: bytes) -> bool:
    """Returns whether a file is text in UTF-16 (or UTF-32), which Windows' tools write."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    pairs = head[:200]  # JSON begins with ASCII: each other byte is 0
    zeros = [pairs[at::2].count(0) for at in (0, 1)]
    return len(pairs) > 8 and 0 in zeros and max(zeros) > len(pairs) * 0.4


def peek_file(
    head: bytes,
    lines: Callable[[], Generator[bytes]],
    document: Callable[[Decoded], Json | Problem],
) -> tuple[Peek, Decoded]:
    """Returns the beginning of a file, and the lines that were decoded for it.

    `head` are its first bytes, `lines` yields its first lines, and `document` decodes all of it as
    one value; it gets the first line if that is a value.
    """
    text = head.removeprefix(BOM)
    if not text.strip():
        return Peek("empty"), []
    if text.startswith(SQLITE_MAGIC):
        return Peek("sqlite"), []
    if text.startswith(ZIP_MAGIC):
        return Peek("zip"), []
    if is_utf_16(head):
        return Peek("utf-16"), []
    some = lines()
    first = next(some, b"")
    value, exact = container(first)
    second = next(some, None) if value is not None else None
    if second is not None:
        begun = (first.removeprefix(BOM), value, exact)
        objects = [begun, *decoded_lines(chain([second], some))]
        kept = [(line, item) for line, item, exact in objects if exact and len(line) <= PEEK_BYTES]
        peek = _peek("jsonl", [item for _, item, _ in objects])
        return peek, [] if peek.padding.columns else kept
    some.close()
    problem: Problem | None = None
    if value is not None or text.lstrip()[:1] in (b"[", b"{"):
        whole = document([(first, value)] if value is not None and exact else [])
        if not isinstance(whole, Problem):
            items = whole[:PEEK_LINES] if isinstance(whole, list) else [whole]
            return _peek("json", items), []
        problem = whole
    # The first line of a log may be corrupt and later ones valid; a text may quote some.
    seen = list(lines())
    values = [item for line in seen if (item := container(line)[0]) is not None]
    if 2 * len(values) < len(seen) or any(line.startswith(_MARKDOWN) for line in seen):
        values = glued(first)
    if any(isinstance(item, dict) and item for item in values):
        return Peek("jsonl", tuple(values)), []
    problem = None if is_prefixed(head) else problem
    return Peek("binary" if b"\x00" in text else "text", problem=problem), []


def is_prefixed(head: bytes) -> bool:
    """Returns whether the first line of a text is a JSON object after a prefix, as in log files."""
    prefix, brace, rest = head.removeprefix(BOM).lstrip().partition(b"\n")[0].partition(b"{")
    value, _ = container((brace + rest).rstrip())
    return prefix.strip(b" \t[") != b"" and isinstance(value, dict)


def _peek(kind: str, records: Sequence[Json]) -> Peek:
    padding = padding_of(records)
    kept = (without_padding(record, padding.columns) for record in records)
    return Peek(kind, tuple(kept), padding=padding)


def peek_rows(table: Table) -> Peek:
    """Returns the beginning of a table."""
    rows = [row for _, row in islice(table.rows(), PEEK_LINES)]
    values = tuple(row for row in rows if not isinstance(row, Problem))
    problem = next((row for row in rows if isinstance(row, Problem)), None)
    return Peek("jsonl" if values else "binary" if problem else "empty", values, problem)


def container(line: bytes) -> tuple[dict[str, Json] | list[Json] | None, bool]:
    """Returns (object or list that a line contains, or None; whether it is exact)."""
    if not line.startswith((b"{", b"[", BOM)) or not line.endswith((b"}", b"]")):
        return None, True
    try:
        value, exact = loads_leniently(line)
    except JsonFault:
        return None, True
    return (value if isinstance(value, dict | list) else None), exact


def glued(line: bytes) -> list[dict[str, Json] | list[Json]]:
    """Returns the objects of a line that is several of them without a separator, else []."""
    containers = (container(item)[0] for item in adjacent_objects(line.removeprefix(BOM)))
    return [item for item in containers if item is not None]


def decoded_lines(lines: Iterable[bytes]) -> Iterator[tuple[bytes, Json, bool]]:
    """Yields (line, value, whether the value is exact) for the lines that are JSON."""
    for line in lines:
        try:
            value, exact = loads_leniently(line)
        except JsonFault:
            continue
        yield line, value, exact


def some_lines(stream: BinaryIO, limit: int) -> Iterator[bytes]:
    """Yields the first non-blank lines, stripped: at most PEEK_LINES lines, about PEEK_BYTES bytes.

    Reads at most `limit` bytes of a line. Raises the exceptions of the stream.
    """
    read = lines = 0
    while read < PEEK_BYTES and lines < PEEK_LINES:
        line = stream.readline(limit)
        if not line:
            return
        read += len(line)
        if len(line) == limit and not line.endswith(b"\n"):
            skip_line(stream)
        if line.strip():
            lines += 1
            yield line.strip()
