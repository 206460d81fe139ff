"""Implements `builder merge`: combines built datasets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from builder.api import merge_datasets
from builder.cli.build import summarise
from builder.cli.output import Output
from builder.cli.progress import BuildProgress
from builder.config import Config
from builder.parallel.pool import default_workers
from builder.parallel.signals import interrupt_on_sigterm


def run_merge(
    datasets: Sequence[str],
    config: Config,
    out: str,
    *,
    workers: int | None,
    strict: bool,
    output: Output,
) -> int:
    """Merges and prints; returns the exit code. Raises UsageError."""
    interrupt_on_sigterm()
    progress = BuildProgress(visible=output.in_words)
    try:
        built = merge_datasets(
            datasets,
            out,
            config=config,
            workers=workers or default_workers(),
            on_progress=progress,
        )
    finally:
        progress.close()
    kept_by = "kept, in the builds that were merged, by"
    return summarise(built, config, out, Path(out), strict=strict, output=output, kept_by=kept_by)
