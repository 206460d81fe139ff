"""Runs a command line: prints usage errors in a line and returns the exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from functools import cache
from typing import Any

import typer
from typer.main import get_command

from builder.cli.app import COMMANDS, app
from builder.cli.help import flags_of
from builder.cli.terminal import INTERRUPTED, print_json, warn
from builder.credentials import hide
from builder.problem import BuilderError, OptionError, UsageError, nearest

_MISTAKE = 2
"""The exit code for a usage error: a bad option, configuration or path."""

_OPTIONS = {
    ("capture", "port"): "--serve",
    ("capture", "out"): "-o",
    **{(command, "model"): "--for" for command in COMMANDS},
}
"""{(command, parameter of the API): its option}, where they differ in more than the hyphens."""

_SELECT = "`build` and `merge` do it, with keys of the configuration (docs/select.md)"
_NO_COMMANDS = {
    **dict.fromkeys(("select", "filter", "split", "sample"), _SELECT),
    "review": "`builder view DATASET` takes decisions, and `build --review FILE` applies them",
    "help": "`builder -h` and `builder COMMAND -h` print help",
    "version": "`builder --version` prints it",
    **dict.fromkeys(("convert", "read", "import"), "`builder build LOGS -o FOLDER` reads logs"),
    **dict.fromkeys(
        ("stats", "check", "lint"), "`builder audit DATASET` and `builder verify DATASET`"
    ),
    "train": "`builder export DATASET --to TRAINER -o FOLDER` writes its rows and configuration",
    **dict.fromkeys(("publish", "upload"), "`builder push DATASET OWNER/NAME` publishes a dataset"),
}
"""{word that is no command: what does it}."""


_RESUMING = ("build", "collect", "push")
"""Commands that keep finished work when they are interrupted."""

_OFF = {"public": "--private"}
"""{parameter: the option for False}"""


def run(arguments: list[str]) -> int:
    """Runs a command; returns its exit code.

    Prints a line for an exception that the data or the user caused; others are bugs and propagate.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # log text may not be encodable for the terminal
    try:
        if twice := _given_twice(arguments):
            raise UsageError(twice)
        result = commands()(arguments or ["--help"], standalone_mode=False)
        sys.stdout.flush()  # a full disk is reported here, not by the interpreter at its end
        if not arguments:
            return _MISTAKE  # nothing was done, as the shell of a script should see
    except OptionError as error:
        usual = f"--{error.option.replace('_', '-')}"
        name = _OPTIONS.get((arguments[0], error.option), usual)
        return refused(f"{name}{error.text}", arguments)
    except UsageError as error:
        return refused(error.written(_option), arguments)
    except BuilderError as error:
        warn(str(error))
        return 1
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED  # some versions of typer return it instead of raising
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        if error.errno == errno.ENOSPC and error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left is not written at the end
            warn(f"standard output: {error.strerror}")
            return 1
        if error.errno != errno.ENAMETOOLONG:
            raise
        # No existing file can have such a name, so it was given by the user.
        return refused(f"{str(error.filename)[:80]!r}…: {error.strerror}", arguments)
    except Exception as error:
        # Versions of typer bundle click or import it; only this method identifies a usage error.
        if not hasattr(error, "format_message"):
            raise
        return refused(_usage_message(error), arguments)
    if result == INTERRUPTED:
        resumes = "; finished work is kept, the same command resumes"
        warn(f"interrupted{resumes if arguments[:1] and arguments[0] in _RESUMING else ''}")
    return result if isinstance(result, int) else 0


def _option(name: str, value: object) -> str:
    usual = f"--{name.replace('_', '-')}"
    if value is False:
        return _OFF.get(name, f"--no-{usual.removeprefix('--')}")
    return usual if value is True else f"{usual} {value}"


@cache
def commands() -> Any:
    """Returns the click group of all commands. typer takes 18 ms to make it, at each call."""
    return get_command(app)


