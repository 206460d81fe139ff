"""Implements `builder verify`: checks a dataset and prints findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import get_args

from builder.api.datasets import tokenizer_of, verify_dataset
from builder.cli.command import Output, command
from builder.cli.terminal import (
    NO_SAMPLES,
    Grouped,
    conversion_lines,
    counts_line,
    escaped,
    print_json,
    warn,
)
from builder.cli.tokenizer import say_tokenizer
from builder.codes import meaning_of_check
from builder.conversation import Json
from builder.finding import CheckFinding
from builder.ledger import ranked
from builder.normalize.options import Unit
from builder.output.manifest import Manifest
from builder.parallel.pool import default_workers, prepare_for
from builder.paths import expand_home
from builder.problem import OptionError, nearest
from builder.qwen3.models import model_named, target_of
from builder.qwen3.render import MODES
from builder.qwen3.tokenizer import Target, target_for
from builder.text import counted
from builder.trainers.mask_counts import REGIONS, Comparison, trainers_named
from builder.trainers.masks import MASKS
from builder.verify.options import Mode, Requirement
from builder.verify.preload import preloading
from builder.verify.summary import LineReport, Summary

# -- prints the results of `builder verify --masks` ------------------------------------------------


def as_json(comparison: Comparison) -> dict[str, Json]:
    """Returns the comparison as JSON."""
    ours, theirs = comparison.ours, comparison.theirs
    return {
        "samples": comparison.samples,
        "ours": {region: ours[region] for region in REGIONS},
        "theirs": {region: theirs[region] for region in REGIONS},
        "answers_lost": comparison.answers_lost,
        "same": comparison.same,
        "other_text": comparison.other_text,
        "beyond": comparison.beyond,
        "refused": dict(sorted(comparison.refused.items())),
        "borders": comparison.borders,
    }


def _print_masks(comparisons: Mapping[str, Comparison]) -> None:
    """Prints the number of trained tokens by region, ours and each trainer's, with remarks."""
    names = ["ours", *comparisons]
    columns = [
        next(iter(comparisons.values())).ours,
        *(item.theirs for item in comparisons.values()),
    ]
    widths = [max(len(name), 12) for name in names]
    print(f"\n{'trained tokens':24}" + "".join(map(_right, names, widths)))
    for region in REGIONS:
        cells = [f"{column[region]:,}" for column in columns]
        print(f"{region:24}" + "".join(map(_right, cells, widths)))
    print()
    for name, item in comparisons.items():
        trainer = MASKS[name]
        print(f"{name}: {trainer.summary}")
        notes = [f"exactly the tokens of meta.spans in {item.same} of {item.samples} samples"]
        if item.other_text:
            notes.append(f"another text than the verified one in {item.other_text}")
        if item.beyond and trainer.cut is not None:
            notes.append(f"cut at {trainer.limit} tokens: {counted(item.beyond, 'sample')}")
        if item.answers_lost:
            notes.append(f"{item.answers_lost:,} tokens of meta.spans not trained")
        notes += [
            f"refused: {count:,} of {counted(item.samples, 'sample')} of this dataset, {why}"
            for why, count in sorted(item.refused.items())
        ]
        if item.borders:
            notes.append(f"a span border inside a token in {item.borders}")
        for note in notes:
            print(f"    {note}")


def _right(text: str, width: int) -> str:
    return f"  {text:>{width}}"


LISTED = 100
"""Bad lines that `--json` lists without `--all`; the rest is counted."""


@command()
def verify(
    dataset: str,
    model: str | None = None,
    tokenizer: str | None = None,
    chat_template: str | None = None,
    masks: list[str] | None = None,
    require: list[str] | None = None,
    unit: Unit | None = None,
    loaded: bool = False,
    mode: Mode = "non-thinking",
    show_all: bool = False,
    workers: int | None = None,
    *,
    output: Output,
) -> int:
    """Check a dataset of any origin against the chat template, line by line."""
    required = get_args(Requirement)
    for name in set(require or ()) - {*required}:
        raise OptionError("require", f" {name!r}: no such value{nearest(name, required)}")
    if model is not None and tokenizer is None:
        tokenizer = target_of(model_named(model))
    workers = workers or default_workers()
    name = tokenizer_of(Manifest.of(expand_home(dataset)), tokenizer, chat_template)
    prepare_for((expand_home(dataset),), workers, preloading(name))
    say_tokenizer(dataset, tokenizer, chat_template, output)
    lines = _BadLines(show_all, output)
    summary = verify_dataset(
        dataset,
        tokenizer=name,
        options={"mode": mode, "require": require or []},
        unit=unit,
        as_loaded=loaded,
        masks=masks or (),
        workers=workers,
        on_report=lines.add,
    )
    result = _result(dataset, target_for(name), summary, lines, output)
    if masks:
        comparisons = {
            name: summary.masks.get(name, Comparison(name)) for name in trainers_named(masks)
        }
        result["masks"] = {name: as_json(item) for name, item in comparisons.items()}
        if output.in_words:
            _print_masks(comparisons)
    if output.as_json:
        print_json(result)
    return 1 if result["findings"] or not result["samples"] else 0


class _BadLines:
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
    dataset: str, target: Target, summary: Summary, lines: _BadLines, output: Output
) -> dict[str, Json]:
    """Prints the summary for one tokenizer; returns the result as JSON."""
    result: dict[str, Json] = {
        "dataset": output.dataset or dataset,
        "tokenizer": target.name,
        "template_sha256": target.template_sha256,
        "template_name": target.template_name,
        "tokenizer_missing": target.missing,
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
    whole = "the text of " if result["tokenizer_missing"] else ""
    return (
        f"{whole}{result['proven']:,} of {result['samples']:,} samples verified against"
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


def _print_faults(summary: Summary, lines: _BadLines) -> None:
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
    findings: list[Json] = [asdict(finding) for finding in report.findings]
    return {"file": report.file, "line": report.line, "findings": findings}
