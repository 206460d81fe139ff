"""The server of `builder view`: this machine only, and only for who has its address.

It listens on the loopback interface. Every address begins with a random token, compared in constant
time, so that neither another user nor a page in the same browser can guess one. The Host header
must be the server's own: a foreign name that was made to resolve to this machine gets nothing.
"""

from __future__ import annotations

import hmac
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from builder.report.page import policy
from builder.report.query import Query
from builder.report.store import Address
from builder.report.viewer import Viewer

HOST = "127.0.0.1"

_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
)
FORMS = "'self'"
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_FAILED = b"This page could not be made. That is a bug: please report what the terminal says.\n"
_START = Address(0, 0)


class Server(ThreadingHTTPServer):
    """Serves the pages of a viewer. Raises OSError if the port is taken (0: any free one)."""

    daemon_threads = True

    def __init__(self, viewer: Viewer, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.viewer = viewer
        self.token = secrets.token_urlsafe(24)
        self.names = frozenset(f"{name}:{self.server_port}" for name in (HOST, "localhost"))

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores a browser that goes away; reports anything else, which is a bug, in a line."""
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
        host = self.headers.get("Host", "")
        path, _, query = self.path.partition("?")
        token, _, rest = path.removeprefix("/").partition("/")
        given = hmac.compare_digest(token.encode(), self.server.token.encode())
        if host not in self.server.names or not given:
            self._send(HTTPStatus.NOT_FOUND, b"Not found.\n", _TEXT)
            return
        asked = parse_qs(query, errors="replace", keep_blank_values=True)
        try:
            self._answer(rest, {key: values[-1] for key, values in asked.items()})
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # a row of any origin must not end the connection without a word
            print(f"builder: view: {type(error).__name__}: {error}", file=sys.stderr)
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, _FAILED, _TEXT)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Requests are not logged: their addresses hold the token."""

    def _answer(self, name: str, asked: dict[str, str]) -> None:
        viewer = self.server.viewer
        at = _address(asked["at"]) if "at" in asked else _START
        body: bytes | None = None
        kind = _HTML
        query = Query(*(asked.get(key, "") for key in ("text", "tool", "source", "code")))
        if at is None:
            pass  # not the address of a row
        elif name == "":
            body = viewer.samples(query, at) if at.file < len(viewer.rows.files) else None
        elif name == "row":
            body = viewer.sample(at, query)
        elif name == "raw":
            body, kind = viewer.raw(at), _TEXT
        elif name == "overview":
            body = viewer.overview()
        elif name == "rejects":
            begin = _whole(asked.get("from", ""))
            body = viewer.rejects(asked.get("code", ""), asked.get("text", ""), begin)
        elif name == "go":
            found = viewer.find(asked.get("to", ""))
            if found is not None:
                self.send_response(HTTPStatus.SEE_OTHER)
                self.send_header("Location", f"row?at={found}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        if body is None:
            self._send(HTTPStatus.NOT_FOUND, viewer.nothing(), _HTML)
        else:
            self._send(HTTPStatus.OK, body, kind)

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", f"{policy(FORMS)}; frame-ancestors 'none'")
        for header, value in _HEADERS:
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _address(written: str) -> Address | None:
    """Returns the row that `FILE.ROW` names; None if it is no such address."""
    file, _, row = written.partition(".")
    if any(not part.isascii() or not part.isdigit() or len(part) > 15 for part in (file, row)):
        return None
    return Address(int(file), int(row))


def _whole(written: str) -> int:
    return int(written) if written.isascii() and written.isdigit() and len(written) < 16 else 0
