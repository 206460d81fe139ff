"""Verifies datasets of any origin row by row; memory is bounded by the longest rows.

This process reads the rows in order, and worker processes check them. A folder made by `build` is
also compared with its manifest and with every number in its meta/.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from builder.conversation import PARTIAL
from builder.dataset.files import (
    NOT_A_FILE,
    DataFile,
    check_folder,
    data_file,
    data_files,
    dataset_path,
    is_built,
    is_special,
    readable_file,
)
from builder.dataset.forms import RowReading
from builder.dataset.rows import CONVERSATION, NO_ROW, DatasetRow, dataset_rows, file_rows
from builder.finding import CheckFinding, differ
from builder.normalize.units import UNITS
from builder.output.folder import changed_files
from builder.output.manifest import MANIFEST, Manifest
from builder.parallel.pool import batches, imap
from builder.paths import file_inside
from builder.problem import UsageError
from builder.qwen3.render import Spans, counts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.text import counted
from builder.verify.options import VerifyOptions
from builder.verify.preload import preloading
from builder.verify.summary import LineReport
from builder.verify.verifier import Verdict, Verifier, verifier_for

_AS_WRITTEN = "as-written"
"""The code of a row in another form whose rendering differs from that of the converted row."""

_DIFFERS = (
    "read as {}, the row passes once converted; as written the template renders it differently"
    " or refuses it"
)


Examine = Callable[[Sample, str, Spans, Target], Mapping[str, Any]]
"""Examines a proven sample, its text and its trained spans; the results have a method `merge`."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A row to check. `unit` None: the one in its meta line. `manifest` is that of a built folder.

    `repeats` is the location of an earlier equal row.
    """

    row: DatasetRow
    unit: str | None
    manifest: Manifest | None = None
    repeats: str | None = None


def verify_dataset(
    dataset: str,
    verifier: Verifier,
    unit: str | None,
    workers: int = 1,
    examine: Examine | None = None,
) -> Iterator[LineReport]:
    """Yields a report for every row of a file, a folder or a Hub dataset, in order.

    `unit` None: the one in a built folder's meta/, else "conversation". Worker processes create
    verifiers with the same tokenizer and options. `examine` is called for each proven row where it
    is verified. Raises UsageError if there is no such dataset.
    """
    tasks = _repeats(_tasks(dataset, unit))
    if workers == 1:
        yield from (_report(item, verifier, examine) for item in tasks)
        return
    name = verifier.target.reference
    work = partial(_reports, name, verifier.options, examine)
    for reports in imap(work, batches(tasks, _size), workers, preloading(name)):
        yield from reports


def checked_rows(
    dataset: str, verifier: Verifier, unit: str | None = None
) -> Iterator[tuple[DatasetRow, Sample | None, Verdict]]:
    """Yields each row, its sample (None if it has none) and the verdict. Raises UsageError.

    `unit` None: the one in the row's meta line.
    """
    for row in dataset_rows(dataset, verifier.target.style):
        sample = row.sample
        if isinstance(sample, Sample):
            yield row, sample, check_row(row, sample, verifier, unit)
        else:
            yield row, None, Verdict(sample)


def check_row(row: DatasetRow, sample: Sample, verifier: Verifier, unit: str | None) -> Verdict:
    """Returns the verdict on a row's sample; `unit` None: the one in its meta line."""
    chosen, reading = row.targets(sample, unit), row.reading
    verdict = verifier.check(sample, reading.dialogue, chosen, late_system=row.late_system)
    if reading.text is not None and verdict.text and verdict.text != reading.text:
        what = "the template gives different text"
        finding = differ(_AS_WRITTEN, what, verdict.text, reading.text)
        return replace(verdict, findings=(*verdict.findings, finding))
    if reading.messages and _rendered(reading, verifier) != verdict.text:
        finding = CheckFinding(_AS_WRITTEN, _DIFFERS.format(reading.form))
        if reading.exact:
            return replace(verdict, findings=(*verdict.findings, finding))
        return replace(verdict, warnings=(*verdict.warnings, finding))
    return verdict


