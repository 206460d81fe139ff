"""Writes docs/cli.md from the declarations of the commands; --check: fails if it differs."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from builder.cli.app import app

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
HEAD = """# Commands

Made by `scripts/cli_docs.py` from the code. `builder COMMAND -h` prints the same.

Exit codes: 0 done; 1 the data failed (nothing could be built, a sample is not proven, a gate fired,
a push did not arrive); 2 a mistake in options, configuration or paths, in one line; 130
interrupted: the same command continues. With `--json` one JSON object is printed on standard
output, for mistakes too (`{"error", "exit_code"}`); messages and progress go to standard error.

`builder --version` prints the version.
"""


def parameters(command: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """(name, type, its declaration to typer, default) of each parameter of a command."""
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind, info, *_ = get_args(hints[name])
        yield name, kind, info, parameter.default


def values(kind: Any, info: Any) -> str:
    """What an option takes: its choices, or the word that stands for its value."""
    kinds = [item for item in (get_args(kind) or (kind,)) if item is not type(None)]
    if get_origin(kind) is Literal:
        return " \\| ".join(f"`{item}`" for item in get_args(kind))
    if kinds and get_origin(kinds[0]) is Literal:
        return " \\| ".join(f"`{item}`" for item in get_args(kinds[0]))
    if info.metavar:
        return str(info.metavar)
    names = {bool: "", int: "number", float: "number", Path: "path"}
    return names.get(kinds[0], "text")


def row(name: str, kind: Any, info: Any, default: Any) -> str:
    first = [info.default] if isinstance(info.default, str) else []  # as Annotated has them
    written = [*first, *(info.param_decls or ())] or [f"--{name.replace('_', '-')}"]
    names = ", ".join(f"`{item}`" for part in written for item in part.split("/"))
    plain = "" if default in (None, False, True, inspect.Parameter.empty) else f"`{default}`"
    repeated = " Repeatable." if "list" in str(kind) else ""
    return f"| {names} | {values(kind, info)} | {plain} | {info.help}{repeated} |\n"


def section(command: Any) -> str:
    found = list(parameters(command))
    arguments = [item for item in found if isinstance(item[2], ArgumentInfo)]
    options = [item for item in found if isinstance(item[2], OptionInfo)]
    labels = [info.metavar or name.upper() for name, _, info, _ in arguments]
    usage = " ".join(["builder", command.__name__, *labels, "[OPTIONS]"])
    lines = [f"\n## builder {command.__name__}\n\n{inspect.getdoc(command)}\n\n    {usage}\n\n"]
    lines += [
        f"- `{label}`: {info.help}\n"
        for label, (_, _, info, _) in zip(labels, arguments, strict=True)
    ]
    lines.append("\n| option | value | default | |\n|---|---|---|---|\n")
    lines += [row(*item) for item in options]
    return "".join(lines)


def page() -> str:
    commands = [item.callback for item in app.registered_commands if item.callback]
    return HEAD + "".join(map(section, commands))


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        sys.exit(0 if same else "docs/cli.md is out of date: run scripts/cli_docs.py")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
