"""The viewer, served on loopback for a test."""

import contextlib
import http.client
import threading
from pathlib import Path
from urllib.parse import urlsplit

from builder.dataset.files import dataset_files
from builder.dataset.store import Rows
from builder.output.manifest import Manifest
from builder.view.review_file import ReviewFile
from builder.view.server import Server
from builder.view.viewer import Viewer


def viewer_of(name, manifest, scratch, logs=None):
    """Yields the viewer of a dataset once everything is indexed; its review is in scratch."""
    folder = Path(name) if Path(name).is_dir() else None
    rows = Rows(dataset_files(str(name)), scratch)
    viewer = Viewer(
        folder, rows, Manifest.read(manifest), "qwen3", ReviewFile(scratch / "r.review.jsonl"), logs
    )
    viewer.index.wait()
    if viewer.rejected is not None:
        viewer.rejected.wait()
    return viewer


@contextlib.contextmanager
def served(name, manifest, scratch, logs=None):
    viewer = viewer_of(name, manifest, scratch, logs)
    with Server(viewer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            viewer.close()


def ask(server, path):
    """Returns the status and the body of a page of the viewer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", urlsplit(server.url).path + path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body
