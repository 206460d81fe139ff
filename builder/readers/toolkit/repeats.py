"""Marks answers that several conversations of a log contain, so that each is a target once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import REPEAT, Message, Part, ToolCall


def mark_repeats(messages: Iterable[Message], targets: set[str]) -> list[Message]:
    """Marks answers that are in `targets` as repeats and adds the others to `targets`.

    An answer is identified by the log's id of its turn, else by its parts.
    """
    marked = []
    for message in messages:
        if message.role != "assistant" or message.untrained is not None:
            marked.append(message)
            continue
        answer = message.turn or repr([without_key(part) for part in message.parts])
        marked.append(replace(message, untrained=REPEAT) if answer in targets else message)
        targets.add(answer)
    return marked


def without_key(part: Part) -> Part:
    """Returns the part, a call without its key: the keys of an answer and its copy may differ."""
    return replace(part, key=None) if isinstance(part, ToolCall) else part
