"""Reads and decodes the rows of datasets of any origin; no other module does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from builder.conversation import Json
from builder.credentials import reason
from builder.dataset.files import DataFile, dataset_files
from builder.dataset.forms import (
    RowReading,
    is_csv,
    no_sample,
    read_any,
    read_sample,
    reader_for,
    reader_of_rows,
    targets,
    unrenderable,
)
from builder.dataset.meta import NO_META, SampleMeta
from builder.finding import CheckFinding
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem, UsageError
from builder.qwen3.templates import SPECIFIED, Style
from builder.readers.toolkit.narrow import as_dict, one_or_many
from builder.sample import Sample
from builder.sources.sniff import PEEK_LINES
from builder.sources.source import Source
from builder.sources.store import hub_name
from builder.sources.table import FileTable

MAX_LINE = 1 << 31

NO_ROW = "no_row"

CONVERSATION = "conversation"
"""The training unit of a dataset that names none."""


@dataclass(frozen=True)
class DatasetRow:
    """One row of a dataset. It is decoded once, on first use.

    split, file  its location; `file` is relative to the dataset
    number       of the line or row in its file, from 1
    line         its bytes, if the file is JSONL
    stored       its value, if the file is not JSONL
    fault        why it could not be read
    meta_line    its line of meta/; a Problem if that cannot be read; None if there is none
    foreign      whether it may be in another form, since `build` did not make it
    reader       the reader that recognised its file, for rows in another form
    style        the style of the template that a row in another form is converted for
    """

    split: str
    file: str
    number: int
    line: bytes | None = None
    stored: Json = None
    fault: Problem | None = None
    meta_line: bytes | Problem | None = None
    foreign: bool = False
    reader: str | None = None
    style: Style = SPECIFIED

    @cached_property
    def decoded(self) -> Json | Problem:
        """Returns its value, or why it has none."""
        if self.fault is not None:
            return self.fault
        if self.line is None:
            return self.stored
        try:
            return loads(self.line)
        except JsonFault as fault:
            return Problem(fault.code, f"line {self.number}", fault.detail)

    @property
    def value(self) -> Json:
        """Returns its value; None if it has none."""
        return None if isinstance(self.decoded, Problem) else self.decoded

    @cached_property
    def reading(self) -> RowReading:
        """Returns its sample, and the form that the sample was converted from."""
        if isinstance(self.decoded, Problem):
            finding = CheckFinding("format", f"{self.decoded.code}: {self.decoded.detail}")
            return no_sample(finding, code=self.decoded.code)
        encoded_tools = self.line is None
        if self.foreign:
            return read_any(
                self.decoded, encoded_tools=encoded_tools, reader=self.reader, style=self.style
            )
        sample = read_sample(self.decoded, encoded_tools=encoded_tools)
        faults = list(unrenderable(sample)) if isinstance(sample, Sample) else sample
        if isinstance(sample, Sample) and not faults:
            return RowReading(sample)
        return no_sample(*faults)

    @cached_property
    def converted(self) -> dict[str, Json] | None:
        """Returns the record that it was converted to; None for a row in the form of `build`."""
        if not self.foreign or not self.reading.form or not isinstance(self.sample, Sample):
            return None
        return self.sample.record

    @property
    def sample(self) -> Sample | tuple[CheckFinding, ...]:
        """Returns its sample, or every reason why it has none."""
        return self.reading.sample

    @cached_property
    def meta(self) -> SampleMeta:
        """Returns its line of meta/; `NO_META` if there is none."""
        return SampleMeta.read(self.meta_values) if self.meta_values else NO_META

    @cached_property
    def meta_values(self) -> dict[str, Json]:
        """Returns its line of meta/ as it was written, decoded; {} if there is none."""
        if not isinstance(self.meta_line, bytes):
            return {}
        try:
            value = loads(self.meta_line)
        except JsonFault:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def failed_calls(self) -> Mapping[str, str] | None:
        """Returns {place of a call: failure} as the log or the row states them, else None."""
        return self.reading.failed_calls if self.foreign else self.meta.failed_calls

    @property
    def unit(self) -> str:
        """Returns the training unit that meta/ names, else "conversation"."""
        return self.meta.unit or CONVERSATION

    @property
    def late_system(self) -> bool:
        """Returns whether it was built with a system message that is not the first message."""
        return "late_system_kept" in self.meta.changes

    def targets(self, sample: Sample, unit: str | None = None) -> tuple[int, ...]:
        """Returns the ordinals of the trained assistant turns, according to `unit` or meta/."""
        is_known = unit is None and self.unit != CONVERSATION
        trained = self.meta.assistant_turns if is_known else 0
        return targets(sample, unit or self.unit, trained or None)

    @property
    def written(self) -> bytes | Problem:
        """Returns its line as in a JSONL file, whatever kind of file contains it."""
        if self.line is not None or self.fault is not None:
            return self.line or self.fault or b""
        sample = self.sample
        return sample.line if isinstance(sample, Sample) else dumps(self.stored).encode()


def dataset_rows(
    dataset: str, style: Style = SPECIFIED, *, as_is: bool = False
) -> Iterator[DatasetRow]:
    """Yields the rows of a file, a folder or a Hub dataset; `style` is that of `DatasetRow`.

    Raises UsageError if there is no such dataset, a file cannot be read, or its rows have no known
    form. `as_is`: only the values of the rows are needed, so any form is accepted.
    """
    files = dataset_files(dataset)
    for item in files:
        try:
            for row in file_rows(replace(item, built=item.built or as_is), style):
                if row.fault is None or row.fault.code != NO_ROW:
                    yield row
        except OSError as error:
            raise UsageError(f"dataset {item.name!r}: cannot be read: {reason(error)}") from None
    if not files:
        yield from _hub_rows(dataset, style, as_is=as_is)


def file_rows(item: DataFile, style: Style = SPECIFIED) -> Iterator[DatasetRow]:
    """Yields the rows of a file, each with its line of meta/.

    If meta/ has more lines than there are rows, the last one has the fault `NO_ROW`. Raises OSError
    if it is a table that cannot be read, UsageError if it is a log (`reader_for`).
    """
    if item.meta is None:
        known = {} if item.built else {"foreign": True, "reader": reader_of(item), "style": style}
        yield from _own_rows(item, **known)
        return
    described = (line for _, line in _file_lines(item.meta))
    number = 0
    for row, meta in zip_longest(_own_rows(item), described):
        if row is None:
            fault = Problem(NO_ROW, item.name, "meta/ has a line for which data/ has none")
            yield DatasetRow(item.split, item.name, number + 1, fault=fault)
            return
        number = row.number
        yield row if meta is None else replace(row, meta_line=meta)


def reader_of(item: DataFile) -> str | None:
    """Returns the reader that converts the rows of a foreign file; None if they need none.

    Raises OSError and UsageError like `file_rows`.
    """
    return reader_for(_source(item.path), str(item.path), str(item.folder or item.path))


def unindexed_rows(item: DataFile) -> Iterator[Json] | None:
    """Returns the values of a file's rows; None for JSONL and Parquet files.

    Those can be read from any row on, other files only from the first.
    """
    source = _source(item.path)
    if is_parquet(source):
        return None
    rows = _stored_rows(item, source)
    if rows is None:
        return None
    return (f"{row.code}: {row.detail}" if isinstance(row, Problem) else row for _, row in rows)


def json_lines(path: Path) -> Iterator[tuple[int, Json]]:
    """Yields (number from 1, value) of each line of a JSONL file; None for one that is not JSON."""
    for number, line in _file_lines(path):
        try:
            yield number, None if isinstance(line, Problem) else loads(line)
        except JsonFault:
            yield number, None


def json_objects(paths: Iterable[Path]) -> Iterator[dict[str, Json]]:
    """Yields each line of some JSONL files as an object; {} for a line that is not one."""
    for path in paths:
        for _, value in json_lines(path):
            yield as_dict(value)


def _own_rows(item: DataFile, **known: Any) -> Iterator[DatasetRow]:
    """Yields the rows as they are: values of a table or document, else lines."""
    rows: Iterator[tuple[int, Any]] | None = _stored_rows(item, _source(item.path))
    kind = "stored" if rows is not None else "line"
    for number, value in rows if rows is not None else _file_lines(item.path):
        content: dict[str, Any] = {"fault" if isinstance(value, Problem) else kind: value}
        yield DatasetRow(item.split, item.name, number, **content, **known)


def _stored_rows(item: DataFile, source: Source) -> Iterator[tuple[int, Json | Problem]] | None:
    """Returns (number, value) of the rows of a table or a JSON document; None if it is JSONL."""
    if is_parquet(source) or source.table is not None:
        return _table_rows(item.path)
    if is_csv(source):
        rows = (row if isinstance(row, Problem) else row.value for row in source.csv_rows())
        return enumerate(rows, start=1)
    if ".jsonl" in item.path.name or source.peek.kind != "json":
        return None
    document = source.document(exact=True)
    return None if isinstance(document, Problem) else enumerate(one_or_many(document), start=1)


def _source(path: Path) -> Source:
    return Source(path.name, path, max_record_bytes=MAX_LINE)


def _file_lines(path: Path) -> Iterator[tuple[int, bytes | Problem]]:
    number = 0
    for item in _source(path).lines():
        if isinstance(item, Problem):
            yield number + 1, item
        else:
            number, line, _ = item
            yield number, line


def is_parquet(source: Source) -> bool:
    """Returns whether it is a Parquet file, by its name or its first bytes."""
    return source.name.endswith(".parquet") or source.head.startswith(b"PAR1")


def _table_rows(path: Path) -> Iterator[tuple[int, Json]]:
    for number, row in FileTable(path).rows(exact=True):
        if isinstance(row, Problem):
            raise OSError(row.detail)
        yield number, plain_row(row)


def _hub_rows(dataset: str, style: Style, *, as_is: bool) -> Iterator[DatasetRow]:
    """Yields the rows of a Hub dataset as the loader streams them. Raises UsageError.

    For `as_is` see `dataset_rows`.
    """
    import datasets  # noqa: PLC0415 - two seconds of import

    repository, _, revision = hub_name(dataset).partition("@")
    try:
        splits = datasets.load_dataset(repository, revision=revision or None, streaming=True)
        for split, rows in splits.items():
            values = map(plain_row, rows)
            first = list(islice(values, PEEK_LINES))
            reader = None if as_is else reader_of_rows(first, dataset)
            known: dict[str, Any] = {"foreign": not as_is, "reader": reader, "style": style}
            for number, value in enumerate(chain(first, values), start=1):
                yield DatasetRow(str(split), repository, number, stored=value, **known)
    except UsageError:
        raise
    except Exception as error:  # any exception of the library: the dataset cannot be loaded
        raise UsageError(f"dataset {dataset!r}: cannot be loaded: {reason(error)}") from None


def plain_row(value: Any) -> Json:
    """Returns a row as JSON; a value of another type becomes a list, which the checks refuse."""
    if isinstance(value, dict):
        return {str(key): plain_row(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_row(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else [str(value)]
