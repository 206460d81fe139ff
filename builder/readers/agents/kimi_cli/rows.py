"""Converts rows of a Kimi CLI context to messages.

Source: docs/formats/kimi-cli.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.conversation import (
    Content,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers.toolkit.chat_messages import content as contents
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none
from builder.sources.source import Record, Source

Row = dict[str, Json]

_NOTICE = re.compile(r"\s*<(system|system-reminder)>(?:(?!</\1>).)*</\1>\s*", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")


def rows(source: Source) -> Iterator[Record | Problem]:
    """Yields the rows of a file; strings may contain unescaped control characters."""
    for item in source.lines():
        if isinstance(item, Problem):
            yield item
            continue
        number, line, ended = item
        try:
            yield source.seen(f"line {number}", _lenient(line))
        except JsonFault as fault:
            problem = fault.at(f"line {number}")
            cut = not ended and fault.code in ("bad_json", "bad_utf8")
            yield Problem("truncated", problem.where, problem.detail) if cut else problem


def _lenient(line: bytes) -> Json:
    try:
        return loads(line)
    except JsonFault:
        return loads(_CONTROL.sub(lambda found: b"\\u%04x" % found[0][0], line))


def row_message(row: Row, failed: frozenset[str]) -> Message:
    """Returns the message of a row. `failed`: ids of calls with tools that reported an error."""
    role = as_str(row.get("role"))
    content = row.get("content")
    if role == "assistant":
        return Message(role, (*_answer_parts(content), *_calls(row.get("tool_calls"))))
    parts = contents(content)
    if role == "tool":
        call_id = name_or_none(row.get("tool_call_id"))
        first = parts[0] if parts else None
        noted = isinstance(first, Text) and first.text.startswith("<system>ERROR")
        return Message(role, (ToolResult(parts, call_id, is_error=noted or call_id in failed),))
    if role == "user":
        return Message(role, tuple(map(_marked, parts)))
    return Message(role, parts)


def _marked(part: Content) -> Part:
    """Marks text in `<system>` tags in a user message (a checkpoint, a notice) as harness text."""
    if isinstance(part, Text) and _NOTICE.fullmatch(part.text):
        return Text(part.text, harness=True)
    return part


def _answer_parts(content: Json) -> Iterator[Part]:
    if isinstance(content, str):
        yield Text(content)
    for value in as_list(content):
        block = as_dict(value)
        match block.get("type"):
            case "text":
                yield Text(as_str(block.get("text")))
            case "think":
                if thought := as_str(block.get("think")):  # empty where it is encrypted
                    yield Reasoning(thought)
            case kind:
                yield Unparsed(as_str(kind), "unknown_part")


def _calls(tool_calls: Json) -> Iterator[ToolCall]:
    for value in as_list(tool_calls):
        call = as_dict(value)
        function = as_dict(call.get("function"))
        name, call_id = as_str(function.get("name")), name_or_none(call.get("id"))
        yield ToolCall(name, function.get("arguments"), call_id)
