"""No command prints the token it sends, even if a server echoes the request's headers."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from logs import row

from builder.credentials import HidingStream, hide

TOKEN = "hf" + "_" + "EchoedTokenOfNobody0123456789abcdef"
ODD = "odd-" + "0123456789abcdefghij"
"""A token without a known form: it is recognised by the variable that holds it."""


class Echo(BaseHTTPRequestHandler):
    """Answers every request with an error that quotes its headers, as proxies do."""

    seen: list[str]

    def do_GET(self):
        headers = str(self.headers)
        type(self).seen.append(headers)
        body = json.dumps({"error": f"bad request: {headers} {self.path}"}).encode()
        self.send_response(400, "bad request")
        self.send_header("X-Error-Message", " ".join(headers.split())[:900])
        self.send_header("X-Request-Id", self.headers.get("Authorization", "none"))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815 - names of the base class

    def log_message(self, *_):
        """Prints nothing."""


@pytest.fixture
def echo():
    handler = type("Handler", (Echo,), {"seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", handler.seen
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    (folder / "in.jsonl").write_text(row("a"))
    subprocess.run(
        [sys.executable, "-m", "builder", "build", folder / "in.jsonl", "-o", folder / "out", "-q"],
        check=True,
    )
    return folder / "out"


COMMANDS = {
    "build": ("build", "hf://owner/name", "-o", "{tmp}/out"),
    "verify": ("verify", "hf://owner/name"),
    "verify --tokenizer": ("verify", "{built}", "--tokenizer", "owner/name"),
    "audit": ("audit", "hf://owner/name"),
    "audit --tokenizer": ("audit", "{built}/data/train-00000-of-00001.jsonl", "--tokenizer", "o/n"),
    "push": ("push", "{built}", "owner/name"),
    "push --dry-run": ("push", "{built}", "owner/name", "--dry-run"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "token"), [("verify", TOKEN), *((command, ODD) for command in COMMANDS)]
)
def test_an_echoed_token_is_not_printed(command, token, echo, built, tmp_path):
    url, seen = echo
    arguments = [part.format(tmp=tmp_path, built=built) for part in COMMANDS[command]]
    environment = {
        **os.environ,
        "HF_ENDPOINT": url,
        "HF_TOKEN": token,
        "HF_HOME": str(tmp_path / "hub"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "builder", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert any(token in headers for headers in seen), "the token was sent"
    assert done.returncode in (1, 2), done.stderr
    assert done.stderr
    assert "Traceback" not in done.stderr
    for piece in (token, token[:12], token[-12:]):
        assert piece not in done.stderr + done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "401: {'Authorization': 'Bearer SECRET_VALUE_1'}",
        '{"headers": {"authorization": "Basic SECRET_VALUE_1"}}',
        "Proxy-Authorization: Basic SECRET_VALUE_1\r\nHost: x",
        "cannot connect to http://me:SECRET_VALUE_1@proxy:3128/",
        "GET https://bucket.example/key?X-Amz-Signature=SECRET_VALUE_1&x=1 failed",
        "b'Bearer SECRET_VALUE_1' was refused",
        "x-api-key: SECRET_VALUE_1",
    ],
)
def test_what_requests_carry_is_hidden(text):
    assert "SECRET_VALUE_1" not in hide(text)


def test_credentials_are_recognised_in_the_environment(monkeypatch):
    monkeypatch.setenv("MY_SERVICE_TOKEN", "plain/value of mine")
    monkeypatch.setenv("https_proxy", "http://me:proxy-pass-1@h:1")
    assert hide("got 'plain/value of mine' and plain%2Fvalue%20of%20mine") == "got '…' and …"
    assert "proxy-pass-1" not in hide("auth failed: proxy-pass-1")
    assert hide("no such file: data/train.jsonl (token table)") == (
        "no such file: data/train.jsonl (token table)"
    )


def test_standard_error_passes_through(monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", ODD)
    stream = HidingStream(sys.stderr)
    print(f"warning: {ODD}", file=stream)
    stream.writelines(["a\n", f"{ODD}\n"])
    assert stream.isatty() is False
    stream.flush()
    assert capsys.readouterr().err == "warning: …\na\n…\n"
