"""Implements the functions of the API that keep logs: copies of them, and captured requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from builder.api.checked import checked
from builder.problem import OptionError, UsageError

if TYPE_CHECKING:
    from builder.capture.pairs import PairWriter, SentDefinitions
    from builder.capture.versions import LoggedVersion, Survey
    from builder.collect.job import Collected


@checked
def collect_logs(
    out: str | Path,
    inputs: str | Path | Sequence[str | Path] = (),
    *,
    dry_run: bool = False,
    on_file: Callable[[str, str], None] = lambda kind, name: None,
) -> Collected:
    """Copies new and changed logs into a folder that keeps them (docs/collect.md).

    No inputs: those of all agents on this machine. `on_file` is called with (new, grown or
    rewritten, name) for each file. Raises UsageError if an input does not exist, the folder cannot
    be written, or another run is writing to it.
    """
    from builder.collect.job import collect_logs as collect

    given = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    names = [os.fspath(item) for item in given]
    return collect(Path(out), names, dry_run=dry_run, on_file=on_file)


@checked
def capture_definitions(command: Sequence[str], out: str | Path | None = None) -> SentDefinitions:
    """Runs an agent against a scripted provider on this machine; returns the prompt and tools sent.

    `out` is the file for them, which builds read (docs/capture.md). Raises UsageError if the
    command cannot be run or sends neither, or if the file cannot be written or is not of a capture.
    """
    from builder.capture.definitions import capture_definitions as capture

    _needs_capture()
    _needs_words(command)
    path = Path(out) if out is not None else None
    if path is not None:
        _refuse_other(path)
    sent = capture(command)
    if path is not None:
        _write(path, sent)
    return sent


def capture_versions(
    logs: Sequence[str],
    out: str | Path,
    *,
    most: int = 8,
    on_survey: Callable[[Survey], object] = lambda survey: None,
    on_version: Callable[[LoggedVersion, Sequence[SentDefinitions], str], object] = lambda *_: None,
) -> int:
    """Captures what the versions of agents send that wrote the logs (docs/capture.md).

    `most` versions, those with the most turns, until 95 % are covered. `on_version` is called for
    each with what it sent, and why it could not be had, or "". Returns the number of turns of the
    versions captured. Raises UsageError if no log is of an agent that can be captured.
    """
    from builder.capture.versions import capture_version, survey

    _needs_capture()
    found = survey(logs)
    chosen = found.chosen(most)
    if not chosen:
        raise UsageError("logs: none is of an agent and a version that can be started here")
    on_survey(found)
    covered = 0
    for version in chosen:
        sent: list[SentDefinitions] = []
        fault = ""
        try:
            for one in capture_version(version):
                path = Path(out) / f"{one.agent}-{one.version}{'-p' * bool(one.headless)}.json"
                _refuse_other(path)
                _write(path, one)
                sent.append(one)
        except UsageError as error:
            fault = str(error)
        covered += version.turns if sent else 0
        on_version(version, sent, fault)
    return covered


def _refuse_other(path: Path) -> None:
    """Raises UsageError if a file exists that no capture made."""
    if path.exists() and not _is_definitions(path):
        raise OptionError("out", f" {str(path)!r}: exists, and no capture made it")


def _write(path: Path, sent: SentDefinitions) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sent.to_json())
    except OSError as error:
        raise OptionError("out", f" {str(path)!r}: {error.strerror or error}") from None


def _is_definitions(path: Path) -> bool:
    """Returns whether a file is one that an earlier capture of definitions wrote."""
    from builder.jsonio import JsonFault, loads

    try:
        value = loads(path.read_bytes())
    except (OSError, JsonFault):
        return False
    named = {"agent", "version", "headless", "folder", "system", "tools"}
    return isinstance(value, dict) and {"agent", "version", "tools"} <= value.keys() <= named


@checked
def capture_logs(
    command: Sequence[str], folder: str | Path = "captures", *, upstream: Sequence[str] = ()
) -> tuple[int, PairWriter]:
    """Runs an agent and keeps its requests and the provider's answers (docs/capture.md).

    Returns the exit code of the command, and what was written. `upstream` has the values of the
    option. Raises UsageError if the command cannot be run.
    """
    import tempfile
    from functools import partial

    from builder.capture.agents import adapt, routes
    from builder.capture.job import capture_command

    _needs_capture()
    _needs_words(command)
    served = routes(os.environ, upstream)
    with tempfile.TemporaryDirectory(prefix="builder-capture-") as scratch:
        adapted = partial(adapt, scratch=Path(scratch))
        return capture_command(command, Path(folder), served, adapt=adapted)


@checked
def serve_capture(
    port: int,
    folder: str | Path = "captures",
    *,
    upstream: Sequence[str] = (),
    on_ready: Callable[[Mapping[str, str]], object] = lambda addresses: None,
) -> PairWriter:
    """Passes requests through and keeps them until Ctrl-C; returns what was written.

    `port` 0: any that is free. `on_ready` gets {environment variable: address for agents} when
    requests are accepted. Raises UsageError if the port is taken.
    """
    from builder.capture.agents import routes
    from builder.capture.job import capture_serving

    _needs_capture()
    served = routes(os.environ, upstream)

    def ready(bound: int) -> None:
        on_ready({route.variable: route.local(bound) for route in served})

    return capture_serving(port, Path(folder), served, ready=ready)


def _needs_words(command: Sequence[str]) -> None:
    if not command:
        raise UsageError("command: is empty")


def _needs_capture() -> None:
    """Raises UsageError if the extra is not installed."""
    from importlib.util import find_spec

    from builder.distribution import install_line

    if find_spec("aiohttp") is None:
        raise UsageError(f"capture needs `{install_line('capture')}`")
