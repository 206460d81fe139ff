"""Reads rows of tables (Parquet and Arrow files, datasets on the Hub) as JSON values.

A null in a struct only fills a field and is left out, except in arguments and columns of JSON.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.conversation import Json
from builder.credentials import reason
from builder.jsonio import loads_text
from builder.problem import Problem, UsageError
from builder.sources.store import hub_name
from builder.sources.stream import ItemChunk

TOOL_NAMES = ("name", "tool", "tool_name", "toolName", "function_name")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "params", "kwargs")

BATCH_ROWS = 64
PARQUET_MAGIC = b"PAR1"
ARROW_MAGIC = b"ARROW1"
_STREAM_MAGIC = b"\xff\xff\xff\xff"
"""The first bytes of an Arrow stream, as written by `save_to_disk` and the cache of `datasets`."""

MAGICS = (PARQUET_MAGIC, ARROW_MAGIC, _STREAM_MAGIC)

Row = tuple[int, dict[str, Json] | Problem]
"""(number from 1, row), or (number, Problem) if this row and later ones cannot be read."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of a table that can be read independently: their number and approximate bytes."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FileTable:
    """The rows of a Parquet or Arrow file, or of the groups in `chunk`."""

    path: Path
    chunk: ItemChunk | None = None

    def rows(self, *, exact: bool = False) -> Iterator[Row]:
        """Yields each row in order. A group that cannot be read to its end ends with a Problem.

        `exact`: columns that are not JSON keep their nulls and their values of other types.
        """
        import pyarrow  # noqa: PLC0415 - only for such files

        faults = (OSError, ValueError, OverflowError, pyarrow.ArrowException)
        first = self.chunk.first if self.chunk else 1
        try:
            for count, batches in _groups(self.path, self.chunk):
                number = first
                try:
                    for batch in batches:
                        json_columns = _json_columns(batch.schema)
                        for row in batch.to_pylist():
                            yield number, _row(row, json_columns, exact=exact)
                            number += 1
                except faults as error:
                    yield number, _unreadable(number, error)
                first += count
        except faults as error:
            yield first, _unreadable(first, error)

    def groups(self) -> Sequence[_Group]:
        """Returns the groups of the file; () if it cannot be read in groups. Raises OSError."""
        import pyarrow.ipc  # noqa: PLC0415 - only for such files
        import pyarrow.parquet  # noqa: PLC0415 - as above

        try:
            magic = _magic(self.path)
            if magic.startswith(PARQUET_MAGIC):
                metadata = pyarrow.parquet.read_metadata(self.path)
                groups = map(metadata.row_group, range(metadata.num_row_groups))
                return [_Group(group.num_rows, group.total_byte_size) for group in groups]
            if not magic.startswith(ARROW_MAGIC):
                return ()
            with pyarrow.memory_map(str(self.path)) as stream:
                table = pyarrow.ipc.open_file(stream)
                batches = map(table.get_batch, range(table.num_record_batches))
                return [_Group(item.num_rows, item.get_total_buffer_size()) for item in batches]
        except (ValueError, pyarrow.ArrowException):
            return ()


@dataclass(frozen=True, slots=True)
class HubTable:
    """The rows of a dataset on the Hub at one commit, all splits, streamed through `datasets`.

    `is_raw`: the Hub says that its files are sessions of agents, which are read themselves.
    """

    repository: str
    commit: str
    is_raw: bool = False

    def rows(self) -> Iterator[Row]:
        """Yields each row in order; if the library cannot read one, yields a Problem and ends."""
        import datasets  # noqa: PLC0415 - two seconds of import

        number = 1
        try:
            splits = datasets.load_dataset(self.repository, revision=self.commit, streaming=True)
            for rows in splits.values():
                features = (rows.features or {}).items()
                parsed = frozenset(name for name, kind in features if "Json(" in repr(kind))
                for row in rows:
                    yield number, _row(dict(row), frozenset(), keeps=parsed)
                    number += 1
        except Exception as error:  # the libraries raise many types
            where = f"after row {number - 1}"
            yield number, Problem("unreadable", where, f"the Hub's dataset: {reason(error)}")


Table = FileTable | HubTable