def _rendered(reading: RowReading, verifier: Verifier) -> str | None:
    """Returns the rendering of a converted row as it was written; None if that fails.

    transformers 5 gives thoughts under other names to the template, which other programs do not.
    """
    tools: Any = reading.tools or None
    unread = {"reasoning", "thinking"}.difference(re.findall(r"\w+", verifier.target.template))
    messages = [
        {key: value for key, value in message.items() if key not in unread}
        for message in reading.messages
    ]
    try:
        return verifier.target.render(messages, tools)
    except Exception:  # any exception of a template is a finding about the row
        return None


def _size(item: LineReport | _Task) -> int:
    return len(item.row.line or b"") if isinstance(item, _Task) else 0


def _reports(
    tokenizer: str,
    options: VerifyOptions,
    examine: Examine | None,
    batch: list[LineReport | _Task],
) -> list[LineReport]:
    verifier = verifier_for(tokenizer, options)
    return [_report(item, verifier, examine) for item in batch]


def _report(
    item: LineReport | _Task, verifier: Verifier, examine: Examine | None = None
) -> LineReport:
    if isinstance(item, LineReport):
        return item
    row = replace(item.row, style=verifier.target.style) if item.row.foreign else item.row
    sample = row.sample
    if isinstance(sample, Sample):
        verdict = check_row(row, sample, verifier, item.unit)
    else:
        verdict = Verdict(sample)
    masks: Mapping[str, Any] = {}
    if examine is not None and isinstance(sample, Sample) and not verdict.findings:
        masks = examine(sample, verdict.text, verdict.spans, verifier.target)
    findings, warnings = verdict.findings, verdict.warnings + row.reading.warnings
    context = row.meta.context
    if "complete" in verifier.options.require and (context is None or context.level == PARTIAL):
        missing = ", ".join(context.missing) if context is not None else "not known"
        findings += (CheckFinding("context", f"not complete: {missing}"),)
    if cut := row.reading.changes.get("turns_cut", 0):
        message = f"the conversion leaves out {counted(cut, 'turn')}, which a trainer would train"
        warnings += (CheckFinding("turns-cut", message),)
    if item.manifest is not None:
        incorrect = _differences(row, verdict, verifier, item.manifest)
        findings += tuple(CheckFinding("changed", message) for message in incorrect)
    if item.repeats is not None:
        again = CheckFinding("repeated", f"the same row as {item.repeats}")
        if item.manifest is not None:  # in other datasets a repetition may be intended
            findings += (again,)
        else:
            warnings += (again,)
    return LineReport(
        row.file,
        row.number,
        findings,
        warnings,
        verdict.tokens,
        verdict.parity,
        row.reading.form,
        row.reading.changes,
        masks,
    )


def _tasks(dataset: str, unit: str | None) -> Iterator[LineReport | _Task]:
    path = dataset_path(dataset)
    if not path.is_dir():
        if path.exists():
            yield from _file(readable_file(path, dataset), unit or CONVERSATION)
            return
        for row in dataset_rows(dataset):
            yield _Task(replace(row, file=f"{row.file}/{row.split}"), unit or CONVERSATION)
    elif is_built(path):
        yield from _built_folder(path, unit)
    else:
        check_folder(path, dataset)
        yield from _plain_folder(path, unit or CONVERSATION)


def _plain_folder(folder: Path, unit: str) -> Iterator[LineReport | _Task]:
    """Yields all rows of all data files below a folder."""
    if not (files := data_files(folder)):
        raise UsageError(f"dataset {str(folder)!r}: no manifest.json and no data files")
    for path in files:
        name = path.relative_to(folder).as_posix()
        if is_special(path):
            yield LineReport(name, 0, (CheckFinding("format", NOT_A_FILE),))
        else:
            yield from _file(data_file(folder, name), unit)


