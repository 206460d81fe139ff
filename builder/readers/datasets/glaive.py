"""Reads rows of Glaive function calling v2: a system text, and a whole chat as one text.

Source: docs/formats/glaive.md. Definitions are concatenated JSON objects in the
system text. A call is `<functioncall> {"name": "f", "arguments": '{"k": "v"}'}`, with JSON between
single quotes, without escapes. Nothing has an id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from builder.conversation import Conversation, Json, Message, Text, ToolResult
from builder.jsonio import JsonFault
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.datasets.chat_rows import published
from builder.readers.toolkit.narrow import as_str
from builder.readers.toolkit.rows import read_each, row_name, splits
from builder.readers.toolkit.tags import functioncall_parts, take_listed_tools
from builder.sources.source import Source

_ROLES = {"USER": "user", "ASSISTANT": "assistant", "FUNCTION RESPONSE": "tool"}
_END = "<|endoftext|>"
_NAMES = "USER|ASSISTANT|FUNCTION RESPONSE"
# Segments also contain paragraphs that begin with such a name.
_SEGMENTS = tuple(
    re.compile(rf"(?:\A\s*|(?<={gap})|{re.escape(_END)}\s*)({_NAMES}): ?")
    for gap in (r"\n\n\n", r"\n", r" ")
)
_GAP = re.compile(rf"\n\n\n(?:{_NAMES}):")
_SHORT = re.compile(rf"(\n\n|{re.escape(_END)}\s*)A: ")
"""The name of the assistant in some rows, after an empty line."""


def recognise(source: Source) -> str | None:
    """Claims rows with a system text and a chat of segments."""
    for row in source.peek.objects:
        chat = as_str(row.get("chat"))
        if isinstance(row.get("system"), str) and _SEGMENTS[1].match(chat):
            return "rows of system and chat with USER: and ASSISTANT: segments"
    return None


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    problems: tuple[Problem, ...] = ()
    messages = list(_messages(as_str(row.get("chat")), changes))
    if not messages:
        return Problem("unknown_shape", where, "no chat of USER: and ASSISTANT: segments")
    system = as_str(row.get("system")).strip().removeprefix("SYSTEM:").strip()
    tools: tuple[Json, ...] | None = None
    try:
        system, tools = take_listed_tools(system, changes)
    except JsonFault as fault:
        problems = (Problem("bad_tools", where, fault.detail, records=0),)
    if system:
        messages.insert(0, Message("system", (Text(system),)))
    name = row_name(where, row.get("id"), names)
    return published(name, where, messages, tools, changes, problems)


def _messages(chat: str, changes: Counter[str]) -> Iterator[Message]:
    """Yields the segments in order; consecutive segments of one role stay separate."""
    if "ASSISTANT:" not in chat:
        chat = _SHORT.sub(r"\1ASSISTANT: ", chat)
    strict, lenient, flat = _SEGMENTS  # flat: somebody replaced the line ends
    one_line = lenient if "\n" in chat else flat
    marks = list((strict if _GAP.search(chat) else one_line).finditer(chat))
    if not marks:
        return
    if before := chat[: marks[0].start()].strip():
        yield Message("none", (Text(before),))  # text without a role
    ends = [*(mark.start() for mark in marks[1:]), len(chat)]
    for mark, end in zip(marks, ends, strict=True):
        role = _ROLES[mark[1]]
        text = chat[mark.end() : end].strip()
        if role == "tool":
            yield Message("tool", (ToolResult((Text(text),)),))
        elif role == "assistant":
            text = text.removesuffix(_END).rstrip()
            yield Message("assistant", tuple(functioncall_parts(text, changes)))
        else:
            yield Message("user", (Text(text),))


READER = Reader(
    name="glaive",
    summary="Glaive v2 rows: system, and chat of USER:, ASSISTANT: and FUNCTION RESPONSE: segments",
    evidence=("documentation", "parsers"),
    recognise=recognise,
    read=read_each(_row, {"chat"}),
    splits=splits,
)
