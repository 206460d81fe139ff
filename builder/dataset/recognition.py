"""Finds the reader that converts the rows of a dataset that `build` did not make.

A file is recognised by its beginning, and a row by itself, so that no row is read differently
because of the rows beside it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import islice

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads_leniently
from builder.problem import UsageError
from builder.readers import readers, recognise, unrecognised
from builder.sources.sniff import PEEK_LINES
from builder.sources.source import Record, Source

_BUILDS = "`builder build {} -o OUT` makes a dataset of it"


def reader_for(source: Source, name: str, dataset: str) -> str | None:
    """Returns the reader that converts rows of the file; None if each row is recognised by itself.

    Examines the beginning of the file. If the file is a log or its rows have no known form, raises
    a UsageError that names the command that reads it. `name` is the file's name, `dataset` what the
    user specified.
    """
    if is_csv(source) and not recognise(source):
        read = islice(source.csv_rows(), PEEK_LINES)
        source = as_lines(source.name, [row.value for row in read if isinstance(row, Record)])
    peek = source.peek
    rows = peek.objects
    unfit = {unfit_form(row) for row in rows}
    if len(unfit) == 1 and (fault := unfit.pop()):
        raise UsageError(f"dataset {name!r}: contains {fault}")
    claims = recognise(source)
    alone = [reader for reader in claims if _reads_rows_alone(reader, source)]
    if any("messages" in row or {"prompt", "completion"} <= row.keys() for row in rows):
        return alone[0] if len(claims) == len(alone) == 1 else None
    if any(isinstance(row.get("text"), str) for row in rows):
        return None
    builds = _BUILDS.format(shlex.quote(dataset))
    if len(claims) == 1:
        ((reader, why),) = claims.items()
        if alone:
            return reader
        raise UsageError(f"dataset {name!r}: is in the format {reader} ({why}); {builds}")
    if len(claims) > len(alone):
        named = builds.replace("OUT`", "OUT --format NAME`")
        raise UsageError(f"dataset {name!r}: claimed by {', '.join(claims)}; {named}")
    if claims or any(map(reader_of_row, rows)):
        return None
    columns = ", ".join(list(dict.fromkeys(key for row in rows for key in row))[:8])
    if columns:
        raise UsageError(
            f"dataset {name!r}: no known form of rows ({columns}): see docs/formats.md and"
            " docs/readers.md"
        )
    if peek.problem is None and peek.kind != "empty" and not _has_json(source):
        raise UsageError(f"dataset {name!r}: {unrecognised(source, dataset)}")
    return None


def reader_of_rows(rows: Iterable[Json], dataset: str) -> str | None:
    """Returns the reader of a dataset that is not a file, by its first rows (`reader_for`)."""
    return reader_for(as_lines(dataset, rows), dataset, dataset)


def reader_of_row(row: dict[str, Json]) -> str | None:
    """Returns the one reader that recognises a row by itself, or None."""
    source = as_lines("row", [row])
    claims = recognise(source)
    (reader,) = claims if len(claims) == 1 else (None,)
    return reader if reader is not None and _reads_rows_alone(reader, source) else None


def unfit_form(row: dict[str, Json]) -> str:
    """Describes a row that is made from a sample, but is none itself, and what to do; "" else."""
    if "input_ids" in row:
        return (
            "token ids (`builder export --to tokenized`), which no template renders: use the"
            " dataset that they were made from"
        )
    if {"prompt", "chosen", "rejected"} <= row.keys():
        return (
            "preference pairs: `builder build` makes a dataset of pairs of messages; for pairs that"
            " `builder export --to preference` wrote, use the dataset that they were made from"
        )
    return ""


def is_csv(source: Source) -> bool:
    """Returns whether a file is a table of comma-separated values, and not damaged JSON."""
    is_named = source.name.endswith(".csv") and source.peek.kind == "text"
    return (is_named or source.is_csv) and not source.head.lstrip().startswith((b"{", b"["))


def as_lines(name: str, rows: Iterable[Json]) -> Source:
    """Returns the rows, twice, as a JSONL source: a single line would be a JSON document."""
    return Source(name, data=2 * b"".join(map(row_line, rows)))


def row_line(value: Json) -> bytes:
    """Returns a row as a line of JSONL; nothing for a value that JSON cannot hold."""
    try:
        return dumps(value).encode("utf-8", "surrogatepass") + b"\n"
    except ValueError:  # NaN or Infinity
        return b""


def _reads_rows_alone(reader: str, source: Source) -> bool:
    """Returns whether the reader treats each record of the source independently."""
    splits = readers()[reader].splits
    if splits is None:
        return False
    return splits(source) or splits(as_lines(source.name, source.peek.records))


def _has_json(source: Source) -> bool:
    """Returns whether a line at the beginning is JSON, or begins like it and is damaged."""
    for line in source.head.splitlines()[:20]:
        if line.lstrip().startswith((b"{", b"[")):
            return True
        try:
            loads_leniently(line)
        except JsonFault:
            continue
        return True
    return False
