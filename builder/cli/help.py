"""Formats the help of the commands: options in groups, in one style, with examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from typer.core import TyperCommand, TyperGroup

from builder.cli.examples import EXAMPLES

_MANY = 13
"""Options of a command from which they are shown in groups."""

_GROUPS: Mapping[str, str] = {
    "Options": "",
    "What is read": "--format --mapping --suggest-mapping --tools --system --allow-eval --index",
    "Configuration": "--config --preset --set --review",
    "Model": "--tokenizer --chat-template --mode --unit",
    "Checks": "--schema --parity --as-loaded --masks --witness --witness-share --replay",
    "How it runs": "--workers --engine --ray-address --fresh --strict",
    "What is printed": "--full --json --quiet --verbose --help",
}
"""{title: options}, in the order shown; an option that is in no group is one of the first."""
_GROUP_OF = {option: title for title, options in _GROUPS.items() for option in options.split()}

_COMMANDS: Mapping[str, Sequence[str]] = {
    "Make a dataset from logs": ("build", "inspect", "formats", "merge"),
    "Look at it and check it": ("view", "report", "verify", "audit", "diff"),
    "Use it": ("export", "push"),
    "Keep logs": ("collect", "capture"),
}
"""{title: commands}, in the order shown."""


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
                formatter.write_dl([(_name(item), _help(item)) for item in arguments])
        for title, group in _grouped(options):
            with formatter.section(title):
                formatter.write_dl([(_declaration(item), _help(item)) for item in group])
        program = ctx.find_root().info_name
        with formatter.section("Examples"):
            for line, purpose in EXAMPLES[str(self.name)]:
                formatter.write(f"  {line.replace('builder', program, 1)}\n")
                formatter.write(f"      {purpose}\n")


class HelpGroup(TyperGroup):
    """The program, whose help has groups of commands, and what to try first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands by purpose, the options, and what comes next."""
        width = max(map(len, self.commands))
        for title, names in _COMMANDS.items():
            with formatter.section(title):
                rows = [(name.ljust(width), str(self.commands[name].help)) for name in names]
                formatter.write_dl(rows)
        with formatter.section("Options"):
            formatter.write_dl([(_declaration(item), _help(item)) for item in self.get_params(ctx)])
        program = ctx.find_root().info_name
        with formatter.section("Start here"):
            for line, purpose in EXAMPLES[""]:
                formatter.write(f"  {line.replace('builder', program, 1):36}  # {purpose}\n")
        formatter.write_paragraph()
        formatter.write_text(f"`{program} COMMAND -h` shows the options of a command and examples.")


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


def _declaration(option: Any) -> str:
    """Returns the names of an option, the short one first, and the placeholder of its value."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        names += f" / {', '.join(option.secondary_opts)}"
    takes_value = not getattr(option, "is_flag", False)
    return f"{names} {option.metavar}" if takes_value else names


def _help(parameter: Any) -> str:
    """Returns the help of a parameter, with whether it is required, and its default."""
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
