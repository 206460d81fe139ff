"""`builder verify`: reports on a dataset of any origin."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from builder.conversation import Json
from builder.parity import MODES
from builder.qwen3.tokenizer import Target, load
from builder.terminal import escaped
from builder.verify import Finding, Verifier
from builder.verify_files import LineReport, Summary, verify_dataset
from builder.verify_options import VerifyOptions

SHOWN = 100
"""Bad lines that are printed in full; the rest are counted."""


def run_verify(
    dataset: str,
    *,
    tokenizer: str,
    options: VerifyOptions,
    unit: str | None,
    loaded: bool,
    as_json: bool,
    quiet: bool,
    show_all: bool,
) -> int:
    """Verify and print; the exit code: 0 all proven, 1 a finding. Raises UsageError."""
    verifier = Verifier(load(tokenizer), options)
    summary = Summary()
    bad: list[Json] = []
    shown = 0
    reports = [(False, verify_dataset(dataset, verifier, unit))]
    if loaded:
        reports.append((True, _as_loaded(dataset, verifier.target)))
    for again, report in ((again, report) for again, listed in reports for report in listed):
        summary.add(report, again=again)
        if not report.findings:
            continue
        shown += 1
        if show_all or shown <= SHOWN:
            if as_json:
                bad.append(_as_json(report))
            elif not quiet:
                _print(report)
    target = verifier.target
    if as_json:
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
            "findings": dict(sorted(summary.codes.items())),
            "warnings": dict(sorted(summary.warnings.items())),
            "bad": bad,
        }
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    else:
        _print_summary(summary, shown, show_all)
        if summary.turns:
            shares = ", ".join(f"{summary.parity[mode]} in {mode} mode" for mode in MODES)
            print(f"{summary.turns} taught turns; in parity with inference: {shares}")
        print(
            f"{summary.proven} of {summary.samples} samples proven against {target.name}"
            f" (template {target.template_name}, sha256 {target.template_sha256[:12]})"
        )
    if not summary.samples and not summary.codes:
        print("builder: the dataset holds no samples", file=sys.stderr)
        return 1
    return 1 if summary.codes else 0


def _as_loaded(dataset: str, target: Target) -> Iterator[LineReport]:
    from builder.as_loaded import as_loaded, hub_as_loaded  # noqa: PLC0415 - only where asked for

    path = Path(dataset).expanduser()
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


def _print_summary(summary: Summary, shown: int, show_all: bool) -> None:
    if shown > SHOWN and not show_all:
        print(f"… and {shown - SHOWN} more bad lines (--all prints them)")
    for title, counts in (("findings", summary.codes), ("warnings", summary.warnings)):
        for code, count in sorted(counts.items()):
            print(f"{title[:-1]:8} {code:12} {count:8} lines")


def _as_json(report: LineReport) -> Json:
    return {
        "file": report.file,
        "line": report.line,
        "findings": [_finding(finding) for finding in report.findings],
    }


def _finding(finding: Finding) -> Json:
    return {
        "code": finding.code,
        "message": finding.message,
        "message_index": finding.turn,
        "offset": finding.offset,
        "expected": finding.expected,
        "found": finding.found,
    }
