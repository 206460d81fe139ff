"""Checks an output folder for the results of an earlier build."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from builder.config import Config
from builder.output.folder import STATE
from builder.output.manifest import MANIFEST, Manifest
from builder.paths import expand_home
from builder.problem import UsageError


def refuse_other_inputs(config: Config, out: Path) -> None:
    """Raises UsageError if the dataset in `out` was made from inputs that this build leaves out.

    Their samples would vanish silently. Additional inputs are fine.
    """
    names = {name for item in config.inputs for name in (item.path.written, item.path.published)}
    located = {_absolute(item.path.located) for item in config.inputs}
    missing = [
        path
        for path in Manifest.of(out).input_paths
        if path not in names and _absolute(expand_home(path)) not in located
    ]
    if missing:
        raise UsageError(
            f"output {str(out)!r}: was made from other inputs ({', '.join(missing[:3])}):"
            " name another folder, or replace its content with {fresh}",
            fresh=True,
        )


def has_dataset(out: Path) -> bool:
    """Returns whether the folder contains a finished build."""
    return (out / MANIFEST).is_file()


@contextlib.contextmanager
def removed_if_unused(out: Path) -> Iterator[None]:
    """Removes `out` after a build without a dataset, if it contains only our own state.

    After an interruption the state is kept, so that the same command resumes.
    """
    yield
    if not has_dataset(out):
        shutil.rmtree(out / STATE, ignore_errors=True)
        with contextlib.suppress(OSError):  # the folder existed before, with other files
            out.rmdir()


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - does not resolve links
