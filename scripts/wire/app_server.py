"""Drives Codex through its app server, as editors do: app_server.py STEP… -- COMMAND….

Steps: `turn:TEXT` (a prompt, until the turn ends), `start:TEXT` (does not wait), `end` (waits for
the end of the turn), `steer:TEXT` (a message to the turn that runs), `interrupt`, `wait:SECONDS`,
`revert:NUMBER` (takes back the turn with this number and all later ones), `fork` (goes on in a fork
of the thread), and `METHOD:JSON` for any other method of the thread, with its parameters.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from typing import Any

_PATIENCE = 60.0
_TOOL = {
    "type": "function",
    "name": "weather",
    "description": "Returns the weather of a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


class _Server:
    """The server's process; its output is sorted into replies and ends of turns."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._replies: queue.Queue[dict[str, Any]] = queue.Queue()
        self._ends: queue.Queue[str] = queue.Queue()
        self._sent = 0
        self.turns: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            print(line, end="", flush=True)
            message = json.loads(line)
            method = message.get("method")
            if method is None:
                self._replies.put(message)
            elif "id" in message:  # a call of the client's own tool, or a question
                content = [{"type": "inputText", "text": "8 degrees"}]
                result = {"contentItems": content, "success": True, "decision": "accept"}
                self._send({"id": message["id"], "result": result})
            elif method == "turn/started":
                self.turns.append(message["params"]["turn"]["id"])
            elif method == "turn/completed":
                self._ends.put(message["params"]["turn"]["id"])

    def _send(self, value: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def notify(self, method: str) -> None:
        """Sends a notification."""
        self._send({"method": method})

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a request and returns its result; a refusal is printed and returns {}."""
        self._sent += 1
        self._send({"id": self._sent, "method": method, "params": params})
        while (reply := self._replies.get(timeout=_PATIENCE)).get("id") != self._sent:
            pass
        result: dict[str, Any] = reply.get("result", {})
        return result

    def end(self) -> None:
        """Waits for the end of a turn."""
        self._ends.get(timeout=_PATIENCE)

    def close(self) -> None:
        """Closes the input and waits for the process to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=_PATIENCE)


def main() -> None:
    at = sys.argv.index("--")
    steps, server = sys.argv[1:at], _Server(sys.argv[at + 1 :])
    client = {"name": "harness", "title": "Harness", "version": "1.0.0"}
    server.call("initialize", clientInfo=client, capabilities={"experimentalApi": True})
    server.notify("initialized")
    settings = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
    thread = server.call("thread/start", dynamicTools=[_TOOL], **settings)["thread"]["id"]
    for step in steps:
        kind, _, text = step.partition(":")
        prompt = [{"type": "text", "text": text, "text_elements": []}]
        match kind:
            case "turn" | "start":
                server.call("turn/start", threadId=thread, input=prompt)
                if kind == "turn":
                    server.end()
            case "end":
                server.end()
            case "steer":
                turn = server.turns[-1]
                server.call("turn/steer", threadId=thread, input=prompt, expectedTurnId=turn)
            case "interrupt":
                server.call("turn/interrupt", threadId=thread, turnId=server.turns[-1])
            case "wait":
                time.sleep(float(text))
            case "revert":
                server.call("thread/revert", threadId=thread, beforeTurnId=server.turns[int(text)])
            case "fork":
                thread = server.call("thread/fork", threadId=thread, **settings)["thread"]["id"]
            case _:
                server.call(kind, threadId=thread, **json.loads(text or "{}"))
    server.close()


if __name__ == "__main__":
    main()
