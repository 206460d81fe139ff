"""Implements `builder report` and `builder view`."""

from __future__ import annotations

import json
import sys
import threading
import webbrowser
from pathlib import Path

from builder.api import report_dataset, view_dataset
from builder.cli.command import Output, command
from builder.cli.terminal import INTERRUPTED, NO_SAMPLES, print_json, warn
from builder.cli.tokenizer import say_tokenizer
from builder.dataset.rows import dataset_rows
from builder.parallel.host import interrupt_on_sigterm
from builder.parallel.pool import default_workers
from builder.problem import UsageError
from builder.sources.store import is_url, local_output


@command()
def report(
    dataset: str, out: str = "report.html", tokenizer: str | None = None, *, output: Output
) -> int:
    """Write a report of a dataset as one HTML file that can be read offline."""
    if not is_url(out) and not Path(out).absolute().parent.is_dir():
        raise UsageError(f"output {out!r}: no such folder")
    say_tokenizer(dataset, tokenizer, None, output)
    with local_output(out) as place:
        report_dataset(dataset, place, tokenizer=tokenizer, workers=default_workers())
        size = place.stat().st_size
    is_empty = next(dataset_rows(dataset), None) is None
    if output.as_json:
        print_json({"report": out, "bytes": size})
    elif not output.quiet:
        print(f"{out}: {size:,} bytes, one self-contained file")
    if is_empty:
        warn(NO_SAMPLES)
    return 1 if is_empty else 0


@command()
def view(
    dataset: str,
    logs: Path | None = None,
    review: Path | None = None,
    port: int = 0,
    opens: bool = True,
    tokenizer: str | None = None,
    *,
    output: Output,
) -> int:
    """Browse every sample: served to this machine only, read from disk page by page."""
    interrupt_on_sigterm(is_watched=False)
    try:
        with view_dataset(dataset, logs=logs, review=review, port=port, tokenizer=tokenizer) as it:
            print(json.dumps({"url": it.url}) if output.as_json else f"{it.url}  (Ctrl-C to stop)")
            sys.stdout.flush()
            if opens:
                webbrowser.open(it.url)
            threading.Event().wait()
    except KeyboardInterrupt:
        # Leaves without the message that the same command resumes.
        raise SystemExit(INTERRUPTED) from None
    return 0
