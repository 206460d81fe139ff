"""The viewer, served on the loopback for a test."""

import contextlib
import threading
from pathlib import Path

from builder.dataset.files import dataset_files
from builder.report.server import Server
from builder.report.store import Rows
from builder.report.viewer import Viewer


@contextlib.contextmanager
def served(name, told, scratch, logs=None):
    folder = Path(name) if Path(name).is_dir() else None
    viewer = Viewer(folder, Rows(dataset_files(name), scratch), told, "qwen3", logs)
    with Server(viewer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
