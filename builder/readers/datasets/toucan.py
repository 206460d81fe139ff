"""Reads Toucan-1.5M rows: messages as JSON text, tools declared in the system text or a column.

Source: docs/formats/toucan.md; neulab/agent-data-protocol
datasets/toucan_1_5m @3824726 (rows and the roles that occur). The text of a turn and each of its
calls are consecutive messages, followed by the results in the same order; nothing has ids. The
system text of Kimi-K2's rows is a declaration of tools between special tokens. Rows for fine-tuning
have the roles tool_call (the text of a Python dictionary) and tool_response.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import Conversation, Json, Message, Part, Text, ToolResult, Unparsed
from builder.jsonio import JsonFault, dumps
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.datasets.chat_rows import published
from builder.readers.toolkit import literals, tags
from builder.readers.toolkit.chat_messages import assistant_parts, content, tool_result
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.rows import read_each, row_name, splits
from builder.readers.toolkit.unknown_keys import noted
from builder.sources.source import Source

_DECLARED = re.compile(
    r"<\|im_system\|>\s*tool_declare\s*<\|im_middle\|>(?P<tools>.*?)(?:<\|im_end\|>\s*|\Z)",
    re.DOTALL,
)
_TAGS = ("</think>", "<tool_call>")
_COLUMNS = frozenset({
    "subset_name", "question", "target_tools", "available_tools", "question_quality_assessment",
    "response_quality_assessment", "message_num_words",
})  # fmt: skip
_RESULTS = frozenset({"function", "tool", "tool_response"})


def recognise(source: Source) -> str | None:
    """Claims rows with a uuid, messages, and a subset or the intended tools."""
    for row in source.peek.objects:
        if {"uuid", "messages"} <= row.keys() and ("subset_name" in row or "target_tools" in row):
            return "rows of uuid and messages with subset_name or target_tools"
    return None


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    problems: list[Problem] = []
    try:
        items = literals.column(row.get("messages"), changes)
    except JsonFault as fault:
        return Problem("bad_json", where, f"messages: {fault.detail}")
    if not isinstance(items, list) or not items:
        return Problem("no_messages", where, "the row has no messages")
    messages = _messages(items, changes)
    tools: tuple[Json, ...] | None = None
    try:
        messages, declared = _without_tools(messages, changes)
        tools = _definitions((declared, row.get("available_tools"), row.get("tools")), changes)
    except JsonFault as fault:
        problems.append(Problem("bad_tools", where, fault.detail, records=0))
    if not messages:
        return Problem("no_messages", where, "nothing but a declaration of tools")
    name, complete = row_name(where, row.get("uuid"), names), messages[-1].role == "assistant"
    return published(name, where, messages, tools, changes, problems, complete=complete)


def _definitions(listed: Iterable[Json], changes: Counter[str]) -> tuple[Json, ...] | None:
    """Returns the first list of definitions that can be read, or None if there is none.

    Raises JsonFault if none can be read and one is broken.
    """
    faults: list[JsonFault] = []
    for candidate in listed:
        try:
            if isinstance(value := literals.column(candidate, changes), list):
                return tuple(value)
        except JsonFault as fault:
            faults.append(fault)
    if faults:
        raise faults[0]
    return None


def _without_tools(messages: list[Message], changes: Counter[str]) -> tuple[list[Message], Json]:
    """Returns the messages without the definitions in the system text, and these or None.

    Raises JsonFault if definitions in Hermes' tags cannot be read.
    """
    first = messages[0] if messages else Message("user", ())
    text = "".join(part.text for part in first.parts if isinstance(part, Text))
    if first.role != "system":
        return messages, None
    tools: Json = None
    if match := _DECLARED.search(text):
        tools = match["tools"]
        text = (text[: match.start()] + text[match.end() :]).strip()
        changes["tools_preamble"] += 1
    elif "<tools>" in text and "<tool_call>" in text:
        text, listed = tags.take_tools(text, changes)
        tools = None if listed is None else list(listed)
    else:
        return messages, None
    return [*([replace(first, parts=(Text(text),))] if text else []), *messages[1:]], tools


def _messages(items: list[Json], changes: Counter[str]) -> list[Message]:
    """Returns the messages; a call and the text of its answer are in messages of their own."""
    messages: list[Message] = []
    for item in items:
        message = as_dict(item)
        role = as_str(message.get("role"))
        if role in ("assistant", "tool_call"):
            if role == "tool_call":
                parts = _call(message.get("content"), changes)
            else:
                parts = _assistant(message, changes)
            read = [Message("assistant", parts)]
        elif role in _RESULTS:
            read = [Message("tool", (tool_result(message),))]
        elif role == "user" and (blocks := tags.responses(as_str(message.get("content")))):
            results = tuple(ToolResult((Text(block),)) for block in blocks)
            read = [Message("tool", results)]
        else:
            read = [Message(role[:40] or "none", content(message.get("content")))]
        messages += noted(read, message)
    return messages


def _assistant(message: dict[str, Json], changes: Counter[str]) -> tuple[Part, ...]:
    """Returns the reasoning and text, and the call logged as an object or as text."""
    call = message.get("function_call")
    parts: list[Part] = []
    for part in assistant_parts({**message, "function_call": None}):
        if isinstance(part, Text) and any(tag in part.text for tag in _TAGS):
            parts += tags.assistant_parts(part.text, changes)
        else:
            parts.append(part)
    return (*parts, *_call(call, changes)) if call else tuple(parts)


def _call(value: Json, changes: Counter[str]) -> tuple[Part, ...]:
    """Returns the calls of a value, or of the text of JSON or of a Python dictionary."""
    if isinstance(value, str):
        calls = tags.read_calls(value.strip(), changes)
    else:
        calls = tags.calls_of([value])
    text = value if isinstance(value, str) else dumps(value)
    return (Unparsed(text, "bad_call"),) if calls is None else tuple(calls)


READER = Reader(
    name="toucan",
    summary="Toucan rows: uuid, subset or target tools, and messages (JSON text, function_call)",
    evidence=("files",),
    recognise=recognise,
    read=read_each(_row, _COLUMNS),
    splits=splits,
)
