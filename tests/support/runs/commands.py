"""Runs the command line: in this process, or in a copy of it."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from builder import cli

LIMIT = 300
"""Seconds after which a command is killed, and its test fails."""


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


def run_forked(*arguments: object, prepare: Callable[[], object] = lambda: None) -> Ran:
    """Runs a command in a copy of this process, for which `prepare` is called first.

    The copy needs no start, and may hang or be limited by the system.
    """
    here, there = multiprocessing.Pipe(duplex=False)
    copy = multiprocessing.get_context("fork").Process(
        target=_send_result, args=(there, prepare, arguments)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12: there are threads
        copy.start()
    there.close()
    try:
        assert here.poll(LIMIT), "the command does not end"
        result: Ran = here.recv()
        return result
    finally:
        copy.kill()
        copy.join()


def _send_result(
    there: Connection, prepare: Callable[[], object], arguments: tuple[object, ...]
) -> None:
    prepare()
    there.send(run(*arguments))
