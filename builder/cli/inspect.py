"""Implements `builder inspect`: shows a file's format, and a conversation as rendered."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from builder.api import inspect_log, suggest_mapping
from builder.cli.formats import print_overview
from builder.cli.output import Output
from builder.cli.terminal import RESET, TRAINED, colours, escaped, print_json
from builder.config import Config
from builder.output.aside import write_whole
from builder.problem import UsageError
from builder.text import counted

if TYPE_CHECKING:
    from builder.build.inspection import InspectedConversation, Inspection
    from builder.qwen3.parity import Spans


def run_inspect(
    path: str,
    *,
    index: int,
    format: str | None,  # noqa: A002 - the option's name
    mapping: Path | None,
    suggests: bool,
    config: Config,
    tokenizer: str | None,
    chat_template: str | None,
    output: Output,
) -> int:
    """Prints the format of a file and one conversation as `build` converts it; returns 0.

    For a folder, prints the formats of its files, and shows the first usable conversation.
    `mapping` is a mapping file for the log; `suggests` proposes one and writes it. Raises
    UsageError if no reader recognises anything.
    """
    if suggests:
        mapping = _suggested(path, config, output)
    inspected = inspect_log(
        path,
        index=index,
        format=format,
        mapping=mapping,
        config=config,
        tokenizer=tokenizer,
        chat_template=chat_template,
    )
    if output.as_json:
        print_json(inspected.to_json())
        return 0
    if inspected.formats is not None:
        print_overview(path, inspected.formats, inspected.unknown)
    _print_counts(inspected)
    if inspected.conversation is not None:
        _print_conversation(inspected.conversation)
    return 0


def _suggested(log: str, config: Config, output: Output) -> Path:
    """Writes a proposed mapping into the current folder and returns its path. Raises UsageError."""
    source, text = suggest_mapping(log, config=config)
    path = Path(f"{Path(source).stem}.mapping.yaml")
    if path.exists():
        raise UsageError(f"{path}: exists; use it with --mapping, or remove it")
    write_whole(path, text.encode())
    if not output.as_json:
        print(escaped(f"{path}:\n{text}"))
        place = shlex.quote(str(Path(log) / source) if Path(log).is_dir() else log)
        command = f"builder build {place} --mapping {shlex.quote(str(path))} -o OUT"
        print(escaped(f"Check it, then: {command}\n"))
    return path


def _print_counts(inspected: Inspection) -> None:
    print(escaped(f"{inspected.source}: {inspected.format} ({inspected.reason})"))
    conversations = counted(inspected.conversations, "conversation")
    calls = counted(inspected.calls, "call")
    print(f"{counted(inspected.records, 'record')}, {conversations}, {calls}")
    for code, count in sorted(inspected.ignored.items()):
        print(escaped(f"  ignored {code}: {count}"))
    for problem in inspected.problems[:20]:
        print(escaped(f"  {problem.code} at {problem.where}: {problem.detail}"))


def _print_conversation(shown: InspectedConversation) -> None:
    model = f"model {shown.model}" if shown.model else "no model named"
    print(escaped(f"conversation {shown.id} ({shown.record}), {model}"))
    if shown.changes:
        print("  changes: " + ", ".join(f"{code} {n}" for code, n in shown.changes.items()))
    if shown.problem is not None:
        print(escaped(f"  rejected: {shown.problem.code}: {shown.problem.detail}"))
        if shown.remedy:
            print(f"  to keep it: {shown.remedy}")
    if shown.definitions_command:
        command = shown.definitions_command
        print(f"  tools inferred from the calls; this captures the real ones: {command}")
    if shown.verdict is not None:
        print(f"  {shown.verdict.tokens} tokens; trained text is marked\n")
        print(marked(shown.verdict.text, shown.verdict.spans))


def marked(text: str, spans: Spans) -> str:
    """Returns the text, escaped for a terminal, with the spans in colour or between ⟦ and ⟧."""
    begin, end = (TRAINED, RESET) if colours() else ("⟦", "⟧")
    borders = [0, *(border for span in spans for border in span), len(text)]
    pieces = [escaped(text[start:stop]) for start, stop in pairwise(borders)]
    return "".join(
        f"{begin}{piece}{end}" if number % 2 else piece for number, piece in enumerate(pieces)
    )
