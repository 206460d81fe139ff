"""Implements `builder verify`: checks a dataset and prints findings."""

from __future__ import annotations

from collections.abc import Sequence

from builder.api import verify_dataset
from builder.api.datasets import tokenizer_of
from builder.cli.grouped import Grouped, counts_line
from builder.cli.masks import as_json, print_masks
from builder.cli.output import Output
from builder.cli.terminal import NO_SAMPLES, conversion_lines, escaped, print_json, warn
from builder.cli.tokenizer import say_tokenizer
from builder.codes import meaning_of_check
from builder.conversation import Json
from builder.finding import CheckFinding
from builder.ledger import ranked
from builder.output.manifest import Manifest
from builder.parallel.pool import default_workers, prepare_for
from builder.paths import expand_home
from builder.qwen3.parity import MODES
from builder.qwen3.tokenizer import Target, target_for
from builder.text import counted
from builder.trainers.mask_counts import Comparison, trainers_named
from builder.verify.options import VerifyOptions
from builder.verify.preload import preloading
from builder.verify.summary import LineReport, Summary
from builder.verify.witnesses.count import as_json as as_json_testimony
from builder.verify.witnesses.count import drifts, lines, testimonies, witnesses_named
from builder.verify.witnesses.replay import line, servers_named

LISTED = 100
"""Bad lines that `--json` lists without `--all`; the rest is counted."""


def run_verify(
    dataset: str,
    *,
    tokenizers: Sequence[str | None],
    chat_template: str | None,
    masks: Sequence[str],
    witnesses: Sequence[str],
    witness_share: float,
    replay: Sequence[str],
    options: VerifyOptions,
    unit: str | None,
    loaded: bool,
    workers: int | None,
    show_all: bool,
    output: Output,
) -> int:
    """Verifies against each tokenizer and prints; returns 0 if every sample is proven, else 1.

    A tokenizer that is None is the dataset's own. A witness that differs is a finding too. Raises
    UsageError for an unknown dataset, tokenizer, trainer, witness or server.
    """
    workers = workers or default_workers()
    manifest = Manifest.of(expand_home(dataset))
    names = [tokenizer_of(manifest, name, chat_template) for name in dict.fromkeys(tokenizers)]
    prepare_for((expand_home(dataset),), workers, preloading(names[0]))
    targets = [target_for(name) for name in names]
    if len(targets) == 1:
        say_tokenizer(dataset, tokenizers[0], chat_template, output)
    results: list[dict[str, Json]] = []
    differs = False
    for target in targets:
        if len(targets) > 1 and output.in_words:
            print(f"== {target.name}")
        lines = BadLines(show_all, output)
        summary = verify_dataset(
            dataset,
            tokenizer=target.reference,
            options=options,
            unit=unit,
            as_loaded=loaded,
            masks=masks,
            witnesses=witnesses,
            witness_share=witness_share,
            replay=replay,
            workers=workers,
            on_report=lines.add,
        )
        result = _result(dataset, target, summary, lines, output)
        if masks:
            comparisons = {
                name: summary.masks.get(name, Comparison(name)) for name in trainers_named(masks)
            }
            result["masks"] = {name: as_json(item) for name, item in comparisons.items()}
            if output.in_words:
                print_masks(comparisons)
        differs = _testify(result, summary, witnesses, replay, output) or differs
        results.append(result)
    if output.as_json:
        whole: Json = {"dataset": dataset, "targets": list(results)}
        print_json(results[0] if len(results) == 1 else whole)
    elif len(results) > 1 and output.in_words:
        print("== all")
        for result in results:
            print(_proven(result))
    has_findings = any(result["findings"] or not result["samples"] for result in results)
    return 1 if has_findings or differs else 0


def _testify(
    result: dict[str, Json],
    summary: Summary,
    witnesses: Sequence[str],
    replay: Sequence[str],
    output: Output,
) -> bool:
    """Prints what witnesses found and which turns drift; returns whether a witness differs."""
    asked = testimonies(summary.masks, witnesses_named(witnesses))
    drifting = drifts(summary.masks, servers_named(replay))
    if asked:
        result["witnesses"] = {name: as_json_testimony(item) for name, item in asked.items()}
    if drifting:
        result["replay"] = {
            name: {"turns": item.turns, "with_text": item.with_text, "drifting": item.drifting}
            for name, item in drifting.items()
        }
    if output.in_words:
        for text in [*lines(asked), *(line(name, item) for name, item in drifting.items())]:
            print(escaped(text))
    return any(item.differs for item in asked.values())


class BadLines:
    """Groups the findings of bad lines by code; with `show_all`, prints each line as it comes."""

    def __init__(self, show_all: bool, output: Output) -> None:
        self.show_all = show_all
        self.output = output
        self.groups = Grouped(meaning_of_check)
        self.listed: list[Json] = []

    def add(self, report: LineReport) -> None:
        """Prints, groups or lists a report with findings."""
        if not report.findings:
            return
        if self.output.as_json and (self.show_all or len(self.listed) < LISTED):
            self.listed.append(_as_json(report))
        if self.output.in_words and self.show_all:
            print("\n".join(_worded(report, one) for one in report.findings))
        for finding in {one.code: one for one in reversed(report.findings)}.values():
            self.groups.add(finding.code, _worded(report, finding))


def _result(
    dataset: str, target: Target, summary: Summary, lines: BadLines, output: Output
) -> dict[str, Json]:
    """Prints the summary for one tokenizer; returns the result as JSON."""
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
        "bad": lines.listed,
    }
    if output.in_words:
        _print_faults(summary, lines)
        for line in conversion_lines(summary.forms, summary.samples, summary.changes):
            print(escaped(line))
        if summary.turns:
            shares = ", ".join(f"{summary.parity[mode]:,} in {mode} mode" for mode in MODES)
            print(f"{counted(summary.turns, 'trained turn')}; matching inference: {shares}")
        print(_proven(result))
    elif not output.as_json and summary.codes:
        codes = ", ".join(f"{code} {count}" for code, count in sorted(summary.codes.items()))
        warn(f"{_proven(result)}; findings: {codes}")
    if not summary.samples and not summary.codes:
        warn(NO_SAMPLES)
    return result


def _proven(result: dict[str, Json]) -> str:
    """Summarises how many samples are verified against a tokenizer."""
    sha256 = str(result["template_sha256"])[:12]
    return (
        f"{result['proven']:,} of {result['samples']:,} samples verified against"
        f" {result['tokenizer']}"
        f" (template {result['template_name']}, sha256 {sha256})"
    )


def _worded(report: LineReport, finding: CheckFinding) -> str:
    """Returns the lines that show a finding of a row."""
    place = f"{report.file}:{report.line}" if report.line else report.file
    where = "" if finding.turn is None else f" message {finding.turn}"
    where += "" if finding.offset is None else f" offset {finding.offset}"
    texts = [f"{place} {finding.code}{where}: {finding.message}"]
    for name, text in (("expected", finding.expected), ("found   ", finding.found)):
        if text is not None:
            texts.append(f"    {name} {text!r}")
    return escaped("\n".join(texts))


def _print_faults(summary: Summary, lines: BadLines) -> None:
    """Prints the findings by code, with examples unless each was printed, and the warnings."""
    if lines.show_all:
        for code, count in ranked(summary.codes):
            print(escaped(counts_line(code, count, "line", meaning_of_check)))
    else:
        for text in lines.groups.lines("line", "-v prints all"):
            print(text)
    for code, count in ranked(summary.warnings):
        print(escaped(f"warning {counts_line(code, count, 'line', meaning_of_check)}"))


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
