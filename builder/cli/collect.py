"""Implements `builder collect`: copies agents' logs into a folder that keeps them."""

from __future__ import annotations

import sys
from pathlib import Path

from builder.api import collect_logs
from builder.cli.command import Output, command
from builder.cli.terminal import escaped, print_json, warn
from builder.paths import expand_home
from builder.text import counted


@command()
def collect(
    out: Path, inputs: list[str] | None = None, dry_run: bool = False, *, output: Output
) -> int:
    """Copy new and changed logs of this machine's agents into a folder, before they are deleted."""

    def show(kind: str, name: str) -> None:
        if dry_run and not (output.as_json or output.quiet):
            print(escaped(f"{kind:9}  {name}"))

    out = expand_home(str(out))
    done = collect_logs(out, inputs or (), dry_run=dry_run, on_file=show)
    for problem in done.problems:
        warn(f"{problem.where}: {problem.code}: {problem.detail}")
    if output.as_json:
        print_json(done.counts)
    elif not output.quiet:
        files = [f"{counted(done.new, 'new file')}", f"{done.grown:,} grown"]
        files += [f"{done.rewritten:,} rewritten (both states kept)"] if done.rewritten else []
        files += [f"{done.unchanged:,} unchanged"]
        files += [f"{len(done.problems):,} not readable"] if done.problems else []
        verb = "would be copied" if dry_run else "copied"
        if any(done.counts.values()):
            size = f"; {done.bytes / 1e6:,.1f} MB {verb}" if done.bytes else ""
            print(escaped(f"{out}: {', '.join(files)}{size}"))
        elif inputs:
            print(escaped(f"nothing to collect: no files in {', '.join(inputs)}"))
        else:
            print("nothing to collect: no logs of known agents on this machine; name their folders")
    sys.stdout.flush()
    return 1 if done.problems else 0
