"""Runs the command line, in this process or in a separate one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from builder import cli


class Ran(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object, cwd: Path | str = ".") -> Ran:
    """Runs a command in this process: starting Python takes longer than most commands do."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = cli.main([*map(str, arguments)])
    return Ran(code, out.getvalue(), err.getvalue())


def run_separately(*arguments: object, cwd: Path | str = ".") -> Ran:
    """Runs a command in a separate process without access to the Hub."""
    done = subprocess.run(
        [sys.executable, "-m", "builder", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        timeout=300,
        check=False,
        cwd=cwd,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)
