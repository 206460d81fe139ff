"""Writes logs of Claude Code in the form of 2.1.330: lines, and the requests that they name.

The digests are computed here, by the rule observed on the wire, not by the reader's code.
"""

import copy
import hashlib
import json

from builder.conversation import Conversation
from builder.readers.agents.claude_code.reader import READER
from builder.sources.source import Source

SESSION = "0a0a0a0a-0000-4000-8000-000000000001"


def conversations(lines):
    """Returns what the reader makes of a session file with these lines."""
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return [e for e in READER.read(Source("s.jsonl", data=data)) if isinstance(e, Conversation)]


def contexts(conversation):
    """Returns the context of each target."""
    return [
        message.context or conversation.context
        for message in conversation.messages
        if message.role == "assistant" and message.untrained is None
    ]


def digest(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def text(words):
    return {"type": "text", "text": words}


def tool(name, description):
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"name": name, "description": description, "input_schema": schema}


def without_requests(lines):
    """Returns the lines as a version writes them that logs no requests."""
    return [
        {key: value for key, value in line.items() if key != "requestRef"}
        for line in lines
        if not line["type"].startswith("api-")
    ]


class SessionLog:
    """A session that grows line by line, with the history that its next request would contain."""

    def __init__(self, system="You help. Today is 2026-01-01."):
        self.lines = []
        self.history = []  # messages sent, string content as one block
        self.shape = {"system": [text(system)], "tools": [tool("Read", "Reads.")]}
        self._known = set()
        self._last = None
        self._base = []

    def _line(self, kind, **values):
        number = len(self.lines)
        parent = next((x["uuid"] for x in reversed(self.lines) if "uuid" in x), None)
        line = {"type": kind, "uuid": f"u{number}", "parentUuid": parent, "sessionId": SESSION}
        line |= {"isSidechain": False, "version": "2.1.330", **values}
        self.lines.append(line)
        return line

    def user(self, content, *, sent=True, **values):
        """Adds a user line, and its message in the next request."""
        self._line("user", message={"role": "user", "content": content}, **values)
        if sent:
            blocks = [text(content)] if isinstance(content, str) else content
            self.history.append({"role": "user", "content": blocks})

    def note(self, kind, words, **values):
        """Adds a line that is in no request, such as an error in place of an answer."""
        message = {"role": kind, "content": [text(words)]}
        if kind == "assistant":
            message |= {"id": f"note_{len(self.lines)}", "type": "message", "model": "<synthetic>"}
        return self._line(kind, message=message, **values)

    def attachment(self, words, role="system"):
        """Adds an attachment; its place in a request is up to the test."""
        rendered = [{"content": f"<system-reminder>\n{words}\n</system-reminder>"}]
        attached = {"type": "note", "words": words}
        self._line("attachment", attachment=attached, rendered=rendered, renderedRole=role)

    def sent(self, role, *blocks):
        """Adds a message of the next request that has no line."""
        message = {"role": role, "content": list(blocks)}
        self.history.append(message)
        if digest(message) not in self._known:
            self._known.add(digest(message))
            blob = {"type": "api-request-blob", "hash": digest(message), "message": message}
            self.lines.append({**blob, "sessionId": SESSION})

    def answer(self, *blocks, response=None):
        """Adds the request with the history so far, and the model's answer to it."""
        name = digest(self.shape)
        if name not in self._known:
            self._known.add(name)
            shape = {"type": "api-request-shape", "shapeHash": name, "sessionId": SESSION}
            self.lines.append({**shape, "shape": copy.deepcopy(self.shape)})
        hashes = [digest(message) for message in self.history]
        keep = 0
        while keep < min(len(hashes), len(self._base)) and hashes[keep] == self._base[keep]:
            keep += 1
        number = sum(line["type"] == "api-request" for line in self.lines)
        params = {"model": "model-x", "max_tokens": 100}
        at = len(self.history) - 1
        mark = {"path": ["messages", at, "content", 0], "value": {"type": "ephemeral"}}
        marked = copy.deepcopy(self.history)
        marked[at]["content"][0]["cache_control"] = mark["value"]
        request = {"type": "api-request", "id": f"r{number}", "shapeHash": name, "params": params}
        request |= {"keep": keep, "tail": hashes[keep:], "cacheControl": [mark]}
        request["requestDigest"] = digest({**self.shape, **params, "messages": marked})
        if self._last is not None:
            request["base"] = self._last
        self.lines.append({**request, "sessionId": SESSION, "version": "2.1.330"})
        self._last, self._base = request["id"], hashes
        for block in blocks:
            message = {"id": response or f"msg_{number}", "type": "message", "role": "assistant"}
            message |= {"model": "model-x", "content": [block], "stop_reason": "end_turn"}
            self._line("assistant", message=message, requestRef=request["id"])
        self.history.append({"role": "assistant", "content": list(blocks)})

    def ask(self, question, answer):
        """Adds a user line, and the model's answer of one text to it."""
        self.user(question)
        self.answer(text(answer))

    def call(self, name="Read", path="a.txt"):
        """Returns a call block with a new id."""
        number = sum(line["type"] == "assistant" for line in self.lines)
        return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"path": path}}

    def result(self, call, words):
        """Adds the line that answers a call."""
        self.user([{"type": "tool_result", "tool_use_id": call["id"], "content": words}])

    def data(self):
        return "".join(json.dumps(line) + "\n" for line in self.lines).encode()


def plain_session():
    """Returns a prompt surrounded by reminders, a call, a reminder after its result, an answer."""
    log = SessionLog()
    log.user("What is in a.txt?", sent=False)
    log.attachment("The project uses tabs.", role="user")
    log.attachment("Be brief.")
    reminder = "<system-reminder>\nThe project uses tabs.\n</system-reminder>\n"
    log.sent("user", text(reminder), text("What is in a.txt?"))
    log.sent("system", text("Be brief."))
    call = log.call()
    log.answer(text("I look."), call)
    log.result(call, "one\ntwo")
    log.attachment("The file is old.")
    log.sent("system", text("The file is old."))
    log.answer(text("Two lines."))
    return log
