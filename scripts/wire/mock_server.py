"""A model server on loopback that plays scripted turns and records each request with its answer.

Usage: mock_server.py PORT FOLDER. Writes FOLDER/001.json and so on: path, headers without
credentials, api, request, response. All other requests go to FOLDER/other.log. The environment
variable PACE has the seconds before each block of a stream and before its end, unless the script
has its own; a real model is slow, and agents then log blocks one by one.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from wire.answers import Answer, write_answer
from wire.model_turns import SUMMARY, TURNS, WITHOUT_TOOLS
from wire.shapes import Body, Request, Tool, api_of, read_request

_MARKER = re.compile(r"\[\[S:(\w+)\]\]")
_PLACEHOLDER = re.compile(r"\{\{(.+)\}\}")
_CREDENTIALS = {"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"}
_COMPACTION = re.compile(
    r"(?i)(your task is to create a detailed summary|CONTEXT CHECKPOINT COMPACTION|state_snapshot"
    r"|structured context checkpoint)"
)
_SLOW = re.compile(
    r'"type": "(content_block_start|message_delta|response\.(output_item\.added|completed))"'
)
"""The events before which a slow stream pauses: a block begins, or the answer ends."""

_NAMES = {
    "read": ("Read", "read_file", "ReadFile", "read", "view", "text_editor", "file_editor",
             "str_replace_editor", "developer__text_editor", "read_files"),
    "bash": ("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell",
             "Shell", "terminal", "execute_bash", "developer__shell", "local_shell",
             "run_command", "run_commands", "Execute", "run_terminal_command"),
    "edit": ("Edit", "edit", "replace", "edit_file", "StrReplaceFile", "apply_patch",
             "str_replace", "editor", "search_replace"),
    "write": ("Write", "write", "write_file", "WriteFile", "create", "editor", "Create"),
    "skill": ("Skill", "skill", "activate_skill"),
    "agent": ("Agent", "Task", "task", "agent", "spawn_agent", "spawn_subagent"),
}  # fmt: skip
"""Names that agents give to the tool for each action."""
_ALIASES = {
    "path": ("file_path", "absolute_path", "filePath", "filepath", "path", "filename",
             "target_file", "files"),
    "command": ("command", "cmd", "script", "commands"),
    "prompt": ("prompt", "task"),
    "old": ("old_string", "oldString", "old_str", "oldText", "old_text"),
    "new": ("new_string", "newString", "new_str", "newText", "new_text"),
    "content": ("content", "contents", "text", "file_text", "new_text"),
}  # fmt: skip
"""Names that tools give to each argument."""
_LISTS: dict[str, Callable[[Any], Any]] = {
    "command": lambda value: ["bash", "-lc", value],
    "commands": lambda value: [value],
    "files": lambda value: [{"path": value}],
}
"""What an argument of these names is if it is a list."""
_EDITORS = ("file_editor", "str_replace_editor", "developer__text_editor", "text_editor")
_LEAST = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}


def next_answer(request: Request, body: Body) -> tuple[Answer, Body]:
    """Returns the model's next answer, and the step of the script (delay, status) it comes from."""
    if asks_for_summary(request):
        return Answer(SUMMARY), {}
    schema = _output_schema(body)
    if schema:
        return Answer(json.dumps(_smallest(schema))), {}
    marked: tuple[int, str] | None = None
    for at, turn in enumerate(request.turns):
        found = _MARKER.findall(turn.texts()) if turn.role != "assistant" else []
        marked = (at, found[-1]) if found else marked
    if marked is None or not (request.tools or marked[1] in WITHOUT_TOOLS):
        return Answer("Mock title"), {}
    at, name = marked
    number = sum(turn.role == "assistant" for turn in request.turns[at + 1 :])
    steps = TURNS.get(name) or [{"text": f"No script {name}."}]
    step = steps[min(number, len(steps) - 1)]
    wanted = _filled(step.get("calls") or [], request)
    calls = [call for item in wanted if (call := _call(item, request.tools)) is not None]
    text = step.get("text", "")
    if wanted and not calls:
        text = f"{text} (no such tool offered)".strip()
    thought, tokens, stop = step.get("think", ""), step.get("tokens", 100), step.get("stop", "")
    return Answer(text, tuple(calls), thought, tokens, stop), step


