"""Formats text for a terminal: escaped log text, colours, counts and aligned tables."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from builder.api.progress import Progress
from builder.codes import meaning, meaning_of_change
from builder.ledger import ranked
from builder.text import counted, escape_char

# -- shows the progress of a build on a terminal: a bar, or a line for phases without a total ------

_PHASES = ("read", "write", "audit", "report")
"""The phases of a build, in the order in which `builder.build.build` reports them."""

_TITLES = {
    "read": "reading and verifying",
    "write": "choosing and writing samples",
    "audit": "auditing, loading again",
    "report": "writing card and report",
}


class BuildProgress:
    """Shows the phase of a build, its progress, and about how long it will still take."""

    def __init__(self, *, visible: bool) -> None:
        self._visible = visible and sys.stderr.isatty()
        self._bar: Any = None
        self._phase = ""

    def __call__(self, progress: Progress) -> None:
        """Shows a step of the build."""
        if not self._visible:
            return
        is_reading = progress.phase == "read"
        if progress.phase != self._phase:
            self._open(progress, is_reading=is_reading)
        if is_reading:
            counts = f"{progress.samples} samples, {progress.rejects} rejects"
            self._bar.set_postfix_str(counts, refresh=False)
        self._bar.update((progress.bytes if is_reading else progress.done) - self._bar.n)

    def close(self) -> None:
        """Removes the bar from the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _open(self, progress: Progress, *, is_reading: bool) -> None:
        from tqdm import tqdm  # noqa: PLC0415 - only on a terminal

        self.close()
        self._phase = progress.phase
        total = progress.total_bytes if is_reading else progress.total
        known = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
        self._bar = tqdm(
            desc=f"[{_PHASES.index(self._phase) + 1}/{len(_PHASES)}] {_TITLES[self._phase]}",
            total=total,
            file=sys.stderr,
            leave=False,
            bar_format=known if total else "{desc} [{elapsed}]",
            mininterval=0.2,
            unit="B" if is_reading else " samples",
            unit_scale=is_reading,
        )


_WIDTH = 110
"""Characters of a line of text, unless the terminal is narrower."""
_CODE = re.compile("`([^`]*)`")

INTERRUPTED = 130
"""The exit code after Ctrl-C or SIGTERM."""

NO_SAMPLES = "the dataset contains no samples"
"""The message of commands that check a dataset; their exit code is then 1."""

TRAINED = "\x1b[32m"
RESET = "\x1b[0m"
BOLD = "\x1b[1m"
DIM = "\x1b[2m"
GOOD = "\x1b[32m"
WARNING = "\x1b[33m"
BAD = "\x1b[31m"


def escaped(text: str) -> str:
    r"""Returns the text with unprintable characters as escapes, except newlines and tabs.

    Control characters, direction marks and lone surrogates become `\x1b`, `\u202e` and so on.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else escape_char(char) for char in text
    )


def warn(text: str) -> None:
    """Prints a message on standard error, escaped and with the name of the program."""
    print(escaped(f"builder: {text}"), file=sys.stderr)


def print_json(value: object) -> None:
    """Prints the JSON object of `--json` on one line, in ASCII."""
    sys.stdout.write(json.dumps(value) + "\n")


def colours() -> bool:
    """Returns whether standard output is a terminal with colours, and NO_COLOR is not set."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not is_plain


def painted(text: str, style: str) -> str:
    """Returns the text with the codes of a style if standard output supports colours."""
    return f"{style}{text}{RESET}" if text and colours() else text


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the rows as lines: the first column left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines


def conversion_lines(
    forms: Mapping[str, int], rows: int, changes: Mapping[str, int]
) -> Iterator[str]:
    """Yields a line for each form that rows were converted from, and one with the changes."""
    for form, count in sorted(forms.items()):
        verb = "was" if count == 1 else "were"
        yield f"{count:,} of {counted(rows, 'row')} {verb} read as {form}, converted"
    if changes:
        yield "  the conversion altered:"
        for code, count in sorted(changes.items()):
            words = meaning_of_change(code).replace("`", "")
            yield f"    {code} {count:,}{f': {words}' if words else ''}"


def width() -> int:
    """Returns the characters of a line: at most _WIDTH, and those of the terminal."""
    columns = get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    return min(max(columns, 40), _WIDTH)


def print_wrapped(begin: str, text: str, indent: str, style: str = "") -> None:
    """Prints a text in lines that fit the terminal, each in the style."""
    for line in wrapped(begin, text, indent, style):
        print(line)


def wrapped(begin: str, text: str, indent: str, style: str = "") -> Iterator[str]:
    """Yields a text in lines that fit the terminal, each in the style.

    Code between backticks is shown without them and stays on one line, to be pasted.
    """
    whole = _CODE.sub(lambda code: code[1].replace(" ", "\0"), escaped(text))
    lines = wrap(whole, width(), initial_indent=begin, subsequent_indent=indent,
                 break_on_hyphens=False, break_long_words=False)  # fmt: skip
    for line in lines:
        shown = line.replace("\0", " ")
        yield painted(shown, style) if style else shown


# -- groups faults by their code, so that many of a kind are a few lines ---------------------------

EXAMPLES = 2
"""Examples of each code that are shown."""


class Grouped:
    """Counts faults by code and keeps the first examples of each; `meaning` explains a code."""

    def __init__(self, meaning: Callable[[str], str] = meaning) -> None:
        self.meaning = meaning
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def add(self, code: str, example: str) -> None:
        """Counts a fault; `example` shows it, in one or more lines."""
        self.counts[code] += 1
        examples = self._examples.setdefault(code, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    def lines(self, noun: str, more: str) -> Iterator[str]:
        """Yields the lines to print; `more` says how to see all that have a code."""
        for code, count in ranked(self.counts):
            yield counts_line(code, count, noun, self.meaning)
            for example in self._examples[code]:
                yield from (f"  {line}" for line in example.splitlines())
            if left := count - len(self._examples[code]):
                yield f"  … {left:,} more{f' ({more})' if more else ''}"


def counts_line(code: str, count: int, noun: str, meaning: Callable[[str], str] = meaning) -> str:
    """Returns a code with its number and its meaning in words."""
    words = meaning(code).replace("`", "")
    return f"{code}: {counted(count, noun)}{f' ({words})' if words else ''}"
