"""Finds turns of datasets that would teach a model to invent the output of a tool.

In some datasets a call is prose that no parser recognises; its result follows, and the next answer
depends on it. In others the assistant's own text contains the output of the tool. Neither turn may
be a target, and the later turns have no cause that a model could see.
Source: docs/formats/sharegpt.md, "What is left out".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import Message, Part, Reasoning, Text, ToolCall, ToolResult, Unparsed

_FLATTENED = re.compile(
    r"^\W*(?:Action(?: Input)?|Function(?: Name| Input)?|Tool(?: Name| Input)?) ?\d*\W*:"
    r"(?s:.*?)^\W*(?:Observation|(?:Function|Tool) (?:Output|Response|Result)) ?\d*\W*:"
    r"|^FUNCTION RESPONSE:",
    re.MULTILINE,
)
"""A call as prose and, on a later line, the output of the tool."""
_OUTPUT = r"(?:tool|function|code|exec(?:ution)?|execute|search)[_-]?(?:result|response|output)s?"
_TAGGED = re.compile(
    rf"""
    </(?:code|python|bash|sql|search|query|browse|tool|tool_call|function_call|call|action|execute)>
    \s* <(?:{_OUTPUT}|interpreter|information|results?|observations?|output|execution|documents?)>
    | ^```[ \t]*\n\s* ^```(?:{_OUTPUT}|output)\b      # NuminaMath-TIR, ToRA, Gemma
    | <llm-code-output>                                # OpenMathInstruct
    | <\|(?:start|begin)?_?(?:of)?_?(?:{_OUTPUT}|exec|execution|observation|documents?)\|>
    """,
    re.MULTILINE | re.VERBOSE | re.ASCII,
)
"""A call in the markup of a dataset and, directly after it, the output of the tool."""
_MARKS = ("</", "```", "<|", "<llm-code-output>")
"""Texts of which each markup has one; to look for them is much faster than the pattern."""


def end_at_made_up(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Returns the messages with an `Unparsed` part in each turn at which a sample must end.

    bad_call       results follow a turn that has no calls, so a call is in its prose
    orphan_result  the turn follows results that belong to no call
    flattened      the turn's text contains a call and the tool's answer
    """
    marked: list[Message] = []
    asking: int | None = None  # position of the assistant turn that the next results answer
    calls = results = 0
    orphan = False
    for message in messages:
        kept = message
        if message.role == "assistant":
            if not marked or marked[-1].role != "assistant":
                calls = results = 0
            calls += sum(isinstance(part, ToolCall) for part in message.parts)
            asking = len(marked)
            if orphan:
                kept = _marked(message, "orphan_result")
            elif any(map(_is_flattened, message.parts)):
                kept = _marked(message, "flattened")
            orphan = False
        elif message.role == "tool":
            results += sum(isinstance(part, ToolResult) for part in message.parts)
            if results > calls and asking is not None and (calls == 0 or _ends(marked[asking])):
                marked[asking] = _marked(marked[asking], "bad_call")
            else:
                orphan = orphan or results > calls
        else:
            asking, calls, results = None, 0, 0
        marked.append(kept)
    return tuple(marked)


def _is_flattened(part: Part) -> bool:
    if not isinstance(part, Text | Reasoning):
        return False
    marked = any(mark in part.text for mark in _MARKS)
    return bool(_FLATTENED.search(part.text) or (marked and _TAGGED.search(part.text)))


def _ends(message: Message) -> bool:
    return any(isinstance(part, Unparsed) for part in message.parts)


def _marked(message: Message, code: str) -> Message:
    """Adds an `Unparsed` with the code to a turn, unless the turn has one."""
    if _ends(message):
        return message
    return replace(message, parts=(*message.parts, Unparsed("", code)))
