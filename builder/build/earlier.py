"""Checks an output folder for the results of an earlier build."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from builder.config import Config
from builder.jsonio import JsonFault, loads
from builder.output.folder import MANIFEST, STATE
from builder.paths import expand_home
from builder.problem import UsageError


def refuse_other_inputs(config: Config, out: Path) -> None:
    """Raises UsageError if `out` has a dataset made from inputs that this build would leave out.

    Its samples would otherwise vanish silently. Additional inputs are fine.
    """
    earlier = _inputs(out)
    now = {item.path.written for item in config.inputs}
    now |= {item.path.published for item in config.inputs}
    places = {_absolute(item.path.located) for item in config.inputs}
    missing = [path for path in earlier if path not in now]
    missing = [path for path in missing if _absolute(expand_home(path)) not in places]
    if missing:
        raise UsageError(
            f"output {str(out)!r}: was made from other inputs ({', '.join(missing[:3])}):"
            " name another folder, or replace its content with --fresh"
        )


def has_dataset(out: Path) -> bool:
    """Returns whether an earlier build in the folder finished."""
    return (out / MANIFEST).is_file()


@contextlib.contextmanager
def removed_if_unused(out: Path) -> Iterator[None]:
    """Removes `out` at a regular end if nothing was built and it contains only our own state.

    After an interruption the state is kept, so that the same command resumes.
    """
    yield
    if not has_dataset(out):
        shutil.rmtree(out / STATE, ignore_errors=True)
        with contextlib.suppress(OSError):  # the folder existed before, with other files
            out.rmdir()


def _inputs(out: Path) -> list[str]:
    """Returns the paths of the inputs as listed in the manifest; [] if it cannot be read."""
    try:
        manifest = loads((out / MANIFEST).read_bytes())
    except (OSError, JsonFault):
        return []
    config = manifest.get("config") if isinstance(manifest, dict) else None
    inputs = config.get("inputs") if isinstance(config, dict) else None
    if not isinstance(inputs, list):
        return []
    paths = [item.get("path") for item in inputs if isinstance(item, dict)]
    return [path for path in paths if isinstance(path, str)]


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - links stay what they are
