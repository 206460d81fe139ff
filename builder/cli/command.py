"""Registers commands, with the options for the form of their output, which all of them have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from builder.cli import options
from builder.cli.help import HelpCommand
from builder.cli.output import Output
from builder.problem import UsageError

Command = Callable[..., int]


def command(
    app: typer.Typer, *, verbose: bool = False, **settings: Any
) -> Callable[[Command], Command]:
    """Returns a decorator that registers a function as a command; its docstring is the help.

    The parameter `output` of the function becomes the options `--json` and `--quiet`, and
    `--verbose` if that is true. `settings` are those of `app.command`.
    """
    kinds: dict[str, Any] = {"as_json": options.AsJson, "quiet": options.Quiet}
    if verbose:
        kinds["verbose"] = options.Verbose

    def register(function: Command) -> Command:
        @wraps(function)
        def run(**values: Any) -> int:
            output = Output(**{name: values.pop(name) for name in kinds})
            if output.quiet and (output.verbose or values.get("show_all")):
                raise UsageError("--quiet and --verbose: contradict each other")
            return function(**values, output=output)

        signature = inspect.signature(function, eval_str=True)
        own = [item for item in signature.parameters.values() if item.name != "output"]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
            for name, kind in kinds.items()
        ]
        declared = signature.replace(parameters=[*own, *added])
        setattr(run, "__signature__", declared)  # noqa: B010 - mypy knows no such attribute
        run.__annotations__ = {item.name: item.annotation for item in declared.parameters.values()}
        app.command(cls=HelpCommand, **settings)(run)
        return function

    return register
