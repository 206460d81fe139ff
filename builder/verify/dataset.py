"""Verifies files of any origin line by line: memory is bounded by the longest lines.

The rows are read here, in order, and judged by the cores of this machine.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path

from builder.conversation import Json
from builder.dataset.files import CONVERSATION, DatasetRow, dataset_rows, keeps_late_system
from builder.dataset.rows import (
    DATA_SUFFIXES,
    MAX_LINE,
    NO_FILE,
    data_files,
    dataset_path,
    file_lines,
    hub_rows,
    is_parquet,
    is_special,
    parquet_rows,
    read_sample,
    targets,
    written_lines,
)
from builder.finding import Finding
from builder.jsonio import JsonFault, loads
from builder.parallel.pool import batches, imap
from builder.problem import Problem, UsageError
from builder.sample import Sample
from builder.sources.source import Source
from builder.sources.store import is_hub_name
from builder.verify.options import VerifyOptions
from builder.verify.preload import preloading
from builder.verify.verifier import Verdict, Verifier, verifier_for


@dataclass(frozen=True, slots=True)
class LineReport:
    """What is wrong with one line of a file (`line` 0: with the file itself).

    `parity`: for each turn that the sample teaches the modes in which it is in parity.
    """

    file: str
    line: int
    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
    tokens: int = 0
    parity: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class VerifyRow:
    """A row to be judged: its line, or (of other files than JSONL) its decoded value.

    `unit` None: what meta/ says of it. `beside` is its line of meta/, if the dataset is held to
    one (`held`); `same_template`: was that written under the template that is verified against?
    """

    file: str
    number: int
    line: bytes | Problem = b""
    value: Json = None
    unit: str | None = None
    held: bool = False
    beside: bytes | Problem | None = None
    same_template: bool = False


@dataclass(slots=True)
class Summary:
    """Counts over all lines; `samples` are the lines read, `proven` those without a finding.

    `turns` are the assistant turns that the samples teach, `parity` those in parity, by mode.
    """

    samples: int = 0
    proven: int = 0
    tokens: int = 0
    turns: int = 0
    parity: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)

    def add(self, report: LineReport, *, again: bool = False) -> None:
        """Count a report, of each code once a line. `again`: its line was counted before."""
        if report.line and not again:
            self.samples += 1
            self.proven += not report.findings
            self.tokens += report.tokens
            self.turns += len(report.parity)
            for modes in report.parity:
                self.parity.update(modes)
        self.codes.update({finding.code for finding in report.findings})
        self.warnings.update({finding.code for finding in report.warnings})


def verify_dataset(
    dataset: str, verifier: Verifier, unit: str | None, workers: int = 1
) -> Iterator[LineReport]:
    """Reports on every line of a file, a folder made by `build`, or a Hub dataset, in order.

    `unit` None: what a built folder's meta/ says, else "conversation". More than one worker: the
    others make a verifier like this one. Raises UsageError if there is no such dataset.
    """
    rows = _rows(dataset, verifier.target.template_sha256, unit)
    if workers == 1:
        yield from (_report(item, verifier) for item in rows)
        return
    name = verifier.target.name
    work = partial(_judged, name, verifier.options)
    for reports in imap(work, batches(rows, _size), workers, preloading(name)):
        yield from reports


def _size(item: LineReport | VerifyRow) -> int:
    return len(item.line) if isinstance(item, VerifyRow) and isinstance(item.line, bytes) else 0


def _judged(
    tokenizer: str, options: VerifyOptions, batch: list[LineReport | VerifyRow]
) -> list[LineReport]:
    verifier = verifier_for(tokenizer, options)
    return [_report(item, verifier) for item in batch]


def _report(item: LineReport | VerifyRow, verifier: Verifier) -> LineReport:
    return _judge(item, verifier) if isinstance(item, VerifyRow) else item


def _rows(dataset: str, template: str, unit: str | None) -> Iterator[LineReport | VerifyRow]:
    path = dataset_path(dataset)
    if path.is_dir():
        yield from _folder(path, template, unit)
    elif path.exists():
        yield from _file(path, path.name, unit or CONVERSATION)
    elif is_hub_name(dataset) and not dataset.endswith((*DATA_SUFFIXES, ".json")):
        for repository, split, number, value in hub_rows(dataset):
            yield VerifyRow(f"{repository}/{split}", number, value=value, unit=unit or CONVERSATION)
    else:
        raise UsageError(f"dataset {dataset!r}: no such file or folder")


def _file(path: Path, name: str, unit: str) -> Iterator[LineReport | VerifyRow]:
    source = Source(name, path, max_record_bytes=MAX_LINE)
    if is_parquet(source):
        yield from _parquet(path, name, unit)
        return
    for number, line in file_lines(source):
        yield VerifyRow(name, number, line, unit=unit)


def _judge(row: VerifyRow, verifier: Verifier) -> LineReport:
    known = _meta(row.beside) if row.beside is not None else {}
    unit, trained = row.unit, None
    if unit is None:
        unit = str(known.get("unit"))
        taught = known.get("assistant_turns")
        trained = taught if isinstance(taught, int) and taught >= 0 else None
    verdict = _verdict(row, verifier, unit, trained, late_system=keeps_late_system(known))
    message = _other(row, known, verdict) if row.held else ""
    findings = (*verdict.findings, *([Finding("changed", message)] if message else []))
    return LineReport(
        row.file, row.number, findings, verdict.warnings, verdict.tokens, verdict.parity
    )


def _verdict(
    row: VerifyRow, verifier: Verifier, unit: str, trained: int | None, *, late_system: bool
) -> Verdict:
    """Check a row; `trained`: how many of its last assistant turns are targets, if meta/ has it."""
    value = row.value
    if isinstance(row.line, Problem):
        return Verdict((Finding("format", f"{row.line.code}: {row.line.detail}"),))
    try:
        value = loads(row.line) if row.line else value
    except JsonFault as fault:
        return Verdict((Finding("format", f"{fault.code}: {fault.detail}"),))
    sample = read_sample(value)
    if not isinstance(sample, Sample):
        return Verdict(tuple(sample))
    chosen = targets(sample, unit, trained)
    return verifier.check(sample, targets=chosen, late_system=late_system)


def _other(row: VerifyRow, known: dict[str, Json], verdict: Verdict) -> str:
    """Where a row is not the one that meta/ tells of; "": it is."""
    if row.beside is None:
        return "meta/ has no line for it"
    if isinstance(row.line, bytes) and hashlib.sha256(row.line).hexdigest() != known.get("id"):
        return "the line is not the one that was built: meta/ has another id"
    rendered = verdict.render_sha256
    if row.same_template and rendered and rendered != known.get("render_sha256"):
        return "meta/ has another render_sha256"
    return ""


def _parquet(path: Path, name: str, unit: str) -> Iterator[LineReport | VerifyRow]:
    try:
        for number, value in parquet_rows(path):
            yield VerifyRow(name, number, value=value, unit=unit)
    except OSError as error:
        yield LineReport(name, 0, (Finding("format", str(error)[:200]),))


def _folder(folder: Path, template: str, unit: str | None) -> Iterator[LineReport | VerifyRow]:
    """A folder made by `build` is held to its meta/ and manifest; of any other, all data files."""
    if (folder / "manifest.json").is_file() or (folder / "meta").is_dir():
        yield from _built_folder(folder, template, unit)
        return
    found = data_files(folder)
    if not found:
        raise UsageError(f"dataset {str(folder)!r}: no manifest.json and no data files")
    for path in found:
        name = path.relative_to(folder).as_posix()
        if is_special(path):
            yield LineReport(name, 0, (Finding("format", NO_FILE),))
        else:
            yield from _file(path, name, unit or CONVERSATION)


def _built_folder(
    folder: Path, template: str, unit: str | None
) -> Iterator[LineReport | VerifyRow]:
    """Each line against meta/, each file against the manifest, nothing missing, nothing added."""
    listed, written_for, fault = _manifest(folder / "manifest.json")
    if fault is not None:
        yield LineReport("manifest.json", 0, (fault,))
    present = _files_below(folder, "data") | _files_below(folder, "meta")
    for name in sorted(present | listed.keys()):
        if name not in present and not _inside(folder, name):
            yield LineReport(name, 0, (Finding("changed", "listed in the manifest, not there"),))
            continue
        if name not in listed:
            yield LineReport(name, 0, (Finding("changed", "not listed in the manifest"),))
        elif _sha256(folder / name) != listed[name]:
            yield LineReport(name, 0, (Finding("changed", "differs from the manifest"),))
        if name.startswith("data/"):
            yield from _lines_with_meta(folder, name, unit, template == written_for)
        elif name.startswith("meta/"):
            stem = name.replace("meta/", "data/", 1).removesuffix("jsonl")
            if not present & {f"{stem}{kind}" for kind in ("jsonl", "jsonl.zst", "parquet")}:
                yield LineReport(name, 0, (Finding("changed", "data/ has no such file"),))


def _files_below(folder: Path, part: str) -> set[str]:
    below = (folder / part).rglob("*")
    return {path.relative_to(folder).as_posix() for path in below if path.is_file()}


def _inside(folder: Path, name: str) -> bool:
    """Is there such a file, below the folder? The manifest may be anybody's."""
    try:
        path = (folder / name).resolve()
        return path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError, RuntimeError):  # a NUL in the name; links in a circle
        return False


