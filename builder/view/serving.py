"""Serves the pages of a dataset for as long as its reader wants them."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.brief import brief
from builder.dataset.files import dataset_files
from builder.dataset.store import Rows
from builder.output.manifest import Manifest
from builder.paths import expand_home
from builder.problem import OptionError, UsageError
from builder.view.review_file import ReviewFile, review_path
from builder.view.server import Server
from builder.view.viewer import Viewer


@dataclass(frozen=True, slots=True)
class DatasetView:
    """The pages of a dataset, which are served until its context ends."""

    url: str
    viewer: Viewer

    def __repr__(self) -> str:
        """Returns the address in one line."""
        return brief(self, url=self.url)


@contextlib.contextmanager
def serving(
    dataset: str,
    manifest: Manifest,
    tokenizer: str,
    *,
    logs: str | Path | None = None,
    review: str | Path | None = None,
    port: int = 0,
) -> Iterator[DatasetView]:
    """Serves the pages meanwhile, in a thread. Raises UsageError."""
    if logs is not None and not Path(logs).is_dir():
        raise OptionError("logs", f" {str(logs)!r}: no such folder")
    if dataset.startswith("hf://"):
        raise UsageError(f"dataset {dataset!r}: download a Hub dataset first")
    files = dataset_files(dataset)
    folder = expand_home(dataset)
    decisions = ReviewFile(Path(review) if review is not None else review_path(folder))
    with tempfile.TemporaryDirectory(prefix="builder-view-") as scratch:
        here = folder if folder.is_dir() else None
        rows = Rows(files, Path(scratch))
        path = Path(logs) if logs is not None else None
        viewer = Viewer(here, rows, manifest, tokenizer, decisions, path)
        try:
            server = Server(viewer, port)
        except OSError as error:
            viewer.close()
            raise OptionError("port", f" {port}: {error.strerror or error}") from error
        with server:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            try:
                yield DatasetView(server.url, viewer)
            finally:
                viewer.close()
                server.shutdown()
