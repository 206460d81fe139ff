"""Implements `builder build --plan`: what three settings make of some of the logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from builder.api import build_dataset, find_sources, recognise
from builder.audit.counts import Counts
from builder.cli.command import Output
from builder.cli.terminal import aligned, print_json
from builder.config import Config, InputSection
from builder.config.sections import Keys
from builder.paths import UserPath
from builder.problem import Problem, UsageError
from builder.text import counted

FILES = 20
"""Files that are built, evenly spaced."""

_WHOLE = {"normalize.unit": "conversation"}
SETTINGS: Sequence[tuple[str, Keys]] = (
    ("whole sessions", _WHOLE),
    ("windows of 32,768", {**_WHOLE, "limits.max_tokens": 32768, "limits.too_long": "split"}),
    ("one sample a question", {"normalize.unit": "query"}),
)
"""The name of each setting, and its keys."""


def print_plan(config: Config, workers: int, output: Output) -> int:
    """Builds some of the files with each setting in a temporary folder, and prints the results.

    Raises UsageError if no sample can be built from them.
    """
    files = [*_files(config)]
    if not files:
        raise UsageError("--plan: the inputs contain no file that a reader recognises")
    count = min(FILES, len(files))
    inputs = tuple(files[at * len(files) // count] for at in range(count))
    rows = [*_rows(replace(config, inputs=inputs), workers)]
    if not any(row["samples"] for row in rows):
        raise UsageError(f"--plan: no sample could be built from {counted(count, 'file')}")
    if output.as_json:
        print_json({"files": count, "of": len(files), "settings": rows})
    elif not output.quiet:
        head = ("", "samples", "tokens", "trained turns", "match", "longest")
        keys = (name.replace(" ", "_") for name in head[1:])
        written = {key: ".0%" if key == "match" else "," for key in keys}
        lines = [[row["setting"], *(f"{row[key]:{form}}" for key, form in written.items())]
                 for row in rows]  # fmt: skip
        for line in aligned([head, *lines]):
            print(line)
        print(f"from {count:,} of {counted(len(files), 'file')}")
        for row in rows:
            options = row["options"]
            print(f"{row['setting']}: {f'add {options}' if options else 'this command'}")
    return 0


def _files(config: Config) -> Iterator[InputSection]:
    """Yields an input for each file that can be read; one elsewhere is an input as a whole."""
    for item in config.inputs:
        is_path = "://" not in item.path.written
        is_named = item.mapping is not None or item.format != "auto"
        for source in find_sources(item.path.located if is_path else item.path.written):
            if isinstance(source, Problem) or not (is_named or recognise(source)):
                continue
            is_here = source.path is not None
            yield replace(item, path=UserPath(str(source.path))) if is_here else item


def _rows(config: Config, workers: int) -> Iterator[dict[str, Any]]:
    mode = config.verify.options.mode
    with TemporaryDirectory(prefix="builder-plan-") as folder:
        for number, (name, keys) in enumerate(SETTINGS):
            out = Path(folder) / str(number)
            built = build_dataset([], out, config=config.with_keys(keys), workers=workers)
            counts = built.audit.counts if built.audit is not None else Counts()
            changed = {key: to for key, to in keys.items() if config.with_keys({key: to}) != config}
            yield {
                "setting": name,
                "samples": built.ledger.samples,
                "tokens": built.tokens,
                "trained_turns": counts.turns,
                "match": counts.parity[mode] / max(counts.turns, 1),
                "longest": max(counts.lengths, default=0),
                "options": " ".join(f"--set {key}={value}" for key, value in changed.items()),
            }
