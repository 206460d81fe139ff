"""Turns of datasets that would teach a model to make up the output of a tool.

Datasets that write calls as text lose some: a call is in prose that no parser knows, its result
follows, and the next answer rests on it. Others put the tool's words into the assistant's own text.
Neither turn may be learnt, and what follows has no cause that a model could see.
Source: function-calling-datasets.md, "Glaive", "Cross-dialect traps".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import Message, Text, ToolCall, ToolResult, Unparsed

_FLATTENED = re.compile(
    r"^\W*(?:Action(?: Input)?|Function(?: Name| Input)?|Tool(?: Name| Input)?) ?\d*\W*:"
    r"(?s:.*?)^\W*(?:Observation|(?:Function|Tool) (?:Output|Response|Result)) ?\d*\W*:"
    r"|^FUNCTION RESPONSE:",
    re.MULTILINE,
)
"""A call as prose and, on a later line, the output of the tool."""


def end_at_made_up(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Returns the messages with the turns marked at which a sample must end.

    The mark is a part `Unparsed` with one of these codes: `bad_call`: results answer a turn that
    calls nothing, so its call is in its prose; `orphan_result`: the turn was answered after results
    that no call asked for; `flattened`: its text contains a call and the tool's answer to it.
    """
    found: list[Message] = []
    asking: int | None = None  # the place of the assistant turn that the next results answer
    calls = results = 0
    orphan = False
    for message in messages:
        kept = message
        if message.role == "assistant":
            if not found or found[-1].role != "assistant":
                calls = results = 0
            calls += sum(isinstance(part, ToolCall) for part in message.parts)
            asking = len(found)
            if orphan:
                kept = _marked(message, "orphan_result")
            elif any(isinstance(p, Text) and _FLATTENED.search(p.text) for p in message.parts):
                kept = _marked(message, "flattened")
            orphan = False
        elif message.role == "tool":
            results += sum(isinstance(part, ToolResult) for part in message.parts)
            if results > calls and asking is not None and (calls == 0 or _ends(found[asking])):
                found[asking] = _marked(found[asking], "bad_call")
            else:
                orphan = orphan or results > calls
        else:
            asking, calls, results = None, 0, 0
        found.append(kept)
    return tuple(found)


def _ends(message: Message) -> bool:
    return any(isinstance(part, Unparsed) for part in message.parts)


def _marked(message: Message, code: str) -> Message:
    """Returns a turn that ends the sample; the turn itself if it already does."""
    if _ends(message):
        return message
    return replace(message, parts=(*message.parts, Unparsed("", code)))
