"""Verifies files of any origin line by line: memory is bounded by the longest line."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.problem import Problem, UsageError
from builder.rows import (
    MAX_LINE,
    file_lines,
    is_parquet,
    parquet_rows,
    plain_row,
    read_sample,
    written_lines,
)
from builder.sample import Sample
from builder.source import Source
from builder.verify import Finding, Verdict, Verifier

DATA_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
"""Files of a folder that is not made by `build` that are taken for data."""

CONVERSATION = "conversation"


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


def verify_dataset(dataset: str, verifier: Verifier, unit: str | None) -> Iterator[LineReport]:
    """Reports on every line of a file, a folder made by `build`, or a Hub dataset.

    `unit` None: what a built folder's meta/ says, else "conversation". Raises UsageError if there
    is no such dataset.
    """
    path = Path(dataset).expanduser()
    if path.is_dir():
        yield from _folder(path, verifier, unit)
    elif path.exists():
        yield from _file(path, path.name, verifier, unit or CONVERSATION)
    elif hub_name(dataset).count("/") <= 1 and not dataset.endswith((*DATA_SUFFIXES, ".json")):
        yield from _hub(dataset, verifier, unit or CONVERSATION)
    else:
        raise UsageError(f"dataset {dataset!r}: no such file or folder")


def _file(path: Path, name: str, verifier: Verifier, unit: str) -> Iterator[LineReport]:
    source = Source(name, path, max_record_bytes=MAX_LINE)
    if is_parquet(source):
        yield from _parquet(path, name, verifier, unit)
        return
    for number, line in file_lines(source):
        yield _report(name, number, _verdict(line, verifier, unit))


def _verdict(
    line: bytes | Problem, verifier: Verifier, unit: str, trained: int | None = None
) -> Verdict:
    if isinstance(line, Problem):
        return Verdict((Finding("format", f"{line.code}: {line.detail}"),))
    try:
        value = loads(line)
    except JsonFault as fault:
        return Verdict((Finding("format", f"{fault.code}: {fault.detail}"),))
    return _check(value, verifier, unit, trained)


def _check(value: Json, verifier: Verifier, unit: str, trained: int | None = None) -> Verdict:
    """`trained` None: all turns of a conversation, the last of a unit "turn"."""
    sample = read_sample(value)
    if not isinstance(sample, Sample):
        return Verdict(tuple(sample))
    if trained is None and unit == "turn":
        trained = 1
    return verifier.check(sample, unit=unit, trained=trained)


def _report(name: str, number: int, verdict: Verdict, *more: Finding) -> LineReport:
    findings = (*verdict.findings, *more)
    return LineReport(name, number, findings, verdict.warnings, verdict.tokens, verdict.parity)


def _parquet(path: Path, name: str, verifier: Verifier, unit: str) -> Iterator[LineReport]:
    import pyarrow  # noqa: PLC0415 - as above

    try:
        for number, row in parquet_rows(path):
            yield _report(name, number, _check(row, verifier, unit))
    except (OSError, pyarrow.ArrowException) as error:
        yield LineReport(name, 0, (Finding("format", f"no readable Parquet: {error}"[:200]),))


def hub_name(dataset: str) -> str:
    """OWNER/NAME[@REVISION] of a Hub dataset, which may be written as hf:// URL."""
    return dataset.removeprefix("hf://").removeprefix("datasets/")


def _hub(dataset: str, verifier: Verifier, unit: str) -> Iterator[LineReport]:
    import datasets  # noqa: PLC0415 - two seconds of import

    repository, _, revision = hub_name(dataset).partition("@")
    try:
        splits = datasets.load_dataset(repository, revision=revision or None, streaming=True)
        for split, rows in splits.items():
            for number, row in enumerate(rows, start=1):
                verdict = _check(plain_row(row), verifier, unit)
                yield _report(f"{repository}/{split}", number, verdict)
    except Exception as error:  # a library's many ways of saying that it cannot be had
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"dataset {dataset!r}: cannot be loaded: {reason}") from None


def _folder(folder: Path, verifier: Verifier, unit: str | None) -> Iterator[LineReport]:
    """A folder made by `build` is held to its meta/ and manifest; of any other, all data files."""
    if (folder / "manifest.json").is_file() or (folder / "meta").is_dir():
        yield from _built_folder(folder, verifier, unit)
        return
    found = [path for path in sorted(folder.rglob("*")) if path.name.endswith(DATA_SUFFIXES)]
    if not found:
        raise UsageError(f"dataset {str(folder)!r}: no manifest.json and no data files")
    for path in found:
        yield from _file(path, path.relative_to(folder).as_posix(), verifier, unit or CONVERSATION)


def _built_folder(folder: Path, verifier: Verifier, unit: str | None) -> Iterator[LineReport]:
    """Each line against meta/, each file against the manifest, nothing missing, nothing added."""
    listed, template, fault = _manifest(folder / "manifest.json")
    if fault is not None:
        yield LineReport("manifest.json", 0, (fault,))
    same_template = template == verifier.target.template_sha256
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
            yield from _lines_with_meta(folder, name, verifier, unit, same_template)
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
    except (OSError, ValueError):  # ValueError: a NUL in the name
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
    folder: Path, name: str, verifier: Verifier, unit: str | None, same_template: bool
) -> Iterator[LineReport]:
    beside = name.replace("data/", "meta/", 1)
    about = folder / re.sub(r"\.(parquet|jsonl\.zst)$", ".jsonl", beside)
    meta = Source(name, about, max_record_bytes=MAX_LINE)
    noted = (_meta(line) for _, line in file_lines(meta)) if about.is_file() else iter(())
    rows = written_lines(folder / name, name)
    for number, (row, known) in enumerate(zip_longest(rows, noted), start=1):
        if row is None:
            finding = Finding("changed", "meta/ has a line for which data/ has none")
            yield LineReport(name, number, (finding,))
            continue
        at, line = row
        told = known or {}
        taught = told.get("assistant_turns") if unit is None else None
        trained = taught if isinstance(taught, int) and taught >= 0 else None
        verdict = _verdict(line, verifier, unit or str(told.get("unit")), trained)
        message = ""
        if known is None:
            message = "meta/ has no line for it"
        elif isinstance(line, bytes) and hashlib.sha256(line).hexdigest() != told.get("id"):
            message = "the line is not the one that was built: meta/ has another id"
        elif same_template and verdict.text and verdict.render_sha256 != told.get("render_sha256"):
            message = "meta/ has another render_sha256"
        yield _report(name, at, verdict, *([Finding("changed", message)] if message else []))


def _meta(line: bytes | Problem) -> dict[str, Json]:
    if not isinstance(line, bytes):
        return {}
    try:
        value = loads(line)
    except JsonFault:
        return {}
    return value if isinstance(value, dict) else {}
