"""Runs a command on each of several files, as pre-commit passes them.

python -m builder.cli.each COMMAND [OPTIONS] FILE…

The command and its options are all arguments before the first existing file. The exit code is the
largest of those of the files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from builder.cli import main


def run_each(arguments: Sequence[str]) -> int:
    """Runs the command on every file; returns the largest exit code."""
    command = list(takewhile(lambda item: not Path(item).is_file(), arguments))
    return max((main([*command, path]) for path in arguments[len(command) :]), default=0)


if __name__ == "__main__":
    sys.exit(run_each(sys.argv[1:]))
