"""Implements `builder report` and `builder view`."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from pathlib import Path

from builder.audit.options import AuditOptions
from builder.audit.run import audit
from builder.cli.manifest import tokenizer_of
from builder.cli.terminal import INTERRUPTED, print_json
from builder.dataset.files import dataset_files
from builder.dataset.store import Rows
from builder.output.aside import write_whole
from builder.output.manifest import Manifest
from builder.parallel.pool import default_workers
from builder.parallel.signals import interrupt_on_sigterm
from builder.paths import expand_home
from builder.problem import UsageError
from builder.qwen3.tokenizer import target_for
from builder.report.report import report_html
from builder.view.review_file import ReviewFile, review_path
from builder.view.server import Server
from builder.view.viewer import Viewer


def run_report(
    dataset: str, out: Path, *, tokenizer: str | None, as_json: bool, quiet: bool
) -> int:
    """Writes the page and prints its path. Raises UsageError."""
    manifest = Manifest.of(expand_home(dataset))
    name = tokenizer_of(manifest, tokenizer)
    found = audit(dataset, AuditOptions(tokenizer=name), workers=default_workers())
    page = report_html(dataset, manifest, found, target_for(name))
    write_whole(out, page)
    if as_json:
        print_json({"report": str(out), "bytes": len(page)})
    elif not quiet:
        print(f"{out}: {len(page):,} bytes, one self-contained file")
    return 0


def run_view(
    dataset: str,
    logs: Path | None,
    review: Path | None,
    review_csv: Path | None,
    port: int,
    *,
    opens: bool,
    tokenizer: str | None,
    as_json: bool,
) -> int:
    """Serves the pages until Ctrl-C, or writes the review as CSV. Raises UsageError."""
    if logs is not None and not logs.is_dir():
        raise UsageError(f"--logs {str(logs)!r}: no such folder")
    files = dataset_files(dataset)
    if not files:
        raise UsageError(
            f"dataset {dataset!r}: no such file or folder; download a Hub dataset first"
        )
    manifest = Manifest.of(expand_home(dataset))
    folder = expand_home(dataset)
    name = tokenizer_of(manifest, tokenizer)
    decisions = ReviewFile(review or review_path(folder))
    interrupt_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="builder-view-") as scratch:
        rows = Rows(files, Path(scratch))
        here = folder if folder.is_dir() else None
        viewer = Viewer(here, rows, manifest, name, decisions, logs)
        if review_csv is not None:
            viewer.index.wait()
            write_whole(review_csv, viewer.review_csv())
            return 0
        try:
            server = Server(viewer, port)
        except OSError as error:
            raise UsageError(f"--port {port}: {error.strerror or error}") from error
        with server:
            line = json.dumps({"url": server.url}) if as_json else f"{server.url}  (Ctrl-C to stop)"
            print(line, flush=True)
            if opens:
                webbrowser.open(server.url)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                # Leaves without the message that the same command resumes.
                raise SystemExit(INTERRUPTED) from None
            finally:
                viewer.close()
    return 0