def _filled(calls: list[Body], request: Request) -> list[Body]:
    """Returns a script's calls with `{{REGEX}}` replaced by its last match in the messages."""
    texts = [part.text for turn in request.turns for part in turn.parts if turn.role != "assistant"]
    found = []
    for call in calls:
        arguments = dict(call.get("args") or {})
        for key, value in arguments.items():
            if isinstance(value, str) and (wanted := _PLACEHOLDER.fullmatch(value)):
                matches = re.findall(wanted[1], "\n".join(texts))
                arguments[key] = matches[-1] if matches else "none"
        found.append({**call, "args": arguments})
    return found


def asks_for_summary(request: Request) -> bool:
    """Returns whether a request asks for the summary that a compaction needs."""
    return bool(request.turns) and _COMPACTION.search(_instruction(request)) is not None


def _instruction(request: Request) -> str:
    """Returns the text that would ask for a summary: the last message or a short system prompt."""
    last = request.turns[-1].texts()
    short = [text for text in request.system if len(text) < 9000 or not request.tools]
    return " ".join(["" if _MARKER.search(last) else last, *short])


def _output_schema(body: Body) -> Body | None:
    """Returns the JSON Schema that the answer must follow, if the request has one."""
    config = body.get("generationConfig") or {}
    wanted = (
        body.get("response_format")
        or (body.get("text") or {}).get("format")
        or (body.get("output_config") or {}).get("format")
        or {}
    )
    if wanted.get("type") == "json_schema":
        schema: Body | None = (wanted.get("json_schema") or wanted).get("schema")
        return schema
    return config.get("responseJsonSchema") or config.get("responseSchema")


def _smallest(schema: Any) -> Any:
    """Returns a small value that fits a JSON Schema."""
    if not isinstance(schema, dict):
        return "x"
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        return {key: _smallest(value) for key, value in (schema.get("properties") or {}).items()}
    return _LEAST.get(kind, "mock")


def _call(wanted: Body, tools: Sequence[Tool]) -> tuple[Tool, Any] | None:
    """Returns a script's call with the tool and argument names that this agent offers."""
    offered = {tool.name: tool for tool in tools}
    kind, arguments = wanted["tool"], dict(wanted.get("args") or {})
    if wanted.get("forced"):
        return Tool(kind, "", {}), arguments
    for name in _NAMES.get(kind, (kind,)):
        if name not in offered:
            continue
        tool = offered[name]
        if name in _EDITORS:
            return tool, _arguments(tool, {"path": arguments["path"], "command": "view"})
        if name == "apply_patch":
            patch = (
                f"*** Begin Patch\n*** Update File: {arguments['path']}\n@@\n"
                f"-{arguments['old']}\n+{arguments['new']}\n*** End Patch\n"
            )
            return tool, patch if tool.kind == "custom" else {"input": patch}
        return tool, _arguments(tool, arguments)
    shell = next((offered[name] for name in _NAMES["bash"] if name in offered), None)
    commands = {
        "read": "cat {path}",
        "edit": "sed -i 's/{old}/{new}/' {path}",
        "write": "printf '%s' '{content}' > {path}",
    }
    if shell is None or kind not in commands:
        return None
    return shell, _arguments(shell, {"command": commands[kind].format(**arguments)})


