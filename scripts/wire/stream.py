"""Drives an agent through its stream of JSON lines: stream.py STEP… -- COMMAND….

Steps: `user:TEXT`, `image:TEXT` (text with dot.png), `wait:SECONDS`, `result` (waits for
the end of an answer), `interrupt`, `kill` (the last step: ends the process without notice),
`model:NAME`, `mode:NAME` (of permissions), `shell:COMMAND`, `allow` and `deny:TEXT` (wait for a
permission question and answer it), `choose:LABEL` (the same for a question to the user). The
protocol is that of Claude Code's `--input-format stream-json`.
"""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_PATIENCE = 40.0


class _Process:
    """The agent's process; its output is sorted into results and questions."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.results: queue.Queue[dict[str, Any]] = queue.Queue()
        self.questions: queue.Queue[dict[str, Any]] = queue.Queue()
        self._sent = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            print(line, end="", flush=True)
            event = json.loads(line)
            if event.get("type") == "result":
                self.results.put(event)
            elif event.get("type") == "control_request":
                self.questions.put(event)

    def send(self, value: dict[str, Any]) -> None:
        """Writes one line to the agent."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def control(self, **request: Any) -> None:
        """Sends a control request, such as an interruption."""
        self._sent += 1
        identity = f"harness-{self._sent}"
        self.send({"type": "control_request", "request_id": identity, "request": request})

    def answer(self, question: dict[str, Any], reply: dict[str, Any]) -> None:
        """Answers a permission question."""
        identity = question["request_id"]
        response = {"subtype": "success", "request_id": identity, "response": reply}
        self.send({"type": "control_response", "response": response})

    def kill(self) -> None:
        """Ends the process without notice."""
        self._process.kill()
        self._process.wait(timeout=_PATIENCE)

    def close(self) -> None:
        """Closes the input and waits for the process to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=_PATIENCE)


def _typed(content: str | list[dict[str, Any]]) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "session_id": ""}


def main() -> None:
    at = sys.argv.index("--")
    steps, agent = sys.argv[1:at], _Process(sys.argv[at + 1 :])
    agent.control(subtype="initialize", hooks={})
    for step in steps:
        kind, _, text = step.partition(":")
        match kind:
            case "user":
                agent.send(_typed(text))
            case "image":
                data = base64.b64encode(Path("dot.png").read_bytes()).decode()
                source = {"type": "base64", "media_type": "image/png", "data": data}
                content: list[dict[str, Any]] = [
                    {"type": "image", "source": source},
                    {"type": "text", "text": text},
                ]
                agent.send(_typed(content))
            case "kill":
                agent.kill()
                return
            case "wait":
                time.sleep(float(text))
            case "result":
                agent.results.get(timeout=_PATIENCE)
            case "interrupt":
                agent.control(subtype="interrupt")
            case "model":
                agent.control(subtype="set_model", model=text)
            case "mode":
                agent.control(subtype="set_permission_mode", mode=text)
            case "shell":
                subprocess.run(text, shell=True, check=True)  # noqa: S602 - the scenario's own
            case "allow" | "deny" | "choose":
                question = agent.questions.get(timeout=_PATIENCE)
                asked = question["request"].get("input", {})
                reply = {"behavior": "deny", "message": text}
                if kind == "choose":
                    answers = {item["question"]: text for item in asked["questions"]}
                    asked = {**asked, "answers": answers}
                if kind != "deny":
                    reply = {"behavior": "allow", "updatedInput": asked}
                agent.answer(question, reply)
            case _:
                raise SystemExit(f"no such step: {step}")
    agent.close()


if __name__ == "__main__":
    main()
