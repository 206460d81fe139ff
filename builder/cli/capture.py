"""Implements `builder capture`: an agent's requests pass through and are kept."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from builder.api import capture_definitions, capture_logs, serve_capture
from builder.api.kept import capture_versions
from builder.cli.command import Output, command
from builder.cli.terminal import escaped, print_json, warn
from builder.distribution import install_line
from builder.problem import UsageError
from builder.text import counted

if TYPE_CHECKING:
    from builder.capture.pairs import PairWriter, SentDefinitions
    from builder.capture.versions import LoggedVersion, Survey

_DEFAULT_FOLDER = Path("captures")


@command(context_settings={"allow_interspersed_args": False})
def capture(
    command: list[str] | None = None,
    out: Path | None = None,
    serve: int | None = None,
    definitions: bool = False,
    logs: list[str] | None = None,
    versions: int = 8,
    upstream: list[str] | None = None,
    *,
    output: Output,
) -> int:
    """Run an agent with its requests passing through, and keep requests and answers as logs."""
    if find_spec("aiohttp") is None:
        raise UsageError(f"capture needs `{install_line('capture')}`")
    if definitions and logs:
        if command or serve is not None or out is None:
            raise UsageError("--definitions --logs needs -o FOLDER, and no command")
        return _versions(logs, out, versions, output)
    if logs:
        raise UsageError("--logs goes with --definitions")
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


def _versions(logs: Sequence[str], out: Path, most: int, output: Output) -> int:
    """Prints a line for each version, as it is captured."""
    from tqdm import tqdm  # noqa: PLC0415 - only here

    is_quiet = output.quiet or output.as_json
    bar = tqdm(unit=" versions", file=sys.stderr, leave=False, disable=is_quiet or None)
    lines: list[dict[str, object]] = []
    turns = 1

    def survey_done(survey: Survey) -> None:
        nonlocal turns
        chosen, turns = survey.chosen(most), survey.turns
        bar.reset(len(chosen))
        share = sum(one.turns for one in chosen) / turns
        agents = ", ".join(sorted({one.agent for one in survey.versions}))
        what = f"{agents}: {counted(len(survey.versions), 'version')} in"
        what += f" {counted(survey.sessions, 'session')}; capturing the {len(chosen)} that wrote"
        if not is_quiet:
            bar.write(f"{what} {share:.0%} of the turns", file=sys.stdout)

    def version_done(version: LoggedVersion, sent: Sequence[SentDefinitions], fault: str) -> None:
        bar.update()
        modes = ", ".join("-p" if one.headless else "interactive" for one in sent)
        modes = modes if sent and sent[0].headless is not None else version.agent
        sizes = f"{sent[-1].count} tools, {len(sent[-1].system):,} characters" if sent else ""
        lines.append(
            {"agent": version.agent, "version": version.version, "turns": version.turns,
             "captured": len(sent), "fault": fault}
        )  # fmt: skip
        parts = [f"{modes:<15}  {sizes}" if sent else "", f"not had: {fault}" if fault else ""]
        if not is_quiet:
            text = "  ".join(part for part in parts if part)
            bar.write(escaped(f"  {version.version:<9} {text}"), file=sys.stdout)

    try:
        covered = capture_versions(
            logs, out, most=most, on_survey=survey_done, on_version=version_done
        )
    finally:
        bar.close()
    captured = sum(bool(line["captured"]) for line in lines)
    if output.as_json:
        print_json({"path": str(out), "versions": lines, "turns": turns, "covered": covered})
    elif not output.quiet:
        where = shlex.quote(str(out))
        what = f"{counted(captured, 'version')}, {covered / turns:.0%} of the turns"
        print(escaped(f"{out}: {what}; builder build LOGS --definitions {where} -o OUT"))
    return 0 if captured else 1


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
