"""Serves the pages of `builder view` on the loopback interface, at a secret address.

Every URL begins with a random token, compared in constant time, so that neither another user nor
another page in the browser can guess one. The Host header must be the server's own, which prevents
DNS rebinding. Only forms of the server's own pages may write: the Origin header must name it.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from builder.brief import brief
from builder.dataset.files import dataset_files
from builder.dataset.store import Address, Rows
from builder.output.manifest import Manifest
from builder.paths import expand_home
from builder.problem import OptionError, UsageError
from builder.report.html import policy
from builder.view.index import whole_number
from builder.view.review_file import ReviewFile, review_path
from builder.view.viewer import Viewer

_HOST = "127.0.0.1"

_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
)
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_FAILED = b"This page could not be made. This is a bug: please report the line on the terminal.\n"
_FORM = "application/x-www-form-urlencoded"

MAX_FORM = 64 << 10
"""Bytes of a form: enough for the longest note with every character percent-encoded."""
_MAX_FIELDS = 600
"""Fields of a URL or a form."""


class Server(ThreadingHTTPServer):
    """Serves the pages of a viewer on a port (0: any free one). Raises OSError if it is taken."""

    daemon_threads = True

    def __init__(self, viewer: Viewer, port: int = 0) -> None:
        super().__init__((_HOST, port), _Handler)
        self.viewer = viewer
        self.token = secrets.token_urlsafe(24)
        self.names = frozenset(f"{name}:{self.server_port}" for name in (_HOST, "localhost"))

    @property
    def url(self) -> str:
        """Returns the URL to open."""
        return f"http://{_HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores disconnects; prints any other error, which is a bug, in a line."""
        del request, client_address
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"builder: view: {type(error).__name__}: {error}", file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 60
    server_version = "builder"
    sys_version = ""

    def do_GET(self) -> None:
        self._respond(self._get)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self._respond(self._post)

    def log_message(self, *_: object) -> None:
        """Logs nothing, because URLs contain the token."""

    def _respond(self, answer: Callable[[str, dict[str, str]], None]) -> None:
        """Answers a request if it has the token and names this server as host."""
        path, _, query = self.path.partition("?")
        token, _, rest = path.removeprefix("/").partition("/")
        given = hmac.compare_digest(token.encode(), self.server.token.encode())
        if self.headers.get("Host", "") not in self.server.names or not given:
            self._send(HTTPStatus.NOT_FOUND, b"Not found.\n", _TEXT)
            return
        try:
            answer(rest, _fields(query))
        except (ConnectionError, TimeoutError):
            raise
        except UsageError as fault:  # the review cannot be read or written
            words = str(fault)
            print(f"builder: view: {words}", file=sys.stderr)
            body = self.server.viewer.message("The review", words)
            self._send(HTTPStatus.CONFLICT, body, _HTML)
        # No row, whatever it contains, may end the connection without a response.
        except Exception as error:
            print(f"builder: view: {type(error).__name__}: {error}", file=sys.stderr)
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, _FAILED, _TEXT)

    def _get(self, name: str, params: dict[str, str]) -> None:
        viewer = self.server.viewer
        requested = Address.read(params.get("at", ""))
        pages: dict[str, Callable[[], bytes | None]] = {
            "": lambda: viewer.samples(params),
            "row": lambda: viewer.sample(requested, params) if requested is not None else None,
            "raw": lambda: viewer.raw(requested) if requested is not None else None,
            "overview": viewer.overview,
            "rejects": lambda: viewer.rejects(params),
            "reject": lambda: viewer.reject(params),
        }
        if name == "go":
            address = viewer.find(params.get("to", ""))
            if address is not None:
                self._redirect(f"row?at={address}")
                return
        body = pages[name]() if name in pages else None
        if body is None:
            self._send(HTTPStatus.NOT_FOUND, viewer.not_found(), _HTML)
        else:
            self._send(HTTPStatus.OK, body, _TEXT if name == "raw" else _HTML)

    def _post(self, name: str, params: dict[str, str]) -> None:
        """Records a decision that a form of this server's own pages sent."""
        del params
        self.close_connection = True  # the body of a refused request is not read
        origin = f"http://{self.headers.get('Host', '')}"
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        length = whole_number(self.headers.get("Content-Length", ""))
        if self.headers.get("Origin") != origin or site != "same-origin":
            self._send(HTTPStatus.FORBIDDEN, b"Only this server's own pages may write.\n", _TEXT)
        elif name != "review":
            self._send(HTTPStatus.NOT_FOUND, b"Not found.\n", _TEXT)
        elif self.headers.get("Content-Type", "").partition(";")[0] != _FORM:
            self._send(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, b"A form is expected.\n", _TEXT)
        elif not 0 < length <= MAX_FORM:
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"Too large, or empty.\n", _TEXT)
        else:
            given = _fields(self.rfile.read(length).decode("ascii", "replace"))
            address = self.server.viewer.decide(given)
            if address is None:
                self._send(HTTPStatus.BAD_REQUEST, self.server.viewer.not_found(), _HTML)
            else:
                self._redirect(address)

    def _redirect(self, address: str) -> None:
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", address)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        security = f"{policy(viewer=True)}; frame-ancestors 'none'"
        self.send_header("Content-Security-Policy", security)
        for header, value in _HEADERS:
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _fields(query: str) -> dict[str, str]:
    """Parses a query; the last value of a name counts. Returns {} if there are too many fields."""
    try:
        fields = parse_qs(
            query, errors="replace", keep_blank_values=True, max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        return {}
    return {key: values[-1] for key, values in fields.items()}


# -- serves the pages of a dataset for as long as its reader wants them ----------------------------


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
