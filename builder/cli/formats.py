"""Implements `builder formats`: lists the readers, or those that claim a file."""

from __future__ import annotations

from collections.abc import Mapping

from builder.api import available_formats, recognise_all
from builder.cli.command import Output, command
from builder.cli.terminal import aligned, escaped, print_json, print_wrapped, warn
from builder.problem import Problem
from builder.readers import Reader


@command()
def formats(explain: str | None = None, *, output: Output) -> int:
    """List the log formats that can be read."""
    if explain is not None:
        return _explain(explain, output=output)
    readers = available_formats()
    if output.as_json:
        print_json(
            {
                name: {
                    "summary": reader.summary,
                    "evidence": [*reader.evidence],
                    "checked": reader.checked,
                }
                for name, reader in readers.items()
            }
        )
    elif not output.quiet:
        width = max(map(len, readers), default=0)
        for name, reader in readers.items():
            text = f"{reader.summary}{_basis(reader)}"
            print_wrapped(f"{name:{width}}  ", text, " " * (width + 2))
    return 0


def _basis(reader: Reader) -> str:
    """Returns evidence and version as in " [source, files; checked with 1.0]", or ""."""
    checked = f"checked with {reader.checked}" if reader.checked else ""
    text = "; ".join(filter(None, (", ".join(reader.evidence), checked)))
    return f" [{text}]" if text else ""


def _explain(path: str, *, output: Output) -> int:
    """Prints which readers claim each source of a path, and why. Raises UsageError."""
    claims_of: dict[str, dict[str, str]] = {}
    for item in recognise_all(path):
        if isinstance(item, Problem):
            warn(f"{item.where}: {item.code}: {item.detail}")
        else:
            claims_of[item[0]] = item[1]
    if output.as_json:
        print_json(claims_of)
    elif not output.quiet:
        for name, claims in claims_of.items():
            text = "; ".join(f"{reader}: {why}" for reader, why in claims.items())
            print(escaped(f"{name}: {text or 'no reader recognises it'}"))
        if not claims_of:
            print(escaped(f"{path}: no file that a reader could recognise"))
    return 0


def print_overview(name: str, formats: Mapping[str, int], unknown: int) -> None:
    """Prints how many files of a folder each reader recognises, and how many none does."""
    print(escaped(f"{name}: {sum(formats.values()) + unknown:,} files"))
    rows = [(reader, f"{count:,}") for reader, count in formats.items()]
    rows += [("(no reader)", f"{unknown:,}")] if unknown else []
    for line in aligned(rows) if rows else ():
        print(f"  {line}")
