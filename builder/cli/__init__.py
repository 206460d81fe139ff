"""Implements the command line, with one module for each command."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code: 0, 1, 2 or 130.

    `argv` has the arguments without the program's name; None means those of this process.
    """
    from builder.cli.run import run  # noqa: PLC0415 - typer is imported when a command runs
    from builder.parallel.host import own_process  # noqa: PLC0415 - as above

    own_process()
    return run(list(sys.argv[1:] if argv is None else argv))
