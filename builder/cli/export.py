"""Implements `builder export`: writes a variant of a dataset for a trainer."""

from __future__ import annotations

from pathlib import Path

from builder.api import export_dataset
from builder.cli.output import Output
from builder.cli.terminal import print_json, warn
from builder.export.outcome import TARGETS, Exported, left_out_line, result
from builder.export.variants import VARIANTS
from builder.output.manifest import Manifest
from builder.paths import expand_home


def run_export(
    dataset: str,
    *,
    to: str,
    out: Path,
    tokenizer: str | None,
    chat_template: str | None,
    fresh: bool,
    output: Output,
) -> int:
    """Exports and prints; returns 0 if rows were put in place. Raises UsageError."""
    exported = export_dataset(
        dataset, to, out, tokenizer=tokenizer, chat_template=chat_template, fresh=fresh
    )
    if output.as_json:
        print_json({**result(exported), "variant": to})
    elif not output.quiet:
        _print(exported, to, out)
    if exported.targets_advice:
        warn(left_out_line(exported, TARGETS))
    for change in [*exported.changed.values()][:20]:
        warn(f"left out: {change}")
    for problem in exported.problems[:20]:
        warn(problem)
    if exported.problems:
        warn("nothing was put in place")
    if not exported.rows:
        warn(_why_empty(to, Manifest.of(expand_home(dataset))))
    return 1 if exported.problems or not exported.rows else 0


def _why_empty(to: str, manifest: Manifest) -> str:
    """Explains why nothing was exported; for pairs, with the counts of the manifest."""
    if to not in VARIANTS or not VARIANTS[to].of_pairs:
        return "no sample could be exported"
    left_out = manifest.preferences.left_out
    codes = ", ".join(f"{code} {count}" for code, count in left_out.items())
    why = f"; uncertain: {codes}" if codes else ""
    return f"the dataset contains no preference pair (docs/preference.md){why}"


def _print(exported: Exported, to: str, out: Path) -> None:
    print(f"{exported.rows} rows of {exported.samples} samples as {to} in {out}")
    print(f"  {exported.equal} of {exported.rows} give the verified text when loaded again")
    for code in sorted({*exported.left_out} - {TARGETS}):
        print(f"  {left_out_line(exported, code)}")
    for code, count in sorted(exported.pairs_left_out.items()):
        print(f"  {count} pairs left out: {code}")
    for trainer in VARIANTS[to].trainers if to in VARIANTS else ():
        beyond = exported.longer_than_default[trainer.name]
        if beyond:
            print(
                f"  {beyond} of {exported.written} samples are longer than {trainer.title}'s"
                " default length: configs/ sets one that fits"
            )
    for title, why in exported.without_configuration.items():
        print(f"  no configuration for {title}: {why}")