def _file(
    file: DataFile, unit: str | None, manifest: Manifest | None = None
) -> Iterator[LineReport | _Task]:
    try:
        for row in file_rows(file):
            if row.fault is not None and row.fault.code == NO_ROW:
                yield _changed(file.name, row.fault.detail, row.number)
            else:
                yield _Task(row, unit, manifest)
    except OSError as error:
        yield LineReport(file.name, 0, (CheckFinding("format", str(error)[:200]),))


def _built_folder(folder: Path, unit: str | None) -> Iterator[LineReport | _Task]:
    """Yields every row to check, and a report for each file that does not match the manifest."""
    try:
        manifest = Manifest.load(folder, str(folder))
    except UsageError as error:
        manifest = Manifest()
        yield _changed(MANIFEST, str(error).rpartition(f"{str(folder)!r}: ")[2][:200])
    if not manifest.files:
        yield _changed(MANIFEST, "the manifest lists no files")
    changed = changed_files(folder, manifest, "data", "meta")
    data = {item.relative_to(folder).as_posix() for item in (folder / "data").rglob("*")}
    for name in sorted({*changed, *data, *(item.path for item in manifest.files)}):
        if name in changed:
            yield _changed(name, changed[name])
        if name in data and file_inside(folder, name) is not None:
            yield from _file(data_file(folder, name), unit, manifest)
        stem = name.replace("meta/", "data/", 1).removesuffix("jsonl")
        kinds = {f"{stem}{kind}" for kind in ("jsonl", "jsonl.zst", "parquet")}
        if name.startswith("meta/") and not data & kinds:
            yield _changed(name, "data/ has no such file")


def _repeats(tasks: Iterator[LineReport | _Task]) -> Iterator[LineReport | _Task]:
    """Marks the rows that repeat an earlier one; in a built folder, one of the same file format.

    Memory: a digest of 8 bytes for each row.
    """
    seen: dict[bytes, tuple[str, int]] = {}
    for item in tasks:
        if not isinstance(item, _Task) or item.row.fault is not None:
            yield item
            continue
        written = item.row.written
        kind = Path(item.row.file).suffix if item.manifest is not None else ""
        data = written if isinstance(written, bytes) else b""
        digest = hashlib.blake2b(kind.encode() + b"\0" + data, digest_size=8).digest()
        if digest in seen:
            file, number = seen[digest]
            yield replace(item, repeats=f"{file}:{number}")
        else:
            seen[digest] = (item.row.file, item.row.number)
            yield item


def _changed(file: str, message: str, line: int = 0) -> LineReport:
    return LineReport(file, line, (CheckFinding("changed", message),))


def _differences(
    row: DatasetRow, verdict: Verdict, verifier: Verifier, manifest: Manifest
) -> Iterator[str]:
    """Yields what is incorrect in the row's meta line."""
    if row.meta_line is None:
        yield "meta/ has no line for it"
        return
    meta, written = row.meta, row.written
    if isinstance(written, bytes) and hashlib.sha256(written).hexdigest() != meta.id:
        yield "the line is not the one that was built: meta/ has a different id"
        return
    for name in meta.faults(row.meta_values):
        yield f"meta/ has an impossible {name}"
    if row.unit not in UNITS:
        yield f"meta/ names an unknown unit: {row.unit!r}"[:120]
    if manifest.tokenizer.template_sha256 != verifier.target.template_sha256 or not verdict.text:
        return  # the other values describe a rendering by another template
    same_counts = meta.token_counts == verdict.token_counts  # else of another tokenizer
    measured = replace(
        meta,
        render_sha256=verdict.render_sha256,
        chars=len(verdict.text),
        tokens=verdict.tokens if same_counts else meta.tokens,
        tokens_by_part=verdict.tokens_by_part if same_counts else meta.tokens_by_part,
        calls=verdict.calls,
        assistant_turns=len(verdict.spans),
        parity=counts(verdict.parity),
        spans=verdict.spans if manifest.mode == verifier.options.mode else meta.spans,
    )
    for name in measured.differences(meta):
        if name in row.meta_values:  # earlier versions wrote fewer keys
            yield f"meta/ has a different {name}"
