"""Implements `builder diff`: prints which samples were added, removed or changed."""

from __future__ import annotations

from builder.api import diff_datasets
from builder.cli.command import Output, command
from builder.cli.terminal import escaped, print_json
from builder.report.compare import DatasetDifference
from builder.text import counted

ROWS = 20
"""Rows of a table that are printed; `--json` contains all."""
NAME = 46
"""Characters of a name that are printed."""


@command()
def diff(before: str, after: str, *, output: Output) -> int:
    """Compare two datasets: samples added, removed or changed, and other differences."""
    difference = diff_datasets(before, after)
    if output.as_json:
        print_json(difference.to_json())
    elif not output.quiet:
        _print(difference)
    return 1 if difference.added or difference.removed or difference.changed else 0


def _print(difference: DatasetDifference) -> None:
    is_one = difference.same == 1
    print(f"{counted(difference.same, 'sample')} {'is' if is_one else 'are'} the same,"
          f" {difference.changed:,} changed, {difference.added:,} added,"
          f" {difference.removed:,} removed")  # fmt: skip
    lacking = [
        name
        for name, facts in (("the first", difference.before), ("the second", difference.after))
        if facts.tokens is None
    ]
    for name in lacking:
        print(f"  {name} has no meta/: only samples, calls, tools and splits are compared")
    for name, title in (("samples", ""), ("tokens", ""), ("calls", "calls in samples")):
        before, after = getattr(difference.before, name), getattr(difference.after, name)
        if None not in (before, after):
            _row(title or name, before, after)
    for table, rows in difference.tables.items():
        print(f"{table}:")
        largest = sorted(rows.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
        for name, (one, other) in largest[:ROWS]:
            _row(f"  {name}", one, other)
        if len(rows) > ROWS:
            print(f"    and {len(rows) - ROWS} more")


def _row(name: str, before: int, after: int) -> None:
    name = name if len(name) <= NAME else f"{name[: NAME - 1]}…"
    print(escaped(f"  {name:{NAME}} {before:>12,} -> {after:<12,} {after - before:+,}"))
