"""Verifies files of any origin line by line: memory is bounded by the longest line."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.problem import Problem, UsageError
from builder.sample import Sample
from builder.source import Source
from builder.verify import Finding, Verdict, Verifier


@dataclass(frozen=True, slots=True)
class LineReport:
    """What is wrong with one line of a file (`line` 0: with the file itself)."""

    file: str
    line: int
    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
    tokens: int = 0


@dataclass(slots=True)
class Summary:
    """Counts over all lines; `samples` are the lines read, `proven` those without a finding."""

    samples: int = 0
    proven: int = 0
    tokens: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)

    def add(self, report: LineReport) -> None:
        """Count a report; of each code once a line."""
        if report.line:
            self.samples += 1
            self.proven += not report.findings
            self.tokens += report.tokens
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
        yield from _file(path, path.name, verifier, unit or "conversation")
    elif dataset.count("/") <= 1 and not dataset.endswith((".jsonl", ".json", ".parquet")):
        yield from _hub(dataset, verifier, unit or "conversation")
    else:
        raise UsageError(f"dataset {dataset!r}: no such file or folder")


def _file(path: Path, name: str, verifier: Verifier, unit: str) -> Iterator[LineReport]:
    if path.suffix == ".parquet":
        yield from _parquet(path, name, verifier, unit)
        return
    for number, line in _lines(Source(name, path, max_record_bytes=1 << 31)):
        yield _report(name, number, line, verifier, unit)


def _lines(source: Source) -> Iterator[tuple[int, bytes | Problem]]:
    number = 0
    for item in source.lines():
        if isinstance(item, Problem):
            yield number + 1, item
        else:
            number, line, _ = item
            yield number, line


def _report(
    name: str, number: int, line: bytes | Problem, verifier: Verifier, unit: str
) -> LineReport:
    if isinstance(line, Problem):
        return LineReport(name, number, (Finding("format", f"{line.code}: {line.detail}"),))
    try:
        value = loads(line)
    except JsonFault as fault:
        return LineReport(name, number, (Finding("format", f"{fault.code}: {fault.detail}"),))
    return _checked(name, number, value, verifier, unit)


def _checked(name: str, number: int, value: Json, verifier: Verifier, unit: str) -> LineReport:
    sample = read_sample(value)
    if not isinstance(sample, Sample):
        return LineReport(name, number, tuple(sample))
    verdict = verifier.check(sample, unit=unit)
    return LineReport(name, number, verdict.findings, verdict.warnings, verdict.tokens)


def read_sample(value: Json) -> Sample | list[Finding]:
    """The sample in a decoded line, or every reason why it is none.

    `tools` may be missing, null, or a list as JSON text. Other columns are not looked at.
    """
    if not isinstance(value, dict):
        return [Finding("format", "the line is no JSON object")]
    findings: list[Finding] = []
    raw = value.get("messages")
    messages: list[tuple[str, str]] = []
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
        elif isinstance(item, dict) and set(item) - {"role", "content"}:
            extra = ", ".join(sorted(set(item) - {"role", "content"}))
            message = f"messages[{index}]: unknown keys {extra}: not the flat form"
            findings.append(Finding("format", message, index))
        else:
            messages.append((role, content))
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
    return Sample(tuple(messages), tuple(tools) if isinstance(tools, list) else ())


def _parquet(path: Path, name: str, verifier: Verifier, unit: str) -> Iterator[LineReport]:
    import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: PLC0415 - only for such files; it has no types

    try:
        table = pyarrow.parquet.ParquetFile(path)
        number = 0
        for batch in table.iter_batches(batch_size=64):
            for row in batch.to_pylist():
                number += 1
                yield _checked(name, number, _plain(row), verifier, unit)
    except (OSError, pyarrow.ArrowException) as error:
        yield LineReport(name, 0, (Finding("format", f"no readable Parquet: {error}"[:200]),))


def _plain(value: Any) -> Json:
    """A row as JSON values; what is none becomes a value that the checks refuse."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else [str(value)]


def _hub(dataset: str, verifier: Verifier, unit: str) -> Iterator[LineReport]:
    import datasets  # type: ignore[import-untyped]  # noqa: PLC0415 - two seconds of import; it has no types

    repository, _, revision = dataset.partition("@")
    try:
        splits = datasets.load_dataset(repository, revision=revision or None, streaming=True)
        for split, rows in splits.items():
            for number, row in enumerate(rows, start=1):
                yield _checked(f"{repository}/{split}", number, _plain(row), verifier, unit)
    except Exception as error:  # a library's many ways of saying that it cannot be had
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"dataset {dataset!r}: cannot be loaded: {reason}") from None


def _folder(folder: Path, verifier: Verifier, unit: str | None) -> Iterator[LineReport]:
    """A folder made by `build`: each line against meta/, each file against the manifest."""
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        files = sorted(path for path in folder.rglob("*.jsonl") if ".state" not in path.parts)
        if not files:
            raise UsageError(f"dataset {str(folder)!r}: no manifest.json and no .jsonl files")
        for path in files:
            name = path.relative_to(folder).as_posix()
            yield from _file(path, name, verifier, unit or "conversation")
        return
    listed = _manifest_files(manifest)
    if isinstance(listed, Finding):
        yield LineReport("manifest.json", 0, (listed,))
        listed = {}
    present = {f"data/{path.name}" for path in (folder / "data").glob("*")}
    for name in sorted(present | {name for name in listed if name.startswith("data/")}):
        if name not in present:
            yield LineReport(name, 0, (Finding("changed", "listed in the manifest, not there"),))
            continue
        if name not in listed:
            yield LineReport(name, 0, (Finding("changed", "not listed in the manifest"),))
        yield from _built(folder, name, verifier, unit)
    for name, sha256 in sorted(listed.items()):
        if not name.startswith("data/") and _sha256(folder / name) != sha256:
            message = "differs from the manifest" if (folder / name).exists() else "is missing"
            yield LineReport(name, 0, (Finding("changed", message),))


def _manifest_files(manifest: Path) -> dict[str, str] | Finding:
    try:
        entries = json.loads(manifest.read_bytes())["files"]
        return {str(item["path"]): str(item["sha256"]) for item in entries}
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Finding("format", f"no readable manifest: {type(error).__name__}: {error}"[:200])


def _sha256(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def _built(folder: Path, name: str, verifier: Verifier, unit: str | None) -> Iterator[LineReport]:
    data = Source(name, folder / name, max_record_bytes=1 << 31)
    meta = Source(name, folder / "meta" / Path(name).name, max_record_bytes=1 << 31)
    for number, (row, about) in enumerate(zip_longest(_lines(data), _lines(meta)), start=1):
        if row is None:
            finding = Finding("changed", "meta/ has a line for which data/ has none")
            yield LineReport(name, number, (finding,))
            continue
        line = row[1]
        known = _meta(about[1] if about else None)
        report = _report(name, row[0], line, verifier, unit or str(known.get("unit")))
        findings = list(report.findings)
        if isinstance(line, bytes) and hashlib.sha256(line).hexdigest() != known.get("id"):
            message = "the line is not the one that was built: meta/ has another id"
            findings.append(Finding("changed", message))
        yield LineReport(name, row[0], tuple(findings), report.warnings, report.tokens)


def _meta(line: bytes | Problem | None) -> dict[str, Json]:
    if not isinstance(line, bytes):
        return {}
    try:
        value = loads(line)
    except JsonFault:
        return {}
    return value if isinstance(value, dict) else {}


__all__ = ["LineReport", "Summary", "Verdict", "read_sample", "verify_dataset"]
