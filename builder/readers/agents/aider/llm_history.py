"""Reads the files of `--llm-history-file`. Source: docs/formats/aider.md, "History of requests".

A record is a request with its answer, in full, so each is a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import REPEAT, Context, Conversation, Event, Message, Part, Text
from builder.problem import Problem
from builder.readers.agents.aider.chat_history import answer_parts

REQUEST = re.compile(rb"^TO LLM (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[ \t]*\r?$", re.M)
_RESPONSE = re.compile(r"^LLM RESPONSE \d{4}-\d\d-\d\dT[\d:]+[ \t]*\r?$", re.M)
_ROLE = re.compile(r"([A-Z]+) ?(.*)", re.DOTALL)


def read_exchange(number: int, name: str, text: str, written: set[str]) -> Iterator[Event]:
    """Yields the conversation of a request; `written` are the answers so far, and is extended.

    Assistant messages of the request that are no answer of this log are the program's own: examples
    and `Ok.`
    """
    where = f"request {number}"
    request, *responses = _RESPONSE.split(text)
    messages = list(_messages(request))
    answers = [body for body in map(_unmarked, responses) if body[1].strip()]
    if not answers:
        yield Problem("no_response", where, "the request has no answer")
        return
    found: list[Message] = []
    for message in messages:
        if message.role != "assistant":
            found.append(message)
            continue
        text = "".join(part.text for part in message.parts if isinstance(part, Text))
        code = REPEAT if text.strip() in written else "inserted"
        if code == "inserted" and found and found[-1].role == "user":
            parts = tuple(
                Text(part.text, harness=True) if isinstance(part, Text) else part
                for part in found[-1].parts
            )
            found[-1] = replace(found[-1], parts=parts)
        found.append(replace(message, untrained=code))
    text = answers[-1][1].strip("\n")
    parts = tuple(answer_parts(text))
    written.add("".join(part.text for part in parts if isinstance(part, Text)).strip())
    found.append(Message("assistant", parts))
    yield Conversation(
        id=name,
        record=where,
        messages=tuple(found),
        tools=(),
        records=1,
        recorded=True,
        context=Context("rendered"),
    )


def _messages(text: str) -> Iterator[Message]:
    """Yields the messages of a request, which dashes separate."""
    for block in re.split(r"^-------[ \t]*\r?$", text, flags=re.M):
        role, body = _unmarked(block)
        if role:
            yield Message(role, tuple(_parts(body)))


def _parts(text: str) -> Iterator[Part]:
    if text.strip():
        yield Text(text)


def _unmarked(block: str) -> tuple[str, str]:
    """Returns (role, text) of lines that each begin with the role; ("", "") without lines."""
    role = ""
    lines = []
    for line in block.strip("\r\n").split("\n"):
        found = _ROLE.fullmatch(line.rstrip("\r"))
        if found is None or (role and found[1] != role):
            lines.append(line)
            continue
        role = role or found[1]
        lines.append(found[2])
    return role.lower(), "\n".join(lines) if role else ""
