"""Implements `builder capture`: an agent's requests pass through and are kept."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from builder.api import capture_definitions, capture_logs, serve_capture
from builder.cli.command import Output, command
from builder.cli.terminal import escaped, print_json, warn
from builder.distribution import install_line
from builder.problem import UsageError
from builder.text import counted

if TYPE_CHECKING:
    from builder.capture.pairs import PairWriter

_DEFAULT_FOLDER = Path("captures")


@command(context_settings={"allow_interspersed_args": False})
def capture(
    command: list[str] | None = None,
    out: Path | None = None,
    serve: int | None = None,
    definitions: bool = False,
    upstream: list[str] | None = None,
    *,
    output: Output,
) -> int:
    """Run an agent with its requests passing through, and keep requests and answers as logs."""
    if find_spec("aiohttp") is None:
        raise UsageError(f"capture needs `{install_line('capture')}`")
    if bool(command) == (serve is not None):
        raise UsageError("capture: name a command after `--`, or --serve PORT")
    if definitions:
        if serve is not None or out is None:
            raise UsageError("--definitions needs -o FILE and a command after `--`")
        return _definitions(command or (), out, output)
    folder = out or _DEFAULT_FOLDER
    if serve is not None:

        def show(addresses: Mapping[str, str]) -> None:
            for variable, address in addresses.items():
                print(f"export {variable}={shlex.quote(address)}")
            print(f"# capturing to {escaped(str(folder))}; Ctrl-C ends", file=sys.stderr)
            sys.stdout.flush()

        writer = serve_capture(serve, folder, upstream=upstream or (), on_ready=show)
        _summary(writer, output)
        return 1 if writer.lost else 0
    code, writer = capture_logs(command or (), folder, upstream=upstream or ())
    _summary(writer, output)
    return code


def _summary(writer: PairWriter, output: Output) -> None:
    """Prints on stderr, since stdout is the command's."""
    if writer.lost:
        warn(f"capture: {counted(writer.lost, 'exchange')} not written: {writer.fault}")
    if output.as_json:
        path = str(writer.path) if writer.path is not None else None
        print_json({"path": path, "exchanges": writer.written, "lost": writer.lost})
    elif not output.quiet and writer.path is not None:
        what = f"{writer.path}: {counted(writer.written, 'exchange')}"
        where = shlex.quote(str(writer.folder))
        print(escaped(f"{what}; builder build {where} -o OUT"), file=sys.stderr)
    elif not output.quiet and not writer.lost:
        detail = "no request came through: does the command take its address from the environment?"
        print(f"capture: {detail} (docs/capture.md)", file=sys.stderr)


def _definitions(command: Sequence[str], out: Path, output: Output) -> int:
    sent = capture_definitions(command, out)
    if output.as_json:
        print_json(
            {"path": str(out), "agent": sent.agent, "version": sent.version,
             "tools": sent.count, "system_characters": len(sent.system)}
        )  # fmt: skip
    elif not output.quiet:
        name = f"{sent.agent} {sent.version}".strip()
        what = f"{counted(sent.count, 'tool')} and {len(sent.system):,} characters of prompt"
        path = shlex.quote(str(out))
        print(escaped(f"{out}: {name}, {what}; builder build LOGS --tools {path} --system {path}"))
    return 0
