"""Stand-ins for the agents that the pages run: each posts one request to the address it is given.

They print nothing: the process that runs the commands answers on its standard output.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PROGRAM = """#!{python}
import json, os, urllib.request
url = os.environ["{variable}"] + "{path}"
headers = {{"User-Agent": "{agent}", "Content-Type": "application/json"}}
urllib.request.urlopen(urllib.request.Request(url, b'''{body}''', headers)).read()
"""
AGENTS = {
    "claude": {
        "variable": "ANTHROPIC_BASE_URL", "path": "/v1/messages",
        "agent": "claude-cli/2.1.200 (external, cli)",
        "body": '{"model": "m", "max_tokens": 9, "system": "Be brief.", "tools": [{"name": "ls",'
                ' "input_schema": {"type": "object"}}],'
                ' "messages": [{"role": "user", "content": "hi"}]}',
    },
    "gemini": {
        "variable": "GOOGLE_GEMINI_BASE_URL", "path": "/v1beta/models/m:generateContent",
        "agent": "GeminiCLI/0.61.0/m (linux; x64)",
        "body": '{"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}',
    },
}  # fmt: skip
ANSWER = (
    b'{"responseId": "r1", "modelVersion": "m", "candidates": [{"index": 0, "finishReason": "STOP",'
    b' "content": {"role": "model", "parts": [{"text": "Hello."}]}}]}'
)


def install(folder: Path) -> None:
    """Writes the programs into a folder, for `PATH`."""
    folder.mkdir()
    for name, values in AGENTS.items():
        (folder / name).write_text(PROGRAM.format(python=sys.executable, **values))
        (folder / name).chmod(0o755)


class _Gemini(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def provider() -> Iterator[str]:
    """Yields the address of a provider that answers each request to Gemini with a text."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Gemini)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
