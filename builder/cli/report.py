"""Implements `builder report` and `builder view`."""

from __future__ import annotations

import json
import sys
import threading
import webbrowser
from pathlib import Path

from builder.api import report_dataset, view_dataset
from builder.cli.output import Output
from builder.cli.terminal import INTERRUPTED, NO_SAMPLES, escaped, print_json, warn
from builder.cli.tokenizer import say_tokenizer
from builder.dataset.rows import dataset_rows
from builder.output.folder import write_whole
from builder.parallel.host import interrupt_on_sigterm
from builder.parallel.pool import default_workers
from builder.problem import UsageError


def run_report(dataset: str, out: Path, *, tokenizer: str | None, output: Output) -> int:
    """Writes the page and prints its path; returns 1 if there are no samples. Raises UsageError."""
    say_tokenizer(dataset, tokenizer, None, output)
    report_dataset(dataset, out, tokenizer=tokenizer, workers=default_workers())
    is_empty = next(dataset_rows(dataset), None) is None
    size = out.stat().st_size
    if output.as_json:
        print_json({"report": str(out), "bytes": size})
    elif not output.quiet:
        print(f"{out}: {size:,} bytes, one self-contained file")
    if is_empty:
        warn(NO_SAMPLES)
    return 1 if is_empty else 0


def run_view(
    dataset: str,
    logs: Path | None,
    review: Path | None,
    review_csv: Path | None,
    port: int,
    *,
    opens: bool,
    tokenizer: str | None,
    output: Output,
) -> int:
    """Serves the pages until Ctrl-C, or writes the review as CSV. Raises UsageError."""
    interrupt_on_sigterm(is_watched=False)
    try:
        return _view(dataset, logs, review, review_csv, port, opens, tokenizer, output)
    except KeyboardInterrupt:
        # Leaves without the message that the same command resumes.
        raise SystemExit(INTERRUPTED) from None


def _view(
    dataset: str,
    logs: Path | None,
    review: Path | None,
    review_csv: Path | None,
    port: int,
    opens: bool,
    tokenizer: str | None,
    output: Output,
) -> int:
    with view_dataset(dataset, logs=logs, review=review, port=port, tokenizer=tokenizer) as view:
        if review_csv is not None:
            data = view.review_csv()
            if data.count(b"\n") == 1:
                place = f"the review of {dataset!r}" if review is None else repr(str(review))
                raise UsageError(f"--review-csv: no decisions in {place}")
            if str(review_csv) == "-":
                sys.stdout.buffer.write(data)
                sys.stdout.flush()
                return 0
            write_whole(review_csv, data)
            if output.as_json:
                print_json({"review_csv": str(review_csv), "bytes": len(data)})
            elif not output.quiet:
                print(escaped(f"{review_csv}: {len(data):,} bytes, the review of {dataset} as CSV"))
            return 0
        line = json.dumps({"url": view.url}) if output.as_json else f"{view.url}  (Ctrl-C to stop)"
        print(line, flush=True)
        if opens:
            webbrowser.open(view.url)
        threading.Event().wait()
    return 0
