"""Implements `builder verify`: checks a dataset and prints findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.cli.masks import as_json, compare_masks, print_masks, trainers_named
from builder.cli.terminal import conversion_lines, escaped, print_json, warn
from builder.conversation import Json
from builder.parallel.pool import default_workers, prepare_for
from builder.paths import expand_home
from builder.qwen3.parity import MODES
from builder.qwen3.tokenizer import Target, target_for
from builder.verify.dataset import LineReport, Summary, verify_dataset
from builder.verify.options import VerifyOptions
from builder.verify.preload import preloading
from builder.verify.verifier import Verifier

SHOWN = 100
"""Bad lines that are printed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class OutputStyle:
    """The form of the output; `all` prints every bad line, not just the first SHOWN."""

    as_json: bool
    quiet: bool
    all: bool

    @property
    def in_words(self) -> bool:
        """Returns whether findings are printed for people."""
        return not self.as_json and not self.quiet


def run_verify(
    dataset: str,
    *,
    tokenizers: Sequence[str],
    masks: Sequence[str],
    options: VerifyOptions,
    unit: str | None,
    loaded: bool,
    workers: int | None,
    style: OutputStyle,
) -> int:
    """Verifies against each tokenizer and prints; returns 0 if every sample is proven, else 1.

    Raises UsageError for an unknown dataset, tokenizer or trainer.
    """
    trainers = trainers_named(masks)
    workers = workers or default_workers()
    prepare_for((expand_home(dataset),), workers, preloading(tokenizers[0]))
    verifiers = [Verifier(target_for(name), options) for name in dict.fromkeys(tokenizers)]
    results: list[dict[str, Json]] = []
    for verifier in verifiers:
        if len(verifiers) > 1 and style.in_words:
            print(f"== {verifier.target.name}")
        reports = verify_dataset(dataset, verifier, unit, workers)
        again = _as_loaded(dataset, verifier.target) if loaded else iter(())
        result = _verify(dataset, verifier.target, reports, again, style)
        if trainers:
            found = compare_masks(dataset, verifier, trainers, unit)
            result["masks"] = {name: as_json(item) for name, item in found.items()}
            if style.in_words:
                print_masks(found)
        results.append(result)
    if style.as_json:
        whole: Json = {"dataset": dataset, "targets": list(results)}
        print_json(results[0] if len(results) == 1 else whole)
    elif len(results) > 1 and style.in_words:
        print("== all")
        for result in results:
            print(_proven(result))
    return 1 if any(result["findings"] or not result["samples"] for result in results) else 0


def _verify(
    dataset: str,
    target: Target,
    reports: Iterator[LineReport],
    loaded: Iterator[LineReport],
    style: OutputStyle,
) -> dict[str, Json]:
    """Prints the findings for one tokenizer; returns the result as JSON.

    `loaded` are further reports on the same rows, as `datasets` loads them.
    """
    summary = Summary()
    bad: list[Json] = []
    bad_lines = 0
    listed = ((False, reports), (True, loaded))
    for again, report in ((again, report) for again, several in listed for report in several):
        summary.add(report, again=again)
        if not report.findings:
            continue
        bad_lines += 1
        if style.all or bad_lines <= SHOWN:
            if style.as_json:
                bad.append(_as_json(report))
            elif style.in_words:
                _print(report)
    result: dict[str, Json] = {
        "dataset": dataset,
        "tokenizer": target.name,
        "template_sha256": target.template_sha256,
        "template_name": target.template_name,
        "samples": summary.samples,
        "proven": summary.proven,
        "tokens": summary.tokens,
        "assistant_turns": summary.turns,
        "parity": {mode: summary.parity[mode] for mode in MODES},
        "read_as": dict(sorted(summary.forms.items())),
        "conversion": dict(sorted(summary.changes.items())),
        "findings": dict(sorted(summary.codes.items())),
        "warnings": dict(sorted(summary.warnings.items())),
        "bad": bad,
    }
    if style.in_words:
        _print_summary(summary, bad_lines, style.all)
        for line in conversion_lines(summary.forms, summary.samples, summary.changes):
            print(escaped(line))
        if summary.turns:
            shares = ", ".join(f"{summary.parity[mode]} in {mode} mode" for mode in MODES)
            print(f"{summary.turns} trained turns; in parity with inference: {shares}")
        print(_proven(result))
    elif not style.as_json and summary.codes:
        found = ", ".join(f"{code} {count}" for code, count in sorted(summary.codes.items()))
        warn(f"{_proven(result)}; findings: {found}")
    if not summary.samples and not summary.codes:
        warn("the dataset contains no samples")
    return result


def _proven(result: dict[str, Json]) -> str:
    """Summarises how many samples are proven against a tokenizer."""
    sha256 = str(result["template_sha256"])[:12]
    return (
        f"{result['proven']} of {result['samples']} samples proven against {result['tokenizer']}"
        f" (template {result['template_name']}, sha256 {sha256})"
    )


def _as_loaded(dataset: str, target: Target) -> Iterator[LineReport]:
    from builder.verify.as_loaded import as_loaded, hub_as_loaded  # noqa: PLC0415 - only for --as-loaded

    path = expand_home(dataset)
    return as_loaded(path, target) if path.exists() else hub_as_loaded(dataset, target)


def _print(report: LineReport) -> None:
    place = f"{report.file}:{report.line}" if report.line else report.file
    for finding in report.findings:
        at = "" if finding.turn is None else f" message {finding.turn}"
        at += "" if finding.offset is None else f" offset {finding.offset}"
        print(escaped(f"{place} {finding.code}{at}: {finding.message}"))
        if finding.expected is not None:
            print(f"    expected {escaped(repr(finding.expected))}")
        if finding.found is not None:
            print(f"    found    {escaped(repr(finding.found))}")


def _print_summary(summary: Summary, bad_lines: int, show_all: bool) -> None:
    if bad_lines > SHOWN and not show_all:
        print(f"… and {bad_lines - SHOWN} more bad lines (--all prints them)")
    for title, counts in (("findings", summary.codes), ("warnings", summary.warnings)):
        for code, count in sorted(counts.items()):
            print(f"{title[:-1]:8} {code:12} {count:8,} {'line' if count == 1 else 'lines'}")


def _as_json(report: LineReport) -> Json:
    findings: list[Json] = [
        {
            "code": finding.code,
            "message": finding.message,
            "message_index": finding.turn,
            "offset": finding.offset,
            "expected": finding.expected,
            "found": finding.found,
        }
        for finding in report.findings
    ]
    return {"file": report.file, "line": report.line, "findings": findings}
