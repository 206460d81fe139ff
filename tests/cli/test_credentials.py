"""No command prints the token it sends, even if a server echoes the request's headers."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.logs.chats import row
from support.runs.builds import build

from builder.credentials import HidingStream, hide

TOKEN = "hf" + "_" + "EchoedTokenOfNobody0123456789abcdef"
ODD = "odd-" + "0123456789abcdefghij"
"""A token without a known form: it is recognised by the name of its variable."""


class Echo(BaseHTTPRequestHandler):
    """Answers every request with an error that quotes its headers, as proxies do."""

    seen: list[tuple[str, str]]

    def do_GET(self):
        headers = str(self.headers)
        type(self).seen.append((self.path, headers))
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
    assert build(folder / "out", inputs=[folder / "in.jsonl"]) == 0
    return folder / "out"


COMMANDS = {
    "build": ("build", "hf://of/build", "-o", "{tmp}/out"),
    "verify": ("verify", "hf://of/verify"),
    "verify --tokenizer": ("verify", "{built}", "--tokenizer", "of/verifying"),
    "audit": ("audit", "hf://of/audit"),
    "audit --tokenizer": (
        "audit",
        "{built}/data/train-00000-of-00001.jsonl",
        "--tokenizer",
        "of/a",
    ),
    "push": ("push", "{built}", "of/push"),
    "push --dry-run": ("push", "{built}", "of/push-dry", "--dry-run"),
}
"""Each with a repository of its own."""

RUN_ALL = """
import json, sys
from builder.__main__ import main
for line in sys.stdin:
    sys.argv[1:] = json.loads(line)
    print("next:", file=sys.__stderr__)
    try:
        main()
    except SystemExit as end:
        print("exit", end.code, flush=True)
"""
"""Runs the commands on standard input one after the other: starting takes longer than they do."""


@pytest.mark.slow
@pytest.mark.parametrize(("token", "commands"), [(TOKEN, ["verify"]), (ODD, [*COMMANDS])])
def test_an_echoed_token_is_not_printed(token, commands, echo, built, tmp_path):
    url, seen = echo
    lines = [[part.format(tmp=tmp_path, built=built) for part in COMMANDS[it]] for it in commands]
    environment = {
        **os.environ,
        "HF_ENDPOINT": url,
        "HF_TOKEN": token,
        "HF_HOME": str(tmp_path / "hub"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for line in lines:
        repository = next(part for part in line if part.startswith(("hf://of/", "of/")))
        path = f"{repository.removeprefix('hf://')}/"
        sent = [headers for asked, headers in seen if path in f"{asked}/"]
        assert any(token in headers for headers in sent), f"the token was sent: {line}"
    codes = [line for line in done.stdout.splitlines() if line.startswith("exit ")]
    assert len(codes) == len(lines)
    assert set(codes) <= {"exit 1", "exit 2"}
    errors = done.stderr.split("next:\n")[1:]
    assert len(errors) == len(lines)
    assert all(errors), errors
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
def test_credentials_of_requests_are_hidden(text):
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
