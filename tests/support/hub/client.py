"""A process that runs builder's commands: one start for many commands.

The client of the Hub reads its endpoint and its upload path at import.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def reported(self) -> Any:
        return json.loads(self.out)


class Client:
    """`run(*arguments)` runs `builder …` with a token."""

    def __init__(self, env: Mapping[str, str], cwd: Path = ROOT, *places: Path) -> None:
        """Starts the process; `places` are folders in which it finds further packages."""
        path = [ROOT, ROOT / "tests", *places]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**env, "PYTHONPATH": os.pathsep.join(map(str, path))},
        )

    def run(self, *arguments: object, token: str = "") -> Ran:
        return Ran(*self._send(["run", token, *map(str, arguments)]))

    def _send(self, message: list[object]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def set(self, module: str, name: str, value: object) -> None:
        """Sets an attribute of a module in that process."""
        self._send(["set", module, name, value])

    def close(self) -> None:
        self._process.communicate()


def serve() -> None:
    from builder import cli

    answers = sys.stdout
    for line in sys.stdin:
        kind, *rest = json.loads(line)
        code, out, err = 0, io.StringIO(), io.StringIO()
        if kind == "set":
            setattr(importlib.import_module(rest[0]), rest[1], rest[2])
        else:
            os.environ["HF_TOKEN"] = rest[0]
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = cli.main(rest[1:])
        answers.write(json.dumps([code, out.getvalue(), err.getvalue()]) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
