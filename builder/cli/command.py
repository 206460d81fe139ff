"""Makes a command of a function: its options, its help, and the form of its output.

options.tsv has a row for each option: the parameter, the commands that have it, its flags (none:
those of its name; `-`: an argument), its value, the bounds of a number, its group and its help.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, wraps
from importlib import import_module
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.main import get_command

from builder.cli.help import HelpCommand, declared_options
from builder.problem import UsageError
from builder.sources.store import local_copy

_Function = Callable[..., int]
_FUNCTIONS: dict[str, tuple[_Function, dict[str, Any]]] = {}


@dataclass(frozen=True, slots=True)
class Output:
    """The form of the output: one JSON object (`--json`), errors only (`--quiet`), or words.

    `verbose` (`-v`): with every detail. `dataset` is the address of one in a store.
    """

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    dataset: str = ""

    @property
    def in_words(self) -> bool:
        """Returns whether results are printed for people."""
        return not self.as_json and not self.quiet


def command(**settings: Any) -> Callable[[_Function], _Function]:
    """Returns a decorator that registers a function as a command; its docstring is the help.

    Its parameters are declared in options.tsv; `output` becomes those of `Output` that it has.
    `settings` are those of `typer.Typer.command`.
    """

    def register(function: _Function) -> _Function:
        rows = declared_options(function.__name__)
        kinds = [name for name in ("as_json", "quiet", "verbose") if name in rows]

        @wraps(function)
        def run(**values: Any) -> int:
            output = Output(**{name: values.pop(name) for name in kinds})
            if output.quiet and (output.verbose or values.get("show_all")):
                raise UsageError("--quiet and --verbose: contradict each other")
            if "://" not in (written := str(values.get("dataset", ""))):
                return function(**values, output=output)
            with local_copy(written) as place:
                values["dataset"] = place
                return function(**values, output=replace(output, dataset=written))

        signature = inspect.signature(function, eval_str=True)
        own = [item for item in signature.parameters.values() if item.name != "output"]
        own += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool)
            for name in kinds
        ]
        declared = signature.replace(
            parameters=[
                item.replace(annotation=_declared(rows[item.name], item.annotation)) for item in own
            ]
        )
        setattr(run, "__signature__", declared)  # noqa: B010 - mypy knows no such attribute
        run.__annotations__ = {item.name: item.annotation for item in declared.parameters.values()}
        _FUNCTIONS[function.__name__] = (run, settings)
        return function

    return register


def _declared(row: Mapping[str, str], kind: Any) -> Any:
    """Returns the type of a parameter with what typer needs to know of it."""
    value = row["value"] or _choices(kind)
    if row["flags"] == "-":
        return Annotated[kind, typer.Argument(metavar=value, help=row["help"])]
    flags = row["flags"].split() or [f"--{row['option'].replace('_', '-')}"]
    least, _, most = row["bounds"].partition("..")
    bounds = {"min": least, "max": most}
    numbers: dict[str, Any] = {name: int(value) for name, value in bounds.items() if value}
    return Annotated[kind, typer.Option(*flags, metavar=value, help=row["help"], **numbers)]


def _choices(kind: Any) -> str | None:
    """Returns the choices of a Literal as the placeholder of its value; None for other types."""
    kinds = [kind, *get_args(kind)]
    return next(("|".join(get_args(one)) for one in kinds if get_origin(one) is Literal), None)


def function_of(name: str) -> _Function:
    """Returns the function of a command, with the declarations of all its options."""
    import_module(f"builder.cli.{_MODULES.get(name, name)}")
    return _FUNCTIONS[name][0]


@cache
def parser_of(name: str) -> Any:
    """Returns the click command of that name. typer takes some ms to make it."""
    run = function_of(name)
    single = typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    single.command(name, cls=HelpCommand, **_FUNCTIONS[name][1])(run)
    return get_command(single)


_MODULES = {"view": "report"}
"""{command: its module}, where they have different names."""
