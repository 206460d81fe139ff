"""Compares the rows that `datasets.load_dataset` returns with the files of the dataset.

The real loader runs, in a temporary cache. Rows are compared as ordered JSON, and only those that
differ are rendered (docs/verify.md).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date, time
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from builder.conversation import Json
from builder.credentials import reason
from builder.dataset.files import NOT_A_FILE, DataFile, data_files, is_special
from builder.dataset.forms import read_sample
from builder.dataset.rows import file_rows, plain_row
from builder.finding import CheckFinding, differ
from builder.jsonio import JsonFault, dumps, loads
from builder.jsonio import loads as exact
from builder.parallel.host import quiet_datasets
from builder.problem import Problem, UsageError
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.sources.store import hub_name
from builder.verify.summary import LineReport

# -- predicts what `datasets.load_dataset` would change in a sample, before it is written ----------

_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?\s*(Z|[+-]\d\d(:?\d\d)?)?)?"
)


def loader_fault(sample: Sample) -> str | None:
    """Returns what a loader would change in the sample, or None."""
    for definition in sample.definitions:
        if (fault := _number_fault(definition)) is not None:
            return fault
    if all(_TIMESTAMP.fullmatch(content) for _, content in sample.messages):
        return "every content looks like a date: Arrow reads such a column as timestamps"
    return None


def _numbers(value: Json) -> Iterator[int | float]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield item


def _is_plain(number: int | float) -> bool:
    """Returns whether a number is a small integer, which the loader keeps; 1.0 is one too."""
    if isinstance(number, int):
        return -(2**53) < number < 2**53
    return number.is_integer() and 1 <= abs(number) < 1e9


@lru_cache(maxsize=1024)
def _number_fault(text: str) -> str | None:
    """Returns how the loader changes a number in a definition, or None."""
    if all(map(_is_plain, _numbers(exact(text)))):
        return None
    import pandas  # noqa: PLC0415 - takes half a second

    loads, writes = pandas.io.json.ujson_loads, pandas.io.json.ujson_dumps
    try:
        once = loads(text)
        for loaded in (dumps(once), dumps(loads(writes(once)))):
            if loaded != text:
                return f"a number in a tool definition: the loader makes {_around(text, loaded)}"
    except (ValueError, OverflowError) as error:
        return f"a number in a tool definition: the loader refuses it: {error}"[:200]
    return None


def _around(was: str, now: str) -> str:
    offset = next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), 0)
    return (
        f"{now[max(offset - 20, 0) : offset + 20]!r} of {was[max(offset - 20, 0) : offset + 20]!r}"
    )


_CODE = "as-loaded"

SLICE_BYTES = 32 << 20
"""Bytes of the prepared dataset that are mapped into memory at a time."""

_BATCH_ROWS = 64
"""Rows that are decoded at a time; decoding single rows is slower."""

_ADVICE = (
    "; declare the features in the dataset's README.md (tools: a list of json, datasets 4.7 or"
    " later), or keep tools as JSON text"
)


def import_loader() -> None:
    """Imports what `as_loaded` needs, which takes half a second."""
    import datasets  # noqa: F401, PLC0415 - heavy


def as_loaded(dataset: Path, target: Target, scratch: Path | None = None) -> Iterator[LineReport]:
    """Yields a report for each row whose rendering the loader would change.

    `dataset` is a file or a folder; `scratch` is the folder for the loader's temporary cache.
    """
    for path in filter(is_special, data_files(dataset)):  # the loader would wait for it forever
        yield LineReport(path.name, 0, (CheckFinding(_CODE, NOT_A_FILE),))
        return
    with quiet_datasets(), tempfile.TemporaryDirectory(dir=scratch) as cache:
        advice = _ADVICE
        try:
            builders = _builders(dataset, cache)
            if any(builder.info.features is not None for builder in builders):
                advice = ""  # the features are declared already
            for builder in builders:
                builder.download_and_prepare()
                builder.as_dataset()  # like load_dataset; refuses a split without rows
        except Exception as error:  # any exception of the loader is a finding about the files
            yield LineReport(dataset.name, 0, (_unloadable(error, advice),))
            return
        for builder in builders:
            for split, paths in builder.config.data_files.items():
                files = [Path(str(path)) for path in paths]
                rows = _caught(_rows(builder, str(split)))
                yield from _split(dataset, files, rows, target, advice)


def hub_as_loaded(dataset: str, target: Target) -> Iterator[LineReport]:
    """Downloads a Hub dataset and yields the reports of `as_loaded`. Raises UsageError."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - only for Hub ids

    name, _, revision = hub_name(dataset).partition("@")
    with tempfile.TemporaryDirectory() as folder:
        try:
            snapshot_download(
                name, repo_type="dataset", revision=revision or None, local_dir=folder
            )
        except Exception as error:  # the client raises many types if a dataset cannot be downloaded
            raise UsageError(f"dataset {dataset!r}: cannot be fetched: {reason(error)}") from None
        yield from as_loaded(Path(folder), target)


