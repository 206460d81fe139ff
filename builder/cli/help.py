"""Formats the help of the commands: options in groups, in one style, with examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from typer.core import TyperCommand

_MANY = 13
"""Options of a command from which they are shown in groups."""

_GROUPS = (
    *("", "What is read", "Configuration", "Model", "Checks", "How it runs", "What is printed"),
)
"""The groups in the order shown."""


@cache
def _rows(name: str) -> Sequence[Mapping[str, str]]:
    text = files("builder.cli").joinpath(name).read_text(encoding="utf-8")
    head, *lines = (line.split("\t") for line in text.splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


def declared_options(command: str) -> Mapping[str, Mapping[str, str]]:
    """Returns {parameter: its row of options.tsv} of a command."""
    rows = _rows("options.tsv")
    return {row["option"]: row for row in rows if {command, "*"} & {*row["commands"].split()}}


def flags_of(command: str) -> set[str]:
    """Returns the names of the options of a command."""
    rows = declared_options(command).values()
    words = (row["flags"] or f"--{row['option'].replace('_', '-')}" for row in rows)
    return {flag for names in words for flag in re.findall("-[-a-z]+", names)}


def examples_of(command: str) -> Iterator[tuple[str, str]]:
    """Yields (line, purpose) of each example of a command; "-": of the program."""
    yield from (
        (row["line"], row["purpose"]) for row in _rows("examples.tsv") if row["command"] == command
    )


SUMMARIES: Mapping[str, str] = {
    "build": "logs → dataset",
    "view": "read, accept, reject",
    "export": "rows for a trainer",
    "verify": "check any dataset",
    "push": "publish on the Hub",
    "capture": "what an agent sends",
    "collect": "keep logs that agents delete",
    "audit": "secrets, duplicates, contamination",
    "report": "one page about a dataset",
    "inspect": "how a log is read",
    "merge": "one dataset of several",
    "diff": "what differs between two",
    "formats": "the formats that are read",
}
"""{command: what it does}, the most used first."""
FIRST = 7
"""How many commands stand above "more"."""


class HelpCommand(TyperCommand):
    """A command whose help has groups of options, and examples."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the parts of the usage line after the command."""
        options = [item for item in self.params if item.param_type_name == "option"]
        required = [
            f"{min(item.opts, key=len)} {item.metavar}" for item in options if item.required
        ]
        names = [_argument(item) for item in self.params if item.param_type_name == "argument"]
        return ["[OPTIONS]", *required, *names]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments, options and examples."""
        shown = [item for item in self.get_params(ctx) if not getattr(item, "hidden", False)]
        arguments = [item for item in shown if item.param_type_name == "argument"]
        options = [item for item in shown if item.param_type_name == "option"]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(_name(item), help_of(item)) for item in arguments])
        for title, group in _grouped(str(self.name), options):
            with formatter.section(title):
                formatter.write_dl([(declaration(item), help_of(item)) for item in group])
        program = ctx.find_root().info_name
        with formatter.section("Examples"):
            for line, purpose in examples_of(str(self.name)):
                formatter.write(f"  {line.replace('builder', program, 1)}\n")
                formatter.write(f"      {purpose}\n")


def _grouped(command: str, options: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    if len(options) < _MANY:
        yield "Options", [*options]
        return
    rows = declared_options(command)

    def place(option: Any) -> int:
        row = rows.get(option.name)  # `--help` has none
        return _GROUPS.index(row["group"] if row is not None else "What is printed")

    for at, group in groupby(sorted(options, key=place), key=place):
        yield _GROUPS[at] or "Options", [*group]


def _argument(parameter: Any) -> str:
    name = _name(parameter)
    return name if parameter.required else f"[{name}]"


def _name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def declaration(option: Any) -> str:
    """Returns the names of an option, the short one first, and the placeholder of its value."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        names += f" / {', '.join(option.secondary_opts)}"
    takes_value = not getattr(option, "is_flag", False)
    return f"{names} {option.metavar}" if takes_value else names


def help_of(parameter: Any) -> str:
    """Returns the help of an option, with whether it is required, and its default."""
    notes = []
    if parameter.param_type_name == "option":
        default = parameter.default
        if parameter.required:
            notes.append("Required.")
        elif not getattr(parameter, "is_flag", False) and default not in (None, [], ()):
            notes.append(f"Default: {default}.")
        if parameter.multiple:
            notes.append("Repeatable.")
    return " ".join([str(parameter.help or ""), *notes])
