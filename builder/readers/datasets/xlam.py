"""Reads xLAM rows (query, tools, answers) and Hammer's datasets in the same shape.

Source: docs/formats/xlam.md; MadeAgents/Hammer data/ @ff415d99
(Apache-2.0). A row is a single turn: the calls that answer a query, without results. In Hammer's
API-Bank rows the query is a dialogue with earlier calls as text, and rows extend one another, so
the same call after the same text is one call. Hammer's training rows contain the tools and the
query in sections of one prompt, and the calls as text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

from builder.conversation import (
    Content,
    Conversation,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import JsonFault, dumps, json_type
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.datasets.chat_rows import published
from builder.readers.toolkit import literals, tags
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.rows import read_each, row_name, splits
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.sources.source import Source

_CUE = "Generate API Request:"
"""The text by which API-Bank's program requests a call at the end of the dialogue."""
_FENCE = "```"
_TOOLS, _QUERY, _TASK = "AVAILABLE TOOLS", "QUERY", "TASK INSTRUCTION"


def recognise(source: Source) -> str | None:
    """Claims rows of query, tools and answers, or Hammer's prompt of sections."""
    for row in source.peek.objects:
        if {"query", "tools", "answers"} <= set(row):
            return "rows of query, tools and answers"
        if "output" in row and f"[BEGIN OF {_TOOLS}]" in as_str(row.get("instruction")):
            return "rows of instruction and output with a section of tools"
    return None


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    if "query" in row:
        messages = _dialogue(row["query"], row.get("answers"), changes)
        if messages[-1].parts and (thoughts := thoughts_of_keys(row)):
            last = messages.pop()
            messages.append(replace(last, parts=(*thoughts, *last.parts)))
        tools: Json = row.get("tools")
    else:
        prompt = as_str(row.get("instruction"))
        tools = _section(prompt, _TOOLS)
        if tools is None or _section(prompt, _QUERY) is None:
            return Problem("unknown_shape", where, "neither query nor a prompt of sections")
        messages = _sections(prompt, as_str(row.get("input")), row.get("output"), changes)
    problems: tuple[Problem, ...] = ()
    defined: tuple[Json, ...] | None = None
    try:
        defined = _definitions(tools, changes)
    except JsonFault as fault:
        problems = (Problem("bad_tools", where, fault.detail, records=0),)
    if not messages:
        return Problem("no_messages", where, "neither query nor answers can be read")
    name = row_name(where, row.get("id"), names)
    return published(name, where, messages, defined, changes, problems)


def _definitions(value: Json, changes: Counter[str]) -> tuple[Json, ...] | None:
    """Returns the definitions in a list, in one object, or in text. Raises JsonFault."""
    if isinstance(value, str):
        value = literals.value(value, changes) if value.strip() else []
    return None if value is None else tuple(value) if isinstance(value, list) else (value,)


def _section(prompt: str, name: str) -> str | None:
    """Returns the text of a section of Hammer's prompt, or None."""
    _, begin, rest = prompt.partition(f"[BEGIN OF {name}]")
    body, end, _ = rest.partition(f"[END OF {name}]")
    return body.strip() if begin and end else None


def _sections(prompt: str, given: str, output: Json, changes: Counter[str]) -> list[Message]:
    """Reads Hammer's prompt: its task is the system text; its output format is dropped."""
    changes["tools_preamble"] += 1
    task = _section(prompt, _TASK)
    query = "\n".join(text for text in (_section(prompt, _QUERY), given) if text)
    messages = [Message("system", (Text(task),))] if task else []
    answer = _fenced(output, changes) if isinstance(output, str) else _answers(output, changes)
    return [*messages, Message("user", (Text(query),)), Message("assistant", tuple(answer))]


def _fenced(text: str, changes: Counter[str]) -> list[Part]:
    """Returns the calls of a text that is a list of calls, with or without fences, or the text."""
    body = text.strip()
    if body.startswith(_FENCE) and body.endswith(_FENCE):
        body = body.strip("`").removeprefix("json").strip()
    if not body.startswith("["):
        return [Text(text)] if text else []
    return _answers(body, changes)


def _answers(value: Json, changes: Counter[str]) -> list[Part]:
    """Returns the calls in an answers column: a list, or its text; [] if nothing is called."""
    if isinstance(value, str):
        try:
            value = literals.value(value, changes)
        except JsonFault:
            return [Unparsed(as_str(value), "bad_call")]
    if value is None:
        return []
    calls: list[Part] = []
    for item in value if isinstance(value, list) else [value]:
        call = as_dict(item)
        if "tool" in call and "name" not in call:  # Seal-Tools
            call = {"name": call["tool"], "arguments": call.get("parameters")}
        calls.append(tags.call_of(call) or Unparsed(dumps(item), "bad_call"))
    return calls


def _dialogue(query: Json, answers: Json, changes: Counter[str]) -> list[Message]:
    """Returns the messages of the query, which is a text or a dialogue, and of its answers."""
    calls = _answers(answers, changes)
    if not isinstance(query, list):
        unread = unknown_part(f"query {json_type(query)}")
        asked = Text(query) if isinstance(query, str) else unread
        return [Message("user", (asked,)), Message("assistant", tuple(calls))]
    messages: list[Message] = []
    so_far = hashlib.blake2b(digest_size=16)
    for item in query:
        turn = as_dict(item)
        role, text = as_str(turn.get("role")), as_str(turn.get("content"))
        words: tuple[Content, ...] = (Text(text),)
        if not isinstance(turn.get("content"), str):
            words = (unknown_part(f"content {json_type(turn.get('content'))}"),)
        if text.endswith(_CUE):
            text = text.removesuffix(_CUE).removesuffix("\n")
            words = (*((Text(text),) if text else ()), Text(_CUE, harness=True))
        if role == "tool":
            messages.append(Message("tool", (ToolResult(words),)))
        elif role == "assistant":
            parts = _keyed(_fenced(text, changes), so_far.hexdigest())
            messages.append(Message("assistant", parts))
        else:
            messages.append(Message("assistant" if role == "agent" else role, words))
        so_far.update(dumps([role, text]).encode("utf-8", "surrogatepass"))
    return [*messages, Message("assistant", _keyed(calls, so_far.hexdigest()))]


def _keyed(parts: list[Part], so_far: str) -> tuple[Part, ...]:
    """Returns the parts with keys of calls that other rows share if they repeat the text before."""
    return tuple(
        replace(part, key=f"{so_far}:{number}") if isinstance(part, ToolCall) else part
        for number, part in enumerate(parts)
    )


READER = Reader(
    name="xlam",
    summary="xLAM and Hammer rows: query, tools and answers; Hammer's instruction and output",
    evidence=("documentation", "files"),
    recognise=recognise,
    read=read_each(_row, {"query", "answers", "instruction", "output"}),
    splits=splits,
)
