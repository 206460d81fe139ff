"""Implements `builder inspect`: shows a file's format, and a conversation as rendered."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from builder.api import inspect_log, suggest_mapping
from builder.cli.folding import FoldedRange, folds
from builder.cli.formats import print_overview
from builder.cli.grouped import Grouped
from builder.cli.output import Output
from builder.cli.terminal import DIM, RESET, TRAINED, colours, escaped, painted, print_json
from builder.codes import meaning, meaning_of_change
from builder.config import Config
from builder.ledger import ranked
from builder.normalize.as_options import option_for
from builder.output.folder import write_whole
from builder.problem import UsageError
from builder.text import counted, first_names

if TYPE_CHECKING:
    from builder.build.inspection import InspectedConversation, Inspection
    from builder.qwen3.parity import Spans


WHOLE_FILE = "file"
"""The place and the name of a conversation that is its whole file."""


def run_inspect(
    path: str,
    *,
    index: int | None,
    full: bool,
    format: str | None,  # noqa: A002 - the option's name
    mapping: Path | None,
    suggests: bool,
    config: Config,
    tokenizer: str | None,
    chat_template: str | None,
    output: Output,
) -> int:
    """Prints the format of a file and one conversation as `build` converts it; returns 0.

    For a folder, prints the formats of its files. `index` None: the first usable conversation.
    `full`: the whole text, also if it is long. `mapping` is a mapping file for the log; `suggests`
    proposes one and writes it. Raises UsageError if no reader recognises anything.
    """
    if suggests:
        mapping, path = _suggested(path, config, output)
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
        print_overview(path, inspected.formats, len(inspected.unknown))
        if inspected.unknown:
            print(escaped(f"    {first_names(inspected.unknown)}"))
    _print_counts(inspected)
    if inspected.conversation is not None:
        _print_conversation(inspected, inspected.conversation, full=full)
    return 0


def _suggested(log: str, config: Config, output: Output) -> tuple[Path, str]:
    """Writes a proposed mapping into the current folder.

    Returns its path and that of the log, a file if `log` is a folder. Raises UsageError.
    """
    source, text = suggest_mapping(log, config=config)
    path = Path(f"{Path(source).stem}.mapping.yaml")
    if path.exists():
        raise UsageError(f"{path}: exists; use it with --mapping, or remove it")
    write_whole(path, text.encode())
    place = str(Path(log) / source) if Path(log).is_dir() else log
    if not output.as_json:
        print(escaped(f"{path}:\n{text}"))
        command = f"builder build {shlex.quote(place)} --mapping {shlex.quote(str(path))} -o OUT"
        questions = counted(text.count("# Decide"), "line")
        check = f"Answer its {questions} with # Decide" if "# Decide" in text else "Check it"
        print(escaped(f"{check}, then: {command}\n"))
    return path, place


def _print_counts(inspected: Inspection) -> None:
    print(escaped(f"{inspected.source}: {inspected.format} ({inspected.reason})"))
    conversations = counted(inspected.conversations, "conversation")
    calls = counted(inspected.calls, "call")
    print(f"{counted(inspected.records, 'record')}, {conversations}, {calls}")
    for code, count in sorted(inspected.ignored.items()):
        print(escaped(f"  ignored {code} {count:,}{_words(meaning(code))}"))
    problems = Grouped()
    for problem in inspected.problems:
        problems.add(problem.code, f"{problem.where}: {problem.detail}")
    for line in problems.lines("record", "--json lists all"):
        print(escaped(f"  {line}"))


def _words(words: str) -> str:
    """Returns what a code means, to follow it, or ""."""
    return f": {words}" if words else ""


def _print_conversation(inspected: Inspection, shown: InspectedConversation, *, full: bool) -> None:
    name = f"conversation {shown.index}"
    if inspected.formats is not None:
        name += f" of {inspected.conversations:,} in this file, from 0 (--index N counts all files)"
    elif inspected.conversations > 1:
        name += f" of {inspected.conversations:,} (numbered from 0; --index N shows another)"
    # A file that is one record has no name for its conversation.
    names = [shown.record] if shown.record.endswith(shown.id) else [shown.id, shown.record]
    names = [one for one in names if one != WHOLE_FILE]
    model = f"model {shown.model}" if shown.model else "no model named"
    print(escaped(f"{name}: {', '.join([*names, model])}"))
    _print_skipped(inspected, shown)
    if shown.changes:
        print("  changes:")
        for code, count in shown.changes.items():
            print(escaped(f"    {code} {count:,}{_words(meaning_of_change(code))}"))
    if shown.problem is not None:
        print(escaped(f"  rejected: {shown.problem.code}: {shown.problem.detail}"))
        if shown.remedy:
            print(f"  to keep it: {option_for(shown.remedy)}")
    if shown.definitions_command:
        command = shown.definitions_command
        print(f"  tools inferred from the calls; this captures the real ones: {command}")
    if shown.verdict is not None:
        inferred = "" if shown.shares else ", with tools as inferred from this file alone"
        size = f"{counted(shown.verdict.tokens, 'token')}{inferred}"
        if shown.samples > 1:
            size = f"{counted(shown.samples, 'sample')}; the last one has {size}"
        print(f"  {size}; trained text is marked\n")
        text = shown.verdict.text
        print(marked(text, shown.verdict.spans, () if full else folds(text)))


def _print_skipped(inspected: Inspection, shown: InspectedConversation) -> None:
    """Prints why the conversations before the one that is shown are not."""
    total = inspected.skipped.total()
    if not total or inspected.conversations == 1:
        return
    reasons = ", ".join(f"{code} {n:,}" for code, n in ranked(inspected.skipped))
    if shown.samples:
        print(escaped(f"  the first that can be used; those before it cannot: {reasons}"))
        return
    tried = "none of them" if total == inspected.conversations else f"none of the first {total:,}"
    print(escaped(f"  {tried} can be used: {reasons}"))


def marked(text: str, spans: Spans, left_out: Sequence[FoldedRange] = ()) -> str:
    """Returns the text, escaped for a terminal, with the spans in colour or between ⟦ and ⟧.

    The ranges in `left_out` are replaced by their notes.
    """
    begin, end = (TRAINED, RESET) if colours() else ("⟦", "⟧")
    borders = {0, len(text), *(at for span in spans for at in span)}
    borders |= {at for fold in left_out for at in (fold.start, fold.stop)}
    notes = {fold.start: fold for fold in left_out}
    trained = {at for span in spans for at in span}
    pieces = []
    is_trained, hidden_until = False, 0
    for start, stop in pairwise(sorted(borders)):
        is_trained ^= start in trained
        if start in notes:
            pieces.append(painted(notes[start].note, DIM))
            hidden_until = notes[start].stop
        if start >= hidden_until:
            piece = escaped(text[start:stop])
            pieces.append(f"{begin}{piece}{end}" if is_trained else piece)
    return "".join(pieces)