def _arguments(tool: Tool, wanted: Body) -> Body:
    """Returns arguments under the names in the tool's schema; fills in missing required ones."""
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    properties: Body = schema.get("properties") or {}
    found: Body = {}
    for key, value in wanted.items():
        name = next((name for name in _ALIASES.get(key, (key,)) if name in properties), None)
        if name is None and key not in _ALIASES:
            if key in properties or schema.get("additionalProperties") is not False:
                found[key] = value
        elif name is not None:
            is_list = properties[name].get("type") == "array"
            found[name] = _LISTS.get(name, lambda value: value)(value) if is_list else value
    if "edits" in properties and "old" in wanted and not set(_ALIASES["old"]) & set(found):
        inner = (properties["edits"].get("items") or {}).get("properties") or {}
        old = next((name for name in _ALIASES["old"] if name in inner), "oldText")
        new = next((name for name in _ALIASES["new"] if name in inner), "newText")
        found["edits"] = [{old: wanted["old"], new: wanted["new"]}]
    for name in schema.get("required") or []:
        if name not in found:
            about = properties.get(name) or {}
            least = _LEAST.get(str(about.get("type")), "why this is done: a test")
            found[name] = about["enum"][0] if about.get("enum") else least
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path
    pace = float(os.environ.get("PACE") or 0)
    lock = threading.Lock()
    count = 0
    played: ClassVar[set[str]] = set()

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._reply(200, b"")

    def do_GET(self) -> None:
        self._note("GET")
        model = {"id": "mock-model", "object": "model", "created": 1, "owned_by": "mock"}
        models = {"object": "list", "data": [model], "models": [], "has_more": False}
        self._reply(200, models if "models" in self.path else {})

    def do_POST(self) -> None:
        raw = self._body()
        api = api_of(self.path)
        try:
            body = json.loads(raw)
        except ValueError:
            api, body = "other", {}
        if api == "other":
            self._note("POST", raw)
            self._reply(200, {})
            return
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _CREDENTIALS}
        record = {"path": self.path, "headers": headers, "api": api, "request": body}
        if api == "count":
            self._reply(200, {"input_tokens": 100, "totalTokens": 100})
            return
        answer, step = next_answer(read_request(self.path, body), body)
        pace = step.get("pace", self.pace)
        if not answer.text and not answer.calls:
            answer = Answer("Done.", tokens=answer.tokens)
        full, stream = write_answer(api, body, answer)
        streams = bool(body.get("stream")) or "streamGenerateContent" in self.path
        fault = step.get("fault") if self._is_first(step) else None
        if status := fault if isinstance(fault, int) else step.get("status"):
            kind = "overloaded_error" if status == 529 else "invalid_request_error"
            error = {"type": kind, "message": "a scripted error"}
            self._write({**record, "status": status, "response": None})
            self._reply(status, {"type": "error", "error": error})
            return
        if fault and streams:
            self._write({**record, "status": 200, "response": None, "fault": fault})
            with contextlib.suppress(ConnectionError):
                self._fail(stream, str(fault), pace)
            return
        file = self._write({**record, "status": 200, "response": full})
        time.sleep(step.get("delay", 0))
        try:
            if self._is_gone():
                raise ConnectionAbortedError
            if streams and pace:
                self._stream(stream.split("\n\n"), pace)
            elif streams:
                self._reply(200, stream.encode(), "text/event-stream")
            else:
                self._reply(200, full)
        except ConnectionError:  # the agent was interrupted
            partly = {**record, "status": 200, "response": full, "received": False}
            file.write_text(json.dumps(partly, ensure_ascii=False, indent=1), encoding="utf-8")

    def _is_first(self, step: Body) -> bool:
        """Returns whether a step is played for the first time: faults happen once."""
        with _Handler.lock:
            key = json.dumps(step, sort_keys=True)
            is_first = key not in _Handler.played
            _Handler.played.add(key)
        return is_first

    def _is_gone(self) -> bool:
        """Returns whether the agent closed the connection while it waited."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _fail(self, stream: str, fault: str, pace: float) -> None:
        """Sends a stream up to the middle of its last block, then an error event or nothing."""
        events = stream.split("\n\n")
        deltas = [at for at, event in enumerate(events) if "content_block_delta" in event]
        sent = events[: deltas[-1]]
        if fault == "error event":
            error = {"type": "overloaded_error", "message": "Overloaded"}
            sent.append(f"event: error\ndata: {json.dumps({'type': 'error', 'error': error})}")
        self._stream(sent, pace)

    def _stream(self, events: Sequence[str], pace: float) -> None:
        """Sends events one by one, pausing `pace` seconds before each block and the end.

        Raises ConnectionError if the agent has closed the connection.
        """
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            if pace and _SLOW.search(event):
                time.sleep(pace)
            if self._is_gone():
                raise ConnectionAbortedError
            if event:
                self.wfile.write(f"{event}\n\n".encode())

    def _body(self) -> bytes:
        data = b""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        return gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data

    def _reply(self, code: int, data: bytes | Body, kind: str = "application/json") -> None:
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _write(self, record: Body) -> Path:
        """Writes an exchange under the next number and returns its file."""
        with _Handler.lock:
            _Handler.count += 1
            file = self.folder / f"{_Handler.count:03d}.json"
        file.write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")
        return file

    def _note(self, method: str, raw: bytes = b"") -> None:
        with _Handler.lock, (self.folder / "other.log").open("a", encoding="utf-8") as log:
            log.write(f"{method} {self.path} {raw[:300]!r}\n")


def main() -> None:
    port, _Handler.folder = int(sys.argv[1]), Path(sys.argv[2])
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    main()
