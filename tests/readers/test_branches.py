"""Chats whose messages form a tree: what an answer lacks if the log does not have its parents."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from builder.conversation import Conversation, Json
from builder.readers import read_events, readers
from builder.sources.source import Source

PAIR = [("m1", "user", "Look."), ("m2", "assistant", "Yes.")]
LATER = [("m5", "user", "More?"), ("m6", "assistant", "No.")]
ABOVE = "00000000-0000-4000-8000-000000000000"


def linked(above: str | None, messages: list[tuple[str, str, str]]) -> Iterator[tuple[str, ...]]:
    for name, role, text in messages:
        yield name, above or "", role, text
        above = name


def chatgpt(above: str | None, *chains: list[tuple[str, str, str]]) -> Json:
    nodes = {}
    for number, chain in enumerate(chains):
        for name, parent, role, text in linked("m4" if number else above, chain):
            content = {"content_type": "text", "parts": [text]}
            message = {"id": name, "author": {"role": role}, "content": content}
            nodes[name] = {"id": name, "parent": parent or None, "message": message}
    return {"id": "c", "mapping": nodes, "current_node": list(nodes)[-1]}


def claude_ai(above: str | None, *chains: list[tuple[str, str, str]]) -> Json:
    messages = []
    for number, chain in enumerate(chains):
        for name, parent, role, text in linked("m4" if number else above or ABOVE, chain):
            sender = "human" if role == "user" else role
            messages.append(
                {"uuid": name, "parent_message_uuid": parent, "sender": sender, "text": text}
            )
    return {"uuid": "c", "name": "n", "chat_messages": messages}


def missing(form: str, log: Json) -> list[bool]:
    """Returns for each conversation whether all its answers lack history."""
    source = Source("conversations.json", data=json.dumps([log]).encode())
    found = [one for one in read_events(readers()[form], source) if isinstance(one, Conversation)]
    return [
        all(
            "history" in (message.context or one.context).missing
            for message in one.messages
            if message.role == "assistant"
        )
        for one in found
    ]


@pytest.mark.parametrize(
    ("form", "log"), [("chatgpt-export", chatgpt), ("claude-ai-export", claude_ai)]
)
def test_answers_after_a_message_that_the_chat_lacks_lack_history(form, log):
    assert missing(form, log(None, PAIR)) == [False]
    assert missing(form, log("lost", PAIR)) == [True]
    assert missing(form, log(None, PAIR, LATER)) == [True, False]  # the last one first
