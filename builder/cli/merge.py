"""Implements `builder merge`: combines built datasets."""

from __future__ import annotations

from pathlib import Path

from builder.build.merge import merge
from builder.cli.build import summarise
from builder.cli.progress import BuildProgress
from builder.config import Config
from builder.parallel.pool import default_workers
from builder.parallel.signals import interrupt_on_sigterm


def run_merge(
    datasets: list[str],
    config: Config,
    out: str,
    *,
    workers: int | None,
    strict: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Merges and prints; returns the exit code. Raises UsageError."""
    interrupt_on_sigterm()
    progress = BuildProgress(visible=not (quiet or as_json))
    try:
        built = merge(
            datasets, config, Path(out), workers=workers or default_workers(), phase=progress.phase
        )
    finally:
        progress.close()
    return summarise(built, config, out, Path(out), strict=strict, as_json=as_json, quiet=quiet)