def _given_twice(arguments: list[str]) -> str | None:
    """Returns what is wrong with an option that has two values or both of its states, or None.

    The parser would silently use the last.
    """
    command = commands().get_command(None, arguments[0]) if arguments else None
    seen: dict[str, str] = {}
    single: set[str] = set()
    for argument in arguments[: arguments.index("--")] if "--" in arguments else arguments:
        given = argument.partition("=")[0]
        for option in command.params if command is not None else ():
            if option.multiple or given not in (*option.opts, *option.secondary_opts):
                continue
            before = seen.setdefault(option.name, given)
            if not getattr(option, "is_flag", False):
                if option.name in single:
                    return f"{given}: is given twice"
                single.add(option.name)
            elif (before in option.opts) != (given in option.opts):
                return f"{before} and {given}: contradict each other"
    return None


def refused(message: str, arguments: list[str]) -> int:
    """Prints a usage error, with `--json` also as an object; returns the exit code."""
    message = hide(message)
    for line in message.splitlines():
        warn(line)
    if "--json" in arguments:
        print_json({"error": message, "exit_code": _MISTAKE})
    return _MISTAKE


def _setting(option: str) -> str:
    """Returns how `build` is given what is no option of it, but a key of the configuration."""
    if option == "--model":
        return "--for MODEL"
    from builder.config import Config
    from builder.options import places_of_keys

    path = places_of_keys(Config).get(option.lstrip("-").replace("-", "_"))
    return f"--set {path}=VALUE" if path else ""


def _usage_message(error: Any) -> str:
    """Rewords a usage error of typer, with the nearest valid name."""
    name = getattr(error, "option_name", None)
    context = getattr(error, "ctx", None)
    if isinstance(name, str) and context is not None:
        options = [option for item in context.command.params for option in item.opts]
        if context.info_name == "build" and (instead := _setting(name)):
            return f"no such option {name!r}, did you mean `{instead}`?"
        others = [other for other in COMMANDS if name in flags_of(other)]
        if others and context.info_name in COMMANDS:
            return f"{context.info_name} has no option {name!r}: it is one of {', '.join(others)}"
        return f"no such option {name!r}{nearest(name, [*options, '--help'])}"
    text = str(error.format_message()).rstrip(".")
    param = getattr(error, "param", None)
    if text.startswith("Missing option") and param is not None and context is not None:
        option = f"{min(param.opts, key=len)} {param.metavar or str(param.name).upper()}"
        return f"{context.info_name}: {option} is missing: {str(param.help).rstrip('.')}"
    if text.startswith("Missing argument") and param is not None and context is not None:
        name = param.metavar or str(param.name).upper()
        return f"{context.info_name}: {name} is missing: {str(param.help).rstrip('.')}"
    if extra := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", text):
        where = f"builder {context.info_name} -h" if context is not None else "builder -h"
        return f"{extra[1]}: not expected here (`{where}` shows what is)"
    if param is not None and param.metavar == "SHARE":
        return f"{param.opts[0]}: must be a number between 0 and 1"
    if number := re.search(
        r"'(--[\w-]+)'.*(?:valid integer|(greater|less) than or equal to (\d+))", text
    ):
        bound = {"greater": " of at least ", "less": " of at most "}.get(number[2] or "", "")
        return f"{number[1]}: must be a whole number{bound}{number[3] or ''}"
    if match := re.match(r"No such command '(.*?)'", text):
        if match[1] in _NO_COMMANDS:
            return f"no such command {match[1]!r}: {_NO_COMMANDS[match[1]]}"
        return f"no such command {match[1]!r}{nearest(match[1], COMMANDS)}"
    if match := re.fullmatch(
        r"Invalid value for (.*): (?:Value error, )?'(.*)' is not one of (.*)", text
    ):
        choices = re.findall(r"'([^']*)'", match[3])
        name = match[1].strip("'").partition(" ")[0]
        return f"{name} {match[2]!r}: no such value{nearest(match[2], choices)}"
    return text.replace("Value error, ", "")
