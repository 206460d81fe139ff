"""The HTTP side: routes, tokens, faults. Each request belongs to a named step of the protocol."""

from __future__ import annotations

import json
import re
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from support.hub import repo_steps, storage_steps
from support.hub.faults import CUT, LATE, LOST, RESET
from support.hub.state import USERS, Asked, Refused, State

REPO = r"/api/datasets/(?P<name>[^/]+/[^/]+)"
FILE = r"/datasets/(?P<name>[^/]+/[^/]+)/resolve/(?P<rev>[^/]+)/(?P<path>.+)"
BATCH = r"/datasets/(?P<name>[^/]+/[^/]+)\.git/info/lfs/objects/batch"
OBJECT = r"/lfs/(?P<sha>[0-9a-f]{64})"
STORAGE = r"/(?P<own>cas|own)"
HASH = r"(?P<sha>[0-9a-f]{64})"
ROUTES = [
    ("create", "POST", r"/api/repos/create", repo_steps.create),
    ("validate", "POST", r"/api/validate-yaml", repo_steps.validate),
    ("preupload", "POST", REPO + r"/preupload/(?P<rev>[^/]+)", repo_steps.preupload),
    ("commit", "POST", REPO + r"/commit/(?P<rev>[^/]+)", repo_steps.commit),
    ("look", "GET", REPO + r"(?:/revision/(?P<rev>[^/]+))?", repo_steps.look),
    ("tree", "GET", REPO + r"/tree/(?P<rev>[^/]+)(?:/(?P<path>.+))?", repo_steps.tree),
    ("paths", "POST", REPO + r"/paths-info/(?P<rev>[^/]+)", repo_steps.paths),
    ("refs", "GET", REPO + r"/refs", repo_steps.refs),
    ("branch", "POST", REPO + r"/branch/(?P<rev>[^/]+)", repo_steps.branch),
    ("tag", "POST", REPO + r"/tag/(?P<rev>[^/]+)", repo_steps.tag),
    ("pull", "POST", REPO + r"/discussions", repo_steps.pull),
    ("pulls", "GET", REPO + r"/discussions(?:/(?P<number>\d+))?", repo_steps.pulls),
    ("batch", "POST", BATCH, storage_steps.batch),
    ("put", "PUT", OBJECT + r"(?:/(?P<part>\d+))?", storage_steps.put),
    ("complete", "POST", OBJECT + r"/complete", storage_steps.complete),
    ("verify", "POST", OBJECT + r"/verify", storage_steps.verify),
    ("resolve", "HEAD", FILE, storage_steps.resolve),
    ("resolve", "GET", FILE, storage_steps.resolve),
    ("token", "GET", REPO + r"/xet-\w+-token/(?P<rev>[^/]+)", storage_steps.xet_token),
    ("xorb", "POST", STORAGE + r"/v1/xorbs/default/" + HASH, storage_steps.xorb),
    ("shard", "POST", STORAGE + r"/v1/shards", storage_steps.shard),
    ("rebuild", "GET", STORAGE + r"/v1/reconstructions/" + HASH, storage_steps.rebuild),
    ("xorb-bytes", "GET", STORAGE + r"/xorb-bytes/" + HASH, storage_steps.xorb_bytes),
]
WRITES = {"create", "preupload", "commit", "branch", "tag", "batch", "pull"}
KEYED = {"put", "complete", "xorb", "shard", "rebuild", "xorb-bytes"}  # their own keys


class Hub(State):
    """The server; `url` is the endpoint. Use it as a context manager."""

    def __init__(self, *, lfs_from: int = 10_000, page: int = 1000, part: int = 0) -> None:
        super().__init__(lfs_from=lfs_from, page=page, part=part)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Hub:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: Hub

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores clients that were killed or disconnected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or a response in two pieces waits 40 ms for the client
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        for step, method, pattern, act in ROUTES:
            found = re.fullmatch(pattern, url.path) if method == self.command else None
            if found:
                named = {key: unquote(text) for key, text in found.groupdict().items() if text}
                self.step(step, named, act)
                return
        self.read_body()
        self.send(404, b"{}", {})

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815 - as above

    def step(self, step: str, named: dict[str, str], act) -> None:
        hub, path = self.server.hub, urlsplit(self.path).path
        own = named.get("own") == "own"
        with hub.lock:
            hub.requests[step] += not own
            fault = next((item for item in hub.faults if not own and item.strikes(step)), None)
        if fault is not None and fault.run is not None:
            fault.run()
            fault = None
        if fault is not None and fault.kind in (RESET, CUT):
            if fault.kind == CUT:
                hub.arrived(path, len(self.rfile.read(self.size() // 2)))
            self.drop()
            return
        body = self.read_body()
        if step in ("put", "xorb"):
            hub.arrived(path, len(body))
        if fault is not None and isinstance(fault.kind, int):
            self.fail(fault.kind, fault.retry_after)
            return
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        asked = Asked(hub, self.command, self.path, named, query, self.headers, body)
        try:
            if step not in KEYED:
                _allow(asked, step)
            status, answer, headers = act(asked)
        except Refused as refused:
            status, headers = refused.status, {"X-Error-Message": refused.message}
            if refused.code:
                headers["X-Error-Code"] = refused.code
            answer = json.dumps({"error": refused.message, **refused.body}).encode()
        if fault is not None and fault.kind == LOST:
            self.drop()
            return
        if fault is not None and fault.kind == LATE:
            self.fail(500, None)
            return
        self.send(status, answer, headers)

    def drop(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def fail(self, status: int, retry_after: int | None) -> None:
        """Responds like a proxy: no JSON, and the request is quoted."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        seen = self.headers.get("authorization", "")
        headers["X-Error-Message"] = {
            401: "Invalid credentials in Authorization header",
            403: "You don't have the rights to do that",
        }.get(status, f"something is wrong with {seen}")
        self.send(status, f"<html>{status} {seen}</html>".encode(), headers)

    def size(self) -> int:
        return int(self.headers.get("content-length") or 0)

    def read_body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(self.size())
        pieces = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        reported = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        for name, value in reported.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _allow(asked: Asked, step: str) -> None:
    """Hides private repositories from strangers, like the Hub."""
    token = asked.headers.get("authorization", "").removeprefix("Bearer ")
    if token and token not in USERS:
        raise Refused(401, "Invalid credentials in Authorization header")
    repo = asked.hub.repos.get(asked.named.get("name", ""))
    if repo is not None and repo.private and not token:
        raise Refused(401, "Invalid username or password.", "RepoNotFound")
    if step in WRITES and not token:
        raise Refused(401, "Invalid username or password.")
    if step in WRITES and USERS[token] != "team":
        raise Refused(403, "You don't have the rights to write here")
