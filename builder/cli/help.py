"""Formats the help of the commands: options in groups, in one style, with examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from typer.core import TyperCommand

from builder.cli.examples import EXAMPLES

_MANY = 13
"""Options of a command from which they are shown in groups."""

_GROUPS: Mapping[str, str] = {
    "Options": "",
    "What is read": "--format --mapping --suggest-mapping --tools --system --allow-eval --index",
    "Configuration": "--config --preset --set --review --plan",
    "Model": "--for --tokenizer --chat-template --mode --unit",
    "Checks": "--require --as-loaded --masks",
    "How it runs": "--workers --engine --fresh --strict",
    "What is printed": "--full --json --quiet --verbose --help",
}
"""{title: options}, in the order shown; an option that is in no group is one of the first."""
_GROUP_OF = {option: title for title, options in _GROUPS.items() for option in options.split()}

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
        for title, group in _grouped(options):
            with formatter.section(title):
                formatter.write_dl([(declaration(item), help_of(item)) for item in group])
        program = ctx.find_root().info_name
        with formatter.section("Examples"):
            for line, purpose in EXAMPLES[str(self.name)]:
                formatter.write(f"  {line.replace('builder', program, 1)}\n")
                formatter.write(f"      {purpose}\n")


def _grouped(options: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    if len(options) < _MANY:
        yield "Options", [*options]
        return
    titles = [*_GROUPS]

    def place(option: Any) -> int:
        found = (titles.index(_GROUP_OF[name]) for name in option.opts if name in _GROUP_OF)
        return next(found, 0)

    for at, group in groupby(sorted(options, key=place), key=place):
        yield titles[at], [*group]


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
