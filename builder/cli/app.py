"""Declares the program; its commands are imported when they are run, so that `--help` is fast."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from builder.cli.command import parser_of
from builder.cli.help import FIRST, SUMMARIES, declaration, examples_of, help_of
from builder.cli.terminal import warn
from builder.distribution import DISTRIBUTION


def _print_version() -> None:
    """Prints the version, and on standard error each conflicting distribution."""
    from importlib import metadata

    try:
        version = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        version = "(not installed)"
    print(f"{DISTRIBUTION} {version}")
    for name in others():
        warn(
            f"the distribution {name!r} also installs a module `builder`, and one hides the other:"
            " install each in an environment of its own"
        )


def others() -> list[str]:
    """Returns other installed distributions with a top-level module `builder`."""
    from importlib import metadata

    distributions = metadata.packages_distributions().get("builder", [])
    return sorted({name for name in distributions if name.replace("_", "-") != DISTRIBUTION})


class HelpGroup(TyperGroup):
    """The program, whose help has the commands, most used first, and what to try first."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of the commands."""
        return [*SUMMARIES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns the command, whose module is imported now; None if there is none."""
        return parser_of(cmd_name) if cmd_name in SUMMARIES else None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands, the options, and what comes first."""
        rows = [*SUMMARIES.items()]
        width = max(map(len, SUMMARIES))
        for title, part in (("Commands", rows[:FIRST]), ("More", rows[FIRST:])):
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in part])
        with formatter.section("Options"):
            formatter.write_dl(
                [(declaration(item), help_of(item)) for item in self.get_params(ctx)]
            )
        program = ctx.find_root().info_name
        with formatter.section("Start here"):
            for line, purpose in examples_of("-"):
                formatter.write(f"  {line.replace('builder', program, 1):32}  # {purpose}\n")
        formatter.write_paragraph()
        formatter.write_text(f"`{program} COMMAND -h` shows the options of a command and examples.")


COMMANDS = tuple(SUMMARIES)

app = typer.Typer(
    name="builder",
    cls=HelpGroup,
    help="Turn raw agent logs into fine-tuning data for Qwen models, verified byte for byte.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Turn raw agent logs into fine-tuning data for Qwen models, verified byte for byte."""
    if version:
        _print_version()
        raise typer.Exit
