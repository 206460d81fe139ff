"""Reads Dolci's rows: calls as Python text in `function_calls`, results of role environment.

Source: docs/formats/dolci.md. The definitions are the JSON text `functions` of the system message,
whose words name tags for both, which no text contains: the training template of Olmo adds them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from builder.conversation import Conversation, Json, Message, Part, Text, ToolResult, Unparsed
from builder.jsonio import JsonFault
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.datasets.chat_rows import published
from builder.readers.datasets.toolace.text import calls_in_lines
from builder.readers.toolkit import literals
from builder.readers.toolkit.chat_messages import chat_message, text_or_data
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, json_in_text
from builder.readers.toolkit.rows import read_each, row_name, splits
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.sources.source import Source

_OWN = frozenset({"functions", "function_calls"})
_KEYS = MESSAGE_KEYS | _OWN
_FORMAT = re.compile(
    r"You are provided with function signatures within <functions></functions> XML tags\.\s*"
    r"|Output any function calls within <function_calls></function_calls> XML tags\.\s*"
)
"""Sentences that describe where the training template of Olmo puts definitions and calls."""


def recognise(source: Source) -> str | None:
    """Claims rows whose messages have `functions` and `function_calls`."""
    for row in source.peek.objects:
        for item in as_list(json_in_text(row.get("messages")))[:5]:
            if as_dict(item).keys() >= _OWN:
                return "messages with functions and function_calls"
    return None


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    items = as_dicts(json_in_text(row.get("messages")))
    if not items:
        return Problem("no_messages", where, "no list of messages")
    problems: list[Problem] = []
    listed = next((text for item in items if (text := item.get("functions"))), None)
    tools: tuple[Json, ...] | None = ()
    try:
        tools = tuple(as_list(literals.column(listed, changes)))
    except JsonFault as fault:
        problems.append(Problem("bad_tools", where, f"functions: {fault.detail}", records=0))
        tools = None
    defined = {as_str(tool, "function", "name") or as_str(tool, "name") for tool in tools or ()}
    messages: list[Message] = []
    for item in items:
        read = [*_messages(item, messages[-1:], defined - {""}, changes)]
        messages += noted(read, item, _KEYS) if read else ()
    return published(
        row_name(where, row.get("id"), names), where, messages, tools, changes, problems
    )


def _messages(
    item: dict[str, Json], before: list[Message], names: set[str], changes: Counter[str]
) -> Iterator[Message]:
    role = as_str(item.get("role"))
    if role == "environment":
        for result in _results(item.get("content"), len(calls(before[0])) if before else 0):
            yield Message("tool", (ToolResult(text_or_data(result)),))
        return
    plain = {key: value for key, value in item.items() if key not in _OWN}
    message = chat_message(plain)
    parts: list[Part] = []
    for part in message.parts:
        text = part.text if role == "system" and isinstance(part, Text) else ""
        if _FORMAT.search(text):
            changes["tools_preamble"] += 1
            part = Text(_FORMAT.sub("", text).strip())  # noqa: PLW2901 - without the sentences
        parts.append(part)
    called = item.get("function_calls")
    if isinstance(called, str) and called.strip():
        try:
            parts += calls_in_lines(called, names)
        except JsonFault:
            parts.append(Unparsed(called, "bad_call"))
    yield Message(message.role, tuple(parts))


def _results(value: Json, count: int) -> list[Json]:
    """Returns the results of so many calls, one in each line; else the value is one result."""
    lines = value.splitlines() if isinstance(value, str) and count > 1 else []
    return [*lines] if len(lines) == count else [value]


READER = Reader(
    name="dolci",
    summary="Dolci (Olmo) rows: messages with functions, function_calls, and role environment",
    evidence=("files",),
    recognise=recognise,
    read=read_each(_row, {"dataset_source", "source_dataset"}),
    splits=splits,
)
