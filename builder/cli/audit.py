"""Implements `builder audit`: prints findings, and fails on those named with `--fail-on`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from builder.api import Progress, audit_dataset
from builder.audit.options import AuditOptions
from builder.audit.result import Audit, AuditTable
from builder.audit.run import CODES
from builder.cli.command import Output, command
from builder.cli.terminal import (
    NO_SAMPLES,
    aligned,
    conversion_lines,
    escaped,
    print_json,
    print_wrapped,
    warn,
)
from builder.codes import AUDIT_OPTIONS
from builder.config import load_config
from builder.finding import GateAction
from builder.gates import check_gates, fires, runs
from builder.normalize.remedies import option_for
from builder.output.manifest import Manifest
from builder.parallel.pool import default_workers
from builder.paths import UserPath, expand_home
from builder.problem import UsageError
from builder.text import counted

_TABLES = ("lengths", "trainers", "patterns", "parity", "tools")
"""Keys of the tables that are printed; `--json` and the report contain all."""
_TO_SET = "setting to use"
"""The column of `trainers` with the values for their configurations."""
ROWS = 8
"""Rows of a table that are printed; a single further one is printed too."""


def _found(sets: Sequence[str]) -> tuple[UserPath, ...]:
    """Returns the evaluation sets that were named. Raises UsageError for one that is not there."""
    for name in sets:
        if not name.startswith("hf://") and not expand_home(name).exists():
            raise UsageError(f"--contamination {name!r}: no such file or folder")
    return tuple(map(UserPath, sets))


@command()
def audit(
    dataset: str,
    fail_on: str | None = None,
    contamination: list[str] | None = None,
    model: str | None = None,
    config: Path | None = None,
    settings: list[str] | None = None,
    tokenizer: str | None = None,
    workers: int | None = None,
    *,
    output: Output,
) -> int:
    """Analyse a dataset: its contents, what leaked into it, and what is wrong with it."""
    configured = load_config(
        config, settings=settings or (), keys={"verify.model": model}
    ).audit_options
    chosen = replace(
        configured,
        contamination=_found(contamination or ()) or configured.contamination,
        tokenizer=tokenizer or configured.tokenizer,
    )
    gates = list(filter(None, dict.fromkeys(map(str.strip, (fail_on or "").split(",")))))
    if fail_on is not None and not gates:
        raise UsageError("--fail-on: names neither an audit nor a code")
    check_gates(gates, chosen, "--fail-on")
    if missing := Manifest.of(expand_home(dataset)).tokenizer.missing:
        warn(missing)
    step, end = _progress(quiet=not output.in_words)
    audited = audit_dataset(
        dataset, options=chosen, workers=workers or default_workers(), on_progress=step
    )
    end()
    fired = [item.code for item in audited.findings if fires(item, gates)]
    passed = [gate for gate in gates if not any(fires(item, [gate]) for item in audited.findings)]
    if output.as_json:
        print_json(
            {
                "dataset": output.dataset or dataset,
                **audited.as_json(),
                "failed": fired,
                "passed": passed,
            }
        )
    elif not output.quiet and audited.rows:
        _print(output.dataset or dataset, audited, chosen)
        _print_end(audited, passed)
    if fired:
        warn(f"failed gates: {', '.join(fired)}")
    if not audited.samples:
        warn(NO_SAMPLES)
    return 1 if fired or not audited.samples else 0


def _progress(*, quiet: bool) -> tuple[Callable[[Progress], object], Callable[[], object]]:
    """Returns callbacks for progress and for the end; they show a counter on a terminal."""
    if quiet or not sys.stderr.isatty():
        return (lambda _: None), (lambda: None)
    from tqdm import tqdm  # noqa: PLC0415 - only on a terminal

    bar = tqdm(unit=" samples", file=sys.stderr, leave=False)
    return (lambda progress: bar.update(progress.done - bar.n)), bar.close


def _print(dataset: str, audited: Audit, options: AuditOptions) -> None:
    print(escaped(f"{counted(audited.samples, 'sample')} in {dataset}"))
    for line in conversion_lines(audited.read_as, audited.rows, audited.conversion):
        print(escaped(line))
    for name, findings in groupby(audited.findings, key=lambda item: item.audit):
        print(f"\n{name}")
        for finding in findings:
            gate = f", {finding.gate}" if finding.gate is not GateAction.report else ""
            where = f" in {counted(finding.samples, 'sample')}" if finding.samples else ""
            print(escaped(f"  {finding.code:22} {finding.count:,}{where}{gate}: {finding.message}"))
            for example in finding.examples[:1]:
                more = f" {example.part}" if example.part else ""
                more += f": {example.detail}" if example.detail else ""
                print(escaped(f"      {example.where}{more}".replace("\n", " ")))
    found = {item.audit for item in audited.findings}
    clean = [name for name in CODES if name not in found and runs(name, options)]
    if clean:
        print()
        print_wrapped("", f"nothing found: {', '.join(clean).replace('_', ' ')}", "  ")
    by_key = {table.key: table for table in audited.tables}
    for key in _TABLES:
        if key in by_key and by_key[key].rows:
            _print_table(by_key[key])


def _print_end(audited: Audit, passed: Sequence[str]) -> None:
    """Prints which gates passed, and the options of a build that leave out what was found."""
    print()
    if passed:
        print(f"gates passed: {', '.join(passed)}")
    found = {item.audit: None for item in audited.findings}
    found |= {item.code: None for item in audited.findings}
    for name in found:
        if setting := AUDIT_OPTIONS.get(name):
            print_wrapped("", f"{name}: a build leaves out or replaces these with"
                          f" {option_for(setting)}", "  ")  # fmt: skip


def _print_table(table: AuditTable) -> None:
    shown = ROWS if len(table.rows) > ROWS + 1 else len(table.rows)  # a row is as short as a note
    lines = [
        [
            _cell(cell, pasted=head == _TO_SET)
            for cell, head in zip(line, table.columns, strict=True)
        ]
        for line in (table.columns, *table.rows[:shown])
    ]
    print(f"\n{table.title}")
    for line in aligned(lines):
        print(escaped(f"  {line}"))
    if len(table.rows) > shown:
        print(f"  … {len(table.rows) - shown} more (--json)")


def _cell(value: str | int | float | None, *, pasted: bool) -> str:
    """Returns a cell; a number that is pasted into a configuration has no separators."""
    if isinstance(value, float):
        return f"{value:.1%}" if value <= 1 else f"{value:,.1f}"
    if isinstance(value, int) and not pasted:
        return f"{value:,}"
    return "" if value is None else " ".join(str(value).split())[:40]