def hub_table(spec: str) -> HubTable:
    """Returns the table of `hf://OWNER/NAME[@REVISION]`. Raises UsageError if there is none."""
    from huggingface_hub import HfApi  # noqa: PLC0415 - only for such inputs

    repository, _, revision = hub_name(spec).partition("@")
    try:
        info = HfApi().dataset_info(repository, revision=revision or None)
    except Exception as error:  # as above
        detail = f"input {spec!r}: cannot be loaded from the Hub: {reason(error)}"
        raise UsageError(detail) from None
    tags, files = info.tags or (), [item.rfilename for item in info.siblings or ()]
    has_rows = any(name.endswith((".parquet", ".arrow", ".csv")) for name in files)
    is_raw = any("agent-traces" in tag for tag in tags) and not has_rows
    return HubTable(repository, info.sha or revision, is_raw)


def _groups(path: Path, chunk: ItemChunk | None) -> Iterator[tuple[int, Iterator[Any]]]:
    """Yields (rows of the group, its batches of a few rows). Raises OSError, pyarrow's errors."""
    import pyarrow.ipc  # noqa: PLC0415 - only for such files
    import pyarrow.parquet  # noqa: PLC0415 - as above

    start, end = (chunk.start, chunk.end) if chunk else (0, None)
    magic = _magic(path)
    if magic.startswith(PARQUET_MAGIC):
        with pyarrow.parquet.ParquetFile(path) as table:
            for index in range(table.num_row_groups)[start:end]:
                rows = table.metadata.row_group(index).num_rows
                yield rows, table.iter_batches(batch_size=BATCH_ROWS, row_groups=[index])
        return
    with pyarrow.OSFile(str(path)) as stream:
        if magic.startswith(ARROW_MAGIC):
            table = pyarrow.ipc.open_file(stream)
            whole = (table.get_batch(index) for index in range(table.num_record_batches)[start:end])
        else:
            whole = iter(pyarrow.ipc.open_stream(stream))
        for batch in whole:
            yield batch.num_rows, _slices(batch)


def _slices(batch: Any) -> Iterator[Any]:
    # Reading does not validate offsets; invalid ones may crash the process.
    batch.validate(full=True)
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _magic(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(8)


def _unreadable(row: int, error: Exception) -> Problem:
    is_cut = "not found in footer" in str(error)  # its head was Parquet's, else it was no table
    why = "the file is truncated: it lacks the end of a Parquet file" if is_cut else reason(error)
    return Problem("unreadable", f"after row {row - 1}", f"no readable table: {why}")


def _json_columns(schema: Any) -> frozenset[str]:
    """Returns the columns whose texts are JSON, by Arrow's type or the metadata of `datasets`."""
    names = {field.name for field in schema if "arrow.json" in str(field.type)}
    note = (schema.metadata or {}).get(b"huggingface", b"")
    try:
        features = json.loads(note)["info"]["features"]
        names |= {name for name, feature in features.items() if "'Json'" in repr(feature)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # no metadata, or not that of this library
    return frozenset(names)


def _row(
    row: dict[str, Any],
    json_columns: frozenset[str],
    keeps: frozenset[str] = frozenset(),
    *,
    exact: bool = False,
) -> dict[str, Json]:
    cells: dict[str, Json] = {}
    for name, value in row.items():
        if name in json_columns:
            cells[name] = _parsed(value)
        elif exact or name in keeps:
            cells[name] = value
        elif value is not None:
            cells[name] = _plain(value)
    return cells


def _parsed(value: Any) -> Json:
    if isinstance(value, list):
        return [_parsed(item) for item in value]
    return loads_text(value) if isinstance(value, str) else _plain(value)


def _with_nulls(value: Any) -> Json:
    """Returns the arguments of a call with their nulls, which its tool's schema may require."""
    if isinstance(value, dict):
        return {str(name): _with_nulls(item) for name, item in value.items()}
    if isinstance(value, list) and not any(isinstance(item, tuple) for item in value):
        return [_with_nulls(item) for item in value]
    return _plain(value)


def _plain(value: Any) -> Json:
    if isinstance(value, dict):
        kept = arguments_of(value)
        return {
            str(name): _with_nulls(item) if name in kept else _plain(item)
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return {str(name): _plain(item) for name, item in value}  # Arrow's map
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def arguments_of(value: dict[str, Json]) -> tuple[str, ...]:
    """Returns the keys that hold arguments, if an object is a call and no definition of a tool."""
    if value.get("description") is not None:
        return ()
    keys = tuple(key for key in _ARGUMENTS if isinstance(value.get(key), dict))
    return keys if keys and any(isinstance(value.get(name), str) for name in TOOL_NAMES) else ()
