"""Rows of datasets of any origin, and the sample that a row holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builder.conversation import Json
from builder.finding import Finding
from builder.jsonio import JsonFault, dumps, loads
from builder.paths import expand_home
from builder.problem import Problem, UsageError
from builder.sample import Sample
from builder.sources.source import Source
from builder.sources.store import hub_name

MAX_LINE = 1 << 31

DATA_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
"""Files of a folder that is not made by `build` that are taken for data."""

NO_FILE = "neither a file nor a folder"


def data_files(folder: Path) -> list[Path]:
    """The data files below a folder, by name; a pipe of such a name is among them."""
    found = sorted(folder.rglob("*"))
    return [path for path in found if path.name.endswith(DATA_SUFFIXES) and not path.is_dir()]


def is_special(path: Path) -> bool:
    """Is it a pipe, a socket or a device? Those may not end, and do not begin anew."""
    return path.exists() and not path.is_file() and not path.is_dir()


def dataset_path(dataset: str) -> Path:
    """Where a dataset would lie on a disk, if that is what the name says.

    Raises UsageError: no name, or one of what is neither a file nor a folder.
    """
    if not dataset:
        raise UsageError("dataset '': names nothing")
    path = expand_home(dataset)
    if is_special(path):
        raise UsageError(f"dataset {dataset!r}: {NO_FILE}")
    return path


def is_parquet(source: Source) -> bool:
    """Is the file a Parquet file, by its name or its first bytes?"""
    return source.name.endswith(".parquet") or source.head.startswith(b"PAR1")


def file_lines(source: Source) -> Iterator[tuple[int, bytes | Problem]]:
    """(number from 1, line) of each line; in place of one that cannot be read, the Problem."""
    number = 0
    for item in source.lines():
        if isinstance(item, Problem):
            yield number + 1, item
        else:
            number, line, _ = item
            yield number, line


def raw_rows(path: Path) -> Iterator[tuple[int, Json]]:
    """(number from 1, decoded row) of each row of a JSONL or Parquet file; None: no JSON.

    Raises OSError if it is a Parquet file that cannot be read.
    """
    source = Source(path.name, path, max_record_bytes=MAX_LINE)
    if is_parquet(source):
        yield from parquet_rows(path)
        return
    for number, line in file_lines(source):
        try:
            yield number, None if isinstance(line, Problem) else loads(line)
        except JsonFault:
            yield number, None


def parquet_rows(path: Path) -> Iterator[tuple[int, Json]]:
    """(number from 1, row). Raises OSError if the file is no Parquet or cannot be read."""
    import pyarrow.parquet  # noqa: PLC0415 - only for such files

    number = 0
    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=64):
            for row in batch.to_pylist():
                number += 1
                yield number, plain_row(row)
    # Of a value that Python cannot have: text that is no UTF-8, a time beyond its calendar.
    except (OSError, ValueError, OverflowError, pyarrow.ArrowException) as error:
        raise OSError(f"no readable Parquet: {error}"[:200]) from error


def hub_rows(dataset: str) -> Iterator[tuple[str, str, int, Json]]:
    """(repository, split, number from 1, row) of each row of a Hub dataset. Raises UsageError."""
    import datasets  # noqa: PLC0415 - two seconds of import

    repository, _, revision = hub_name(dataset).partition("@")
    try:
        splits = datasets.load_dataset(repository, revision=revision or None, streaming=True)
        for split, rows in splits.items():
            for number, row in enumerate(rows, start=1):
                yield repository, str(split), number, plain_row(row)
    except Exception as error:  # a library's many ways of saying that it cannot be had
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"dataset {dataset!r}: cannot be loaded: {reason}") from None


def plain_row(value: Any) -> Json:
    """A row as JSON values; what is none becomes a value that the checks refuse."""
    if isinstance(value, dict):
        return {str(key): plain_row(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_row(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else [str(value)]


def written_lines(path: Path, name: str) -> Iterator[tuple[int, bytes | Problem]]:
    """(number, line) of a file of data/; the rows of a Parquet file as the JSONL has them."""
    source = Source(name, path, max_record_bytes=MAX_LINE)
    if not is_parquet(source):
        yield from file_lines(source)
        return
    number = 0
    try:
        for number, row in parquet_rows(path):
            sample = read_sample(row)
            yield number, sample.line if isinstance(sample, Sample) else dumps(row).encode()
    except OSError as error:
        yield number + 1, Problem("unreadable", "file", str(error)[:200])


def read_sample(value: Json) -> Sample | list[Finding]:
    """Read the sample in a decoded line, or find every reason why it is none.

    `tools` may be missing, null, or a list as JSON text, and so may each of its elements be (that
    is how Arrow files keep JSON). An assistant message may have a `weight` of 0 or 1; null, which
    Arrow writes for a message without one, is none. Other columns are not looked at.
    """
    if not isinstance(value, dict):
        return [Finding("format", "the line is no JSON object")]
    findings: list[Finding] = []
    raw = value.get("messages")
    messages: list[tuple[str, str]] = []
    weights: list[int | None] = []
    if not isinstance(raw, list):
        findings.append(Finding("format", "messages: is no list"))
        raw = []
    for index, item in enumerate(raw):
        role = item.get("role") if isinstance(item, dict) else None
        content = item.get("content") if isinstance(item, dict) else None
        if not isinstance(role, str):
            findings.append(Finding("format", f"messages[{index}].role: is no string", index))
        elif not isinstance(content, str):
            message = (
                f"messages[{index}].content: is no string (the template renders lists as nothing)"
            )
            findings.append(Finding("format", message, index))
        elif isinstance(item, dict) and set(item) - {"role", "content", "weight"}:
            extra = ", ".join(sorted(set(item) - {"role", "content", "weight"}))
            message = f"messages[{index}]: unknown keys {extra}: not the flat form"
            findings.append(Finding("format", message, index))
        elif isinstance(item, dict) and not _is_weight(item.get("weight"), role):
            message = f"messages[{index}].weight: is not 0 or 1 of an assistant message"
            findings.append(Finding("format", message, index))
        elif isinstance(item, dict):
            weight = item.get("weight")
            messages.append((role, content))
            weights.append(weight if isinstance(weight, int) else None)
    tools = value.get("tools")
    if isinstance(tools, str):
        try:
            tools = loads(tools)
        except JsonFault as fault:
            findings.append(Finding("format", f"tools: text that is no JSON: {fault.detail}"))
            tools = None
    if tools is not None and not isinstance(tools, list):
        findings.append(Finding("format", "tools: is no list"))
    if findings:
        return findings
    listed = tools if isinstance(tools, list) else []
    given = tuple(weights) if any(weight is not None for weight in weights) else ()
    return Sample(tuple(messages), tuple(map(_definition, listed)), given)


def _is_weight(value: Json, role: str) -> bool:
    return value is None or (role == "assistant" and type(value) is int and value in (0, 1))


def targets(sample: Sample, unit: str, trained: int | None = None) -> tuple[int, ...]:
    """Find the ordinals of the assistant turns that a row trains.

    Weights decide where there are any. Else the last `trained` turns are meant; None: the last one
    for the unit "turn", otherwise all.
    """
    if sample.weights:
        return sample.targets
    if trained is None and unit == "turn":
        trained = 1
    turns = sum(role == "assistant" for role, _ in sample.messages)
    first = 0 if trained is None else max(turns - trained, 0)
    return tuple(range(first, turns))


def _definition(tool: Json) -> Json:
    """A definition out of its JSON text; anything else as it is, for the verifier to judge."""
    if not isinstance(tool, str):
        return tool
    try:
        return loads(tool)
    except JsonFault:
        return tool
