"""Implements `builder merge`: combines built datasets."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from builder.api import merge_datasets
from builder.cli.build import summarise
from builder.cli.command import Output, command
from builder.cli.terminal import BuildProgress, print_wrapped
from builder.config import load_config
from builder.output.manifest import Manifest
from builder.parallel.host import interrupt_on_sigterm
from builder.parallel.pool import default_workers
from builder.paths import expand_home
from builder.sources.store import local_copy, local_output
from builder.text import counted


@command()
def merge(
    datasets: list[str],
    out: str,
    config: Path | None = None,
    settings: list[str] | None = None,
    workers: int | None = None,
    strict: bool = False,
    *,
    output: Output,
) -> int:
    """Combine built datasets into one, without duplicates and without reading logs again."""
    chosen = load_config(config, settings=settings or (), for_merge=True)
    interrupt_on_sigterm()
    progress = BuildProgress(visible=output.in_words)
    with ExitStack() as stack:
        places = [stack.enter_context(local_copy(dataset)) for dataset in datasets]
        here = stack.enter_context(local_output(out))
        try:
            built = merge_datasets(
                places,
                here,
                config=chosen,
                workers=workers or default_workers(),
                on_progress=progress,
            )
        finally:
            progress.close()
        if output.in_words:
            ledgers = [Manifest.of(expand_home(place)).ledger for place in places]
            samples = [ledger.samples if ledger is not None else 0 for ledger in ledgers]
            parts = (f"{name} ({number:,})" for name, number in zip(datasets, samples, strict=True))
            text = f"merged {', '.join(parts)}: {counted(sum(samples), 'sample')} together"
            if left := sum(samples) - built.ledger.samples:
                text += (
                    f", of which {left:,} are left out (duplicates, and what the options leave out)"
                )
            print_wrapped("", text, "  ")
        kept_by = "kept, in the builds that were merged, by"
        return summarise(built, chosen, out, here, strict=strict, output=output, kept_by=kept_by)
