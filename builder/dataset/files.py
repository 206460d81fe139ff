"""The rows of a dataset of any origin, each with what its meta/ line says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from builder.conversation import Json
from builder.dataset.rows import (
    MAX_LINE,
    NO_FILE,
    data_files,
    dataset_path,
    file_lines,
    hub_rows,
    is_parquet,
    is_special,
    parquet_rows,
)
from builder.jsonio import JsonFault, loads
from builder.problem import UsageError
from builder.sources.source import Source
from builder.sources.store import is_hub_name

CONVERSATION = "conversation"
"""The training unit of a dataset that names none."""


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One row: where it stands, its decoded value, and its line of meta/ ({} if there is none)."""

    split: str
    file: str
    line: int
    value: Json
    meta: dict[str, Json] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The training unit that meta/ names, else "conversation"."""
        unit = self.meta.get("unit")
        return unit if isinstance(unit, str) else CONVERSATION

    @property
    def trained(self) -> int | None:
        """How many of the last assistant turns are trained, without weights; None: all of them."""
        turns = self.meta.get("assistant_turns")
        return turns if isinstance(turns, int) and self.unit != CONVERSATION else None

    @property
    def late_system(self) -> bool:
        """Whether the row was built with a system message after the first turn."""
        return keeps_late_system(self.meta)


def keeps_late_system(meta: dict[str, Json]) -> bool:
    """Whether a line of meta/ says that a later system message was kept as one."""
    changes = meta.get("changes")
    return isinstance(changes, dict) and "late_system_kept" in changes


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row, not decoded: its line (None: it could not be read), or of other files its value."""

    split: str
    file: str
    number: int
    line: bytes | None = None
    value: Json = None
    meta: bytes | None = None

    def decoded(self) -> DatasetRow:
        """The row; the value of a line that is no JSON is None."""
        value = self.value if self.line is None else _decoded(self.line)
        told = _decoded(self.meta) if self.meta is not None else None
        known = told if isinstance(told, dict) else {}
        return DatasetRow(self.split, self.file, self.number, value, known)


def _decoded(line: bytes) -> Json:
    try:
        return loads(line)
    except JsonFault:
        return None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows: its path, its name in the dataset, its split, its file of meta/ or None."""

    path: Path
    name: str
    split: str
    meta: Path | None = None


def dataset_files(dataset: str) -> list[DataFile]:
    """The files of a file or folder, of a built one the first kind of files; [] if it is neither.

    Raises UsageError if a folder holds no data, or what is no file.
    """
    path = dataset_path(dataset)
    if path.is_file():
        return [DataFile(path, path.name, "train")]
    if not path.is_dir():
        return []
    files = data_files(path)
    data = [item for item in files if item.parent == path / "data"]
    if data:  # of a built folder: not meta/, and no sample twice
        kind = min(item.name.partition(".")[2] for item in data)  # lines before tables
        files = [item for item in data if item.name.partition(".")[2] == kind]
    if not files:
        raise UsageError(f"dataset {dataset!r}: holds no data files")
    for item in filter(is_special, files):
        raise UsageError(f"dataset {dataset!r}: {item.name!r} is {NO_FILE}")
    found = []
    for item in files:
        meta = path / "meta" / f"{item.name.partition('.')[0]}.jsonl"
        name = item.relative_to(path).as_posix()
        has_meta = bool(data) and meta.is_file()
        found.append(DataFile(item, name, _split(item.name), meta if has_meta else None))
    return found


def dataset_rows(dataset: str) -> Iterator[DatasetRow]:
    """The rows of a file, a folder (of a built one the first kind of files) or a Hub dataset.

    Raises UsageError if there is no such dataset.
    """
    return (row.decoded() for row in raw_dataset_rows(dataset))


def raw_dataset_rows(dataset: str) -> Iterator[RawRow]:
    """As above, the lines not decoded yet."""
    files = dataset_files(dataset)
    for item in files:
        yield from _file(item)
    if not files and is_hub_name(dataset):
        for repository, split, number, value in hub_rows(dataset):
            yield RawRow(split, repository, number, value=value)
    elif not files:
        raise UsageError(f"dataset {dataset!r}: no such file or folder")


def _split(name: str) -> str:
    begins = name.partition("-")[0]
    return begins if begins in ("train", "validation", "test") else "train"


def _file(item: DataFile) -> Iterator[RawRow]:
    try:
        for row, about in zip_longest(_lines(item), _noted(item)):
            if row is None:
                return
            yield row if about is None else replace(row, meta=about)
    except OSError as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"dataset {item.name!r}: cannot be read: {reason}") from None


def _lines(item: DataFile) -> Iterator[RawRow]:
    source = Source(item.path.name, item.path, max_record_bytes=MAX_LINE)
    if is_parquet(source):
        for number, value in parquet_rows(item.path):
            yield RawRow(item.split, item.name, number, value=value)
        return
    for number, line in file_lines(source):
        yield RawRow(item.split, item.name, number, line if isinstance(line, bytes) else None)


def _noted(item: DataFile) -> Iterator[bytes | None]:
    if item.meta is None:
        return
    for _, line in file_lines(Source(item.meta.name, item.meta, max_record_bytes=MAX_LINE)):
        yield line if isinstance(line, bytes) else None
