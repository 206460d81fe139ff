"""Implements `builder formats`: lists the readers, or those that claim a file."""

from __future__ import annotations

from builder.cli.output import Output
from builder.cli.terminal import aligned, escaped, print_json, warn
from builder.readers import Reader, readers, recognise
from builder.readers.discovery import find_sources
from builder.sources.copies import local_copy
from builder.sources.source import Source


def list_formats(*, output: Output) -> int:
    """Prints the readers: the format of each, its evidence, and the version it was checked with."""
    found = readers()
    if output.as_json:
        print_json(
            {
                name: {
                    "summary": reader.summary,
                    "evidence": [*reader.evidence],
                    "checked": reader.checked,
                }
                for name, reader in found.items()
            }
        )
    elif not output.quiet:
        width = max(map(len, found), default=0)
        for name, reader in found.items():
            print(f"{name:{width}}  {reader.summary}{_basis(reader)}")
    return 0


def _basis(reader: Reader) -> str:
    """Returns evidence and version as in " [source, files; checked with 1.0]", or ""."""
    checked = f"checked with {reader.checked}" if reader.checked else ""
    text = "; ".join(filter(None, (", ".join(reader.evidence), checked)))
    return f" [{text}]" if text else ""


def explain(path: str, *, output: Output) -> int:
    """Prints which readers claim each source of a path, and why. Raises UsageError."""
    found: dict[str, dict[str, str]] = {}
    for source in find_sources(path):
        if isinstance(source, Source):
            with local_copy(source) as copy:
                found[source.name] = dict(recognise(copy))
        else:
            warn(f"{source.where}: {source.code}: {source.detail}")
    if output.as_json:
        print_json(found)
    elif not output.quiet:
        for name, claims in found.items():
            text = "; ".join(f"{reader}: {why}" for reader, why in claims.items())
            print(escaped(f"{name}: {text or 'no reader recognises it'}"))
    return 0


def print_overview(name: str, formats: dict[str, int], unknown: int) -> None:
    """Prints how many files of a folder each reader recognises, and how many none does."""
    print(escaped(f"{name}: {sum(formats.values()) + unknown:,} files"))
    rows = [(reader, f"{count:,}") for reader, count in formats.items()]
    rows += [("(no reader)", f"{unknown:,}")] if unknown else []
    for line in aligned(rows) if rows else ():
        print(f"  {line}")