def _manifest(path: Path) -> tuple[dict[str, str], str | None, Finding | None]:
    """(path: sha256 of the files listed, sha256 of the chat template, what is wrong with it)."""
    try:
        manifest = loads(path.read_bytes())
    except (OSError, JsonFault) as error:
        detail = error.strerror if isinstance(error, OSError) else str(error)
        return {}, None, Finding("changed", f"no readable manifest: {detail}"[:200])
    manifest = manifest if isinstance(manifest, dict) else {}
    entries = manifest.get("files")
    tokenizer = manifest.get("tokenizer")
    template = tokenizer.get("template_sha256") if isinstance(tokenizer, dict) else None
    listed = {
        str(item.get("path")): str(item.get("sha256"))
        for item in (entries if isinstance(entries, list) else [])
        if isinstance(item, dict)
    }
    fault = None if listed else Finding("changed", "the manifest lists no files")
    return listed, template if isinstance(template, str) else None, fault


def _sha256(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def _lines_with_meta(
    folder: Path, name: str, unit: str | None, same_template: bool
) -> Iterator[LineReport | VerifyRow]:
    beside = name.replace("data/", "meta/", 1)
    about = folder / re.sub(r"\.(parquet|jsonl\.zst)$", ".jsonl", beside)
    meta = Source(name, about, max_record_bytes=MAX_LINE)
    noted = (line for _, line in file_lines(meta)) if about.is_file() else iter(())
    rows = written_lines(folder / name, name)
    for number, (row, known) in enumerate(zip_longest(rows, noted), start=1):
        if row is None:
            finding = Finding("changed", "meta/ has a line for which data/ has none")
            yield LineReport(name, number, (finding,))
            continue
        at, line = row
        yield VerifyRow(name, at, line, None, unit, True, known, same_template)


def _meta(line: bytes | Problem) -> dict[str, Json]:
    if not isinstance(line, bytes):
        return {}
    try:
        value = loads(line)
    except JsonFault:
        return {}
    return value if isinstance(value, dict) else {}


def checked_rows(
    dataset: str, verifier: Verifier, unit: str | None = None
) -> Iterator[tuple[DatasetRow, Sample | None, Verdict]]:
    """Each row, its sample (None: it holds none), and the verdict. Raises UsageError.

    `unit` None: what meta/ says of the row.
    """
    for row in dataset_rows(dataset):
        sample = read_sample(row.value)
        if not isinstance(sample, Sample):
            yield row, None, Verdict(tuple(sample))
            continue
        trained = row.trained if unit is None else None
        chosen = targets(sample, unit or row.unit, trained)
        yield row, sample, verifier.check(sample, targets=chosen, late_system=row.late_system)
