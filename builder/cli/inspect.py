"""Implements `builder inspect`: shows a file's format, and a conversation as rendered."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from builder.api.formats import inspect_log
from builder.api.formats import suggest_mapping as propose
from builder.cli.command import Output, command
from builder.cli.formats import print_overview
from builder.cli.terminal import DIM, RESET, TRAINED, Grouped, colours, escaped, painted, print_json
from builder.codes import meaning, meaning_of_change
from builder.config.load import load_config
from builder.config.sections import Config
from builder.ledger import ranked
from builder.normalize.remedies import option_for
from builder.output.folder import write_whole
from builder.problem import UsageError
from builder.text import counted, first_names

# -- shortens a rendered conversation for a terminal -----------------------------------------------

_LONG, HEAD, _TAIL = 12, 8, 2
"""A text of more lines than `_LONG` is shown by its first `HEAD` and its last `_TAIL`."""
COLUMNS = 320
"""Characters of a line that are shown."""
FIRST, _LAST = 100, 30
"""Lines shown before and after the messages that are left out in between."""

_SEPARATOR = re.compile(r"<\|[^|<>]*\|>|</?(?:tools|tool_call|tool_response|think)>$", re.MULTILINE)
"""Begins a line between texts: a control token, or a tag of the template."""
_OPENS = ("<|im_start|>", "<|start_of_role|>")
LINE = re.compile(r"[^\n]*\n|[^\n]+")


class _FoldedRange(NamedTuple):
    """A range of a text that is left out, and the note in its place."""

    start: int
    stop: int
    note: str


class _Line(NamedTuple):
    start: int
    stop: int  # after its line break
    separates: bool
    opens: bool


def _folds(text: str) -> list[_FoldedRange]:
    """Returns the ranges of a rendered conversation to leave out, in order."""
    lines = [
        _Line(
            line.start(),
            line.end(),
            bool(_SEPARATOR.match(text, line.start())),
            line[0].startswith(_OPENS),
        )
        for line in LINE.finditer(text)
    ]
    kept = {*_without_middle([*_ends_of_texts(lines)])}
    found: list[_FoldedRange | None] = []
    for is_kept, group in groupby(lines, key=kept.__contains__):
        part = [*group]
        found += (
            [*(_end_of_line(text, line) for line in part)] if is_kept else [_lines_left_out(part)]
        )
    return [fold for fold in found if fold is not None]


def _ends_of_texts(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yields the lines without those in the middle of long texts."""
    for separates, group in groupby(lines, key=lambda line: line.separates):
        part = [*group]
        is_long = not separates and len(part) > _LONG
        yield from [*part[:HEAD], *part[-_TAIL:]] if is_long else part


def _without_middle(lines: Sequence[_Line]) -> Sequence[_Line]:
    """Returns the lines without the messages in the middle, if there are too many."""
    if len(lines) <= FIRST + _LAST:
        return lines
    opening = [number for number, line in enumerate(lines) if line.opens]
    start = max((at for at in opening if 0 < at <= FIRST), default=FIRST)
    stop = min((at for at in opening if at >= len(lines) - _LAST), default=len(lines) - _LAST)
    return [*lines[:start], *lines[stop:]]


def _end_of_line(text: str, line: _Line) -> _FoldedRange | None:
    more = len(text[line.start : line.stop].rstrip("\n")) - COLUMNS
    if more <= COLUMNS // 4:  # the note itself takes some
        return None
    note = f"… {counted(more, 'more character')} (--full)\n"
    return _FoldedRange(line.start + COLUMNS, line.stop, note)


def _lines_left_out(lines: Sequence[_Line]) -> _FoldedRange:
    messages = sum(line.opens for line in lines)
    note = counted(len(lines), "more line")
    if messages:
        note = f"{counted(messages, 'more message')}, {note}"
    return _FoldedRange(lines[0].start, lines[-1].stop, f"… {note} (--full)\n")


if TYPE_CHECKING:
    from builder.build.inspection import InspectedConversation, Inspection
    from builder.qwen3.render import Spans


_WHOLE_FILE = "file"
"""The place and the name of a conversation that is its whole file."""


@command()
def inspect(
    file: str,
    index: int | None = None,
    full: bool = False,
    format: str | None = None,  # noqa: A002 - the option's name
    mapping: Path | None = None,
    suggest_mapping: bool = False,
    model: str | None = None,
    config: Path | None = None,
    settings: list[str] | None = None,
    tokenizer: str | None = None,
    chat_template: str | None = None,
    allow_eval: bool = False,
    *,
    output: Output,
) -> int:
    """Show the format of a file or folder, and one conversation as the model will see it."""
    keys = {"verify.model": model, "normalize.allow_eval": allow_eval}
    chosen = load_config(config, settings=settings or (), keys=keys)
    if suggest_mapping:
        mapping, file = _suggested(file, chosen, output)
    inspected = inspect_log(
        file,
        index=index,
        format=format,
        mapping=mapping,
        config=chosen,
        tokenizer=tokenizer,
        chat_template=chat_template,
    )
    if output.as_json:
        print_json(inspected.to_json())
        return 0
    if inspected.formats is not None:
        print_overview(file, inspected.formats, len(inspected.unknown))
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
    source, text = propose(log, config=config)
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
    return f": {words}" if words else ""


def _print_conversation(inspected: Inspection, shown: InspectedConversation, *, full: bool) -> None:
    name = f"conversation {shown.index}"
    if inspected.formats is not None:
        name += f" of {inspected.conversations:,} in this file, from 0 (--index N counts all files)"
    elif inspected.conversations > 1:
        name += f" of {inspected.conversations:,} (numbered from 0; --index N shows another)"
    # A file that is one record has no name for its conversation.
    names = [shown.record] if shown.record.endswith(shown.id) else [shown.id, shown.record]
    names = [one for one in names if one != _WHOLE_FILE]
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
        about = "about " if shown.verdict.token_counts else ""
        size = f"{about}{counted(shown.verdict.tokens, 'token')}{inferred}"
        if shown.samples > 1:
            size = f"{counted(shown.samples, 'sample')}; the last one has {size}"
        print(f"  {size}; trained text is marked\n")
        text = shown.verdict.text
        print(marked(text, shown.verdict.spans, () if full else _folds(text)))


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


def marked(text: str, spans: Spans, left_out: Sequence[_FoldedRange] = ()) -> str:
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
