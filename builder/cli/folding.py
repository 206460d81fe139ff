"""Shortens a rendered conversation for a terminal: long texts, long lines, messages in between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from builder.text import counted

LONG, HEAD, TAIL = 12, 8, 2
"""A text of more lines than `LONG` is shown by its first `HEAD` and its last `TAIL`."""
COLUMNS = 320
"""Characters of a line that are shown."""
FIRST, LAST = 100, 30
"""Lines shown before and after the messages that are left out in between."""

SEPARATOR = re.compile(r"<\|[^|<>]*\|>|</?(?:tools|tool_call|tool_response|think)>$", re.MULTILINE)
"""Begins a line between texts: a control token, or a tag of the template."""
OPENS = ("<|im_start|>", "<|start_of_role|>")
LINE = re.compile(r"[^\n]*\n|[^\n]+")


class FoldedRange(NamedTuple):
    """A range of a text that is left out, and the note in its place."""

    start: int
    stop: int
    note: str


class _Line(NamedTuple):
    start: int
    stop: int  # after its line break
    separates: bool
    opens: bool


def folds(text: str) -> list[FoldedRange]:
    """Returns the ranges of a rendered conversation to leave out, in order."""
    lines = [
        _Line(
            line.start(),
            line.end(),
            bool(SEPARATOR.match(text, line.start())),
            line[0].startswith(OPENS),
        )
        for line in LINE.finditer(text)
    ]
    kept = {*_without_middle([*_ends_of_texts(lines)])}
    found: list[FoldedRange | None] = []
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
        is_long = not separates and len(part) > LONG
        yield from [*part[:HEAD], *part[-TAIL:]] if is_long else part


def _without_middle(lines: Sequence[_Line]) -> Sequence[_Line]:
    """Returns the lines without the messages in the middle, if there are too many."""
    if len(lines) <= FIRST + LAST:
        return lines
    opening = [number for number, line in enumerate(lines) if line.opens]
    start = max((at for at in opening if 0 < at <= FIRST), default=FIRST)
    stop = min((at for at in opening if at >= len(lines) - LAST), default=len(lines) - LAST)
    return [*lines[:start], *lines[stop:]]


def _end_of_line(text: str, line: _Line) -> FoldedRange | None:
    more = len(text[line.start : line.stop].rstrip("\n")) - COLUMNS
    if more <= COLUMNS // 4:  # the note itself takes some
        return None
    note = f"… {counted(more, 'more character')} (--full)\n"
    return FoldedRange(line.start + COLUMNS, line.stop, note)


def _lines_left_out(lines: Sequence[_Line]) -> FoldedRange:
    messages = sum(line.opens for line in lines)
    note = counted(len(lines), "more line")
    if messages:
        note = f"{counted(messages, 'more message')}, {note}"
    return FoldedRange(lines[0].start, lines[-1].stop, f"… {note} (--full)\n")
