"""Reads chat messages whose calls are `<function=…>` text, and types such calls by definitions.

Two dialects use these tags (docs/formats/swe-smith.md). In that of OpenHands, SWE-smith, SWE-Gym
and R2E-Gym, results have the role user: the message after a turn with calls is its result. In that
of Qwen3-Coder the tags are inside `<tool_call>`, and results are as in other rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from builder.conversation import Json, Message, Part, Text, ToolCall, ToolResult, Unparsed
from builder.readers.toolkit import function_text
from builder.readers.toolkit.chat_messages import content, reasoning
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.thoughts import read_thoughts
from builder.readers.toolkit.unknown_keys import noted

_BARE = re.compile(r"(?<!<tool_call>)(?<!<tool_call>\n)^<function=[\w.-]+>", re.MULTILINE)
_OPENHANDS_RESULT = "EXECUTION RESULT of ["
_ROLES = frozenset({"system", "user", "assistant"})
_WRAPPED = frozenset({"old_str", "new_str", "file_text"})
"""Parameters whose values SWE-smith writes on separate lines."""


def has_function_calls(items: Iterable[Json]) -> bool:
    """Returns whether messages have calls or definitions in OpenHands' dialect, none in another."""
    messages = [as_dict(item) for item in items]
    if not all(as_str(item, "role") in _ROLES for item in messages):
        return False
    if any(item.get("tool_calls") or item.get("function_call") for item in messages):
        return False
    if messages and function_text.HEADING in (text := text_of(messages[0].get("content"))):
        return function_text.take_definitions(text, Counter())[1] is not None
    return any(
        item["role"] == "assistant" and _BARE.search(text_of(item.get("content")))
        for item in messages
    )


def text_of(value: Json) -> str:
    """Returns the text of a message's content: a string, or the texts of its parts."""
    if isinstance(value, list):
        return "".join(as_str(part, "text") for part in value)
    return as_str(value)


def function_messages(
    items: Sequence[Json], changes: Counter[str]
) -> tuple[list[Message], tuple[Json, ...] | None]:
    """Returns the messages of OpenHands' dialect, and the definitions in the system text or None.

    `changes` counts `tools_preamble`.
    """
    rows = [as_dict(item) for item in items]
    openhands = any(text_of(row.get("content")).startswith(_OPENHANDS_RESULT) for row in rows)
    tools: tuple[Json, ...] | None = None
    messages: list[Message] = []
    for row in rows:
        role, value = as_str(row.get("role")), row.get("content")
        if role == "assistant":
            types = function_text.parameter_types(tools)
            wrapped = None if openhands else _WRAPPED
            parts: list[Part] = []
            for part in read_thoughts((*reasoning(row), *content(value)), changes):
                if isinstance(part, Text):
                    parts += function_text.assistant_parts(part.text, types, wrapped, changes)
                else:
                    parts.append(part)
            message = Message(role, tuple(parts))
        elif role == "user" and messages and calls(messages[-1]):
            message = Message("tool", (ToolResult(content(value)),))
        else:
            if role == "system" and tools is None and value:
                value, tools = function_text.take_definitions(text_of(value), changes)
            message = Message(role[:40], content(value))
        messages += noted([message], row)
    return messages, tools


def with_function_calls(
    messages: Iterable[Message], tools: tuple[Json, ...] | None, changes: Counter[str]
) -> tuple[Message, ...]:
    """Returns the messages with the calls in Qwen3-Coder's tags, which the tags' parser left over.

    Their values are text; the definitions say which are of another type.
    """
    messages = tuple(messages)
    types: function_text.Types | None = None
    completed: list[Message] = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            read: tuple[Part, ...] = (part,)
            if isinstance(part, Unparsed) and part.text.startswith("<function="):
                types = function_text.parameter_types(tools) if types is None else types
                trial: Counter[str] = Counter()
                one = function_text.assistant_parts(part.text, types, None, trial)
                if all(isinstance(item, ToolCall) for item in one):
                    changes.update(trial)
                    read = one
            parts += read
        same = len(parts) == len(message.parts) and all(map(_is, parts, message.parts))
        completed.append(message if same else replace(message, parts=tuple(parts)))
    return tuple(completed)


def _is(one: object, other: object) -> bool:
    return one is other