def _builders(dataset: Path, cache: str) -> list[Any]:
    """Returns one builder for a file; for a folder, one for each configuration in its card."""
    import datasets  # noqa: PLC0415 - two seconds of import

    if not dataset.is_dir():
        kind = "parquet" if dataset.name.endswith(".parquet") else "json"
        return [datasets.load_dataset_builder(kind, data_files=str(dataset), cache_dir=cache)]
    folder = str(dataset.resolve())  # the loader uses the folder's name, and "." is none
    builders = [
        datasets.load_dataset_builder(folder, name, cache_dir=cache)
        for name in datasets.get_dataset_config_names(folder)
    ]
    read = {
        str(path) for one in builders for paths in one.config.data_files.values() for path in paths
    }
    # A configuration has one loader: files of another format are loaded by name.
    others = sorted(path for path in dataset.glob("data/*.parquet") if str(path) not in read)
    return builders + [builder for path in others for builder in _builders(path, cache)]


def _rows(builder: Any, split: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a split, slice by slice: the pages of a mapped file stay in memory."""
    from datasets import ReadInstruction  # noqa: PLC0415 - loaded before

    info = builder.info.splits[split]
    count = info.num_examples
    step = count * SLICE_BYTES // max(info.num_bytes, 1) + 1
    for start in range(0, count, step):
        end = min(start + step, count)
        part = builder.as_dataset(ReadInstruction(split, from_=start, to=end, unit="abs"))
        for batch in part.iter(_BATCH_ROWS):
            yield from (
                dict(zip(batch, values, strict=True))
                for values in zip(*batch.values(), strict=True)
            )


def _caught(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any] | Exception]:
    try:
        yield from rows
    except Exception as error:  # any exception of the loader is a finding about the files
        yield error


def _unloadable(error: Exception, advice: str) -> CheckFinding:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return CheckFinding(_CODE, f"the loader fails: {reason(cause)}{advice}")


def _split(
    dataset: Path,
    files: Sequence[Path],
    rows: Iterator[dict[str, Any] | Exception],
    target: Target,
    advice: str,
) -> Iterator[LineReport]:
    # relpath: the loader's paths are absolute, ours may be relative
    names = [
        Path(os.path.relpath(path, dataset)).as_posix() if dataset.is_dir() else path.name
        for path in files
    ]
    named = zip(names, files, strict=True)
    written = (
        (name, number, line) for name, path in named for number, line in _written_lines(path)
    )
    for item, row in zip_longest(written, rows):
        if isinstance(row, Exception):
            yield LineReport(dataset.name, 0, (_unloadable(row, advice),))
            return
        if item is None:
            yield LineReport(dataset.name, 0, (CheckFinding(_CODE, "the loader gives more rows"),))
            return
        name, number, line = item
        if row is None:
            yield LineReport(name, number, (CheckFinding(_CODE, "the loader gives fewer rows"),))
            return
        if line == _line(row):
            continue  # the usual case for files from `build`
        sample = read_sample(_decoded(line))
        if isinstance(sample, Sample):
            finding = _changed(sample, row, target, advice)
            if finding is not None:
                yield LineReport(name, number, (finding,))


def _written_lines(path: Path) -> Iterator[tuple[int, bytes | Problem]]:
    number = 0
    try:
        for row in file_rows(DataFile(path, path.name, "train")):
            number = row.number
            yield number, row.written
    except OSError as error:
        yield number + 1, Problem("unreadable", "file", str(error)[:200])


def _line(row: dict[str, Any]) -> bytes | None:
    """Returns the row's line as `build` writes it; None if it is not a sample."""
    sample = read_sample(row)
    try:
        return sample.line if isinstance(sample, Sample) else None
    except (TypeError, ValueError):  # not JSON, such as a timestamp; lone surrogates
        return None


def _decoded(line: bytes | Problem) -> Json:
    try:
        return None if isinstance(line, Problem) else loads(line)
    except JsonFault:
        return None


def _changed(
    sample: Sample, row: dict[str, Any], target: Target, advice: str
) -> CheckFinding | None:
    """Returns the finding if the loader has changed what the model would see, else None."""
    read_back = {"messages": row.get("messages"), "tools": row.get("tools")}
    if _is_same(sample, read_back["messages"], read_back["tools"]):
        return None
    why = "; ".join(dict.fromkeys(_differences(sample.record, read_back)))
    loaded = read_sample(plain_row(read_back))
    if not isinstance(loaded, Sample):
        return CheckFinding(_CODE, f"the loader no longer gives a sample ({why}){advice}")
    target.open()  # if it cannot be loaded, that is no finding about the row
    try:
        texts = [target.render_sample(item) for item in (sample, loaded)]
    except Exception as error:  # any exception of a template is a finding about the row
        return CheckFinding(_CODE, f"as loaded it does not render: {error}"[:200])
    if texts[0] == texts[1]:
        return None
    return differ(_CODE, f"the loader changes it ({why}){advice}", *texts)


def _is_same(sample: Sample, messages: Any, tools: Any) -> bool:
    if messages != sample.record["messages"] or not isinstance(tools, list):
        return False
    try:
        as_texts = tuple(map(dumps, tools))
    except TypeError:
        return False  # a value that is not JSON, such as a timestamp
    return as_texts == sample.definitions and all(
        list(one) == ["role", "content"] for one in messages
    )


def _differences(was: Any, now: Any) -> Iterator[str]:
    """Yields descriptions of the changes from one value to another."""
    if isinstance(was, dict) and isinstance(now, dict):
        added = [key for key in now if key not in was]
        if any(now[key] is None for key in added):
            yield "nulls invented"
        if any(now[key] is not None for key in added):
            yield "keys added"
        if any(key not in now for key in was):
            yield "keys lost"
        common = [key for key in was if key in now]
        if common != [key for key in now if key in was]:
            yield "keys re-ordered"
        for key in common:
            yield from _differences(was[key], now[key])
    elif isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            yield f"{len(was)} items became {len(now)}"
        for one, two in zip(was, now, strict=False):
            yield from _differences(one, two)
    elif isinstance(was, str) and isinstance(now, str | date | time):
        if was != now:
            dated = _is_date(was) or not isinstance(now, str)
            yield "a date-like text became a timestamp" if dated else "a text changed"
    elif type(was) is not type(now):
        yield f"a {_kind(was)} became a {_kind(now)}"
    elif was != now or repr(was) != repr(now):
        yield f"{was!r} became {now!r}"[:80]


def _is_date(text: str) -> bool:
    return len(text) < 40 and text[:4].isdigit()


def _kind(value: object) -> str:
    names = {dict: "object", list: "list", str: "text", type(None): "null"}
    return names.get(type(value), "number")
