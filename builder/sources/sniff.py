"""Examines the beginning of a file for recognition: its kind, its first lines or rows."""

from __future__ import annotations

import codecs
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import BinaryIO

from builder.conversation import Json
from builder.jsonio import JsonFault, adjacent_objects, loads_leniently
from builder.problem import Problem
from builder.sources.stream import ZIP_MAGIC, skip_line
from builder.sources.table import TOOL_NAMES, Table, arguments_of

# -- finds and removes the nulls that rows of JSON have from a table -------------------------------

_ROWS = 24
"""Rows that are looked at: Arrow pads all rows of a file alike."""
_LEAST = 4
"""Keys of rows that must be null in some of them: requests without an answer have two or three."""
_OBJECTS = 4000
"""Objects of a column that are looked at."""

ROW = ""
"""Stands for the rows themselves among their keys."""


@dataclass(frozen=True, slots=True)
class Padding:
    """Where rows have the nulls of a table.

    columns  keys of the rows whose values have them; ROW among them stands for the rows themselves
    calls    the arguments of calls have them too: several tools share their keys
    """

    columns: frozenset[str] = frozenset()
    calls: bool = False


def padding_of(rows: Sequence[Json]) -> Padding:
    """Returns where the rows have the nulls of Arrow's structs.

    In the value of a padded column, all objects at the same place have the same keys, in the same
    order, and a key is null in one and not in another. Of the rows' own keys, most must be so.
    """
    objects = [row for row in rows[:_ROWS] if isinstance(row, dict)]
    if not objects or any(row.keys() != objects[0].keys() for row in objects):
        return Padding()
    columns = {key: [row[key] for row in objects] for key in objects[0]}
    found = {key: structs for key, values in columns.items() if (structs := _structs(values))}
    padded = frozenset(key for key, structs in found.items() if any(map(_varies, structs.values())))
    partly = sum(0 < values.count(None) < len(values) for values in columns.values())
    calls = any(
        _varies(struct) and len(struct.names) > 1
        for key in padded
        for struct in found[key].values()
    )
    return Padding(padded | {ROW} if partly >= max(_LEAST, len(columns) / 2) else padded, calls)


def without_padding(row: Json, columns: Collection[str]) -> Json:
    """Returns a row, or a list of rows, without its own nulls and those of the columns.

    Without columns it is returned as it is.
    """
    if columns and isinstance(row, list):
        return [without_padding(item, columns) for item in row]
    if not columns or not isinstance(row, dict):
        return row
    return {
        key: _without_nulls(item) if key in columns else item
        for key, item in row.items()
        if item is not None or _is_parent(key)
    }


def _without_nulls(value: Json) -> Json:
    """Returns a value without the nulls of its objects, except those in arguments of calls."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = arguments_of(value)
    return {
        key: item if key in kept else _without_nulls(item)
        for key, item in value.items()
        if item is not None or _is_parent(key)
    }


def _is_parent(key: str) -> bool:
    return key.lower().startswith("parent")


@dataclass(slots=True)
class _Struct:
    """What the objects at one place have: keys, those null and not null, names of their tools."""

    keys: list[str] | None = None
    nulls: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def _varies(struct: _Struct) -> bool:
    return not struct.nulls.isdisjoint(struct.values)


def _structs(values: Sequence[Json]) -> dict[tuple[str, ...], _Struct]:
    """Returns the structs below the values by place; {} if objects at one place differ in keys."""
    structs: defaultdict[tuple[str, ...], _Struct] = defaultdict(_Struct)
    for path, value in islice(_objects(values), _OBJECTS):
        struct, keys = structs[path], list(value)
        if struct.keys not in (None, keys):
            return {}
        struct.keys = keys
        for key, item in value.items():
            (struct.nulls if item is None else struct.values).add(key)
        tools = [name for field in TOOL_NAMES if isinstance(name := value.get(field), str)]
        for key in arguments_of(value):
            structs[*path, key].names.update(tools)
    return structs


def _objects(
    values: Sequence[Json], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Json]]]:
    """Yields (keys that lead to it, object) of the objects in lists and objects."""
    for value in values:
        if isinstance(value, dict):
            yield path, value
            for key, item in value.items():
                if isinstance(item, dict | list):
                    yield from _objects([item], (*path, key))
        elif isinstance(value, list):
            yield from _objects(value, (*path, "[]"))


BOM = b"\xef\xbb\xbf"
SQLITE_MAGIC = b"SQLite format 3\x00"
_MARKDOWN = (b"# ", b"```")
"""The beginnings of lines that no log has, but texts which quote one."""
PEEK_LINES = 200
PEEK_BYTES = 4 << 20

_Decoded = list[tuple[bytes, Json]]
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


def _is_utf_16(head: bytes) -> bool:
    """Returns whether a file is text in UTF-16 (or UTF-32), which Windows' tools write."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    pairs = head[:200]  # JSON begins with ASCII: each other byte is 0
    zeros = [pairs[at::2].count(0) for at in (0, 1)]
    return len(pairs) > 8 and 0 in zeros and max(zeros) > len(pairs) * 0.4


def peek_file(
    head: bytes,
    lines: Callable[[], Generator[bytes]],
    document: Callable[[_Decoded], Json | Problem],
) -> tuple[Peek, _Decoded]:
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
    if _is_utf_16(head):
        return Peek("utf-16"), []
    some = lines()
    first = next(some, b"")
    value, exact = container(first)
    second = next(some, None) if value is not None else None
    if second is not None:
        begun = (first.removeprefix(BOM), value, exact)
        objects = [begun, *_decoded_lines(chain([second], some))]
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
        values = _glued(first)
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


def _glued(line: bytes) -> list[dict[str, Json] | list[Json]]:
    """Returns the objects of a line that is several of them without a separator, else []."""
    containers = (container(item)[0] for item in adjacent_objects(line.removeprefix(BOM)))
    return [item for item in containers if item is not None]


def _decoded_lines(lines: Iterable[bytes]) -> Iterator[tuple[bytes, Json, bool]]:
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
