"""Reads messages of any API, as traces log them: OpenAI, Responses, Gemini, LangChain.

In practice a list has one dialect, but nothing names it, so each item is classified by its fields.
Sources: the pages of the traces in docs/formats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from builder.conversation import (
    Content,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.readers.traces.any_vendor.parts import (
    PartNotes,
    decoded,
    read_call,
    read_parts,
    read_result,
    result_content,
    thought_of,
    without_missing,
)
from builder.readers.traces.langchain.messages import as_fields, is_message, lc_message

ROLES = {"human": "user", "model": "assistant", "ai": "assistant", "function": "tool"}
_RESULT_ITEMS = frozenset({"function_call_output", "custom_tool_call_output"})
_CALL_ITEMS = frozenset({"function_call", "custom_tool_call"})
_ITEMS = _RESULT_ITEMS | _CALL_ITEMS | {"reasoning"}
_RESULT_PARTS = frozenset({"tool-result", "tool_result", "tool_call_response"})
KNOWN_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_KEYS = MESSAGE_KEYS | {"parts", "blocks", "additional_kwargs"}
"""Keys of a message that are known."""
_PREFIX = r"(?:system|developer|user|assistant|human|ai|model|tool|function): "
_FLAT = re.compile(rf"({_PREFIX})[^\n]*\n+(?s:.*\n)?{_PREFIX}", re.IGNORECASE)
"""A whole conversation as one text."""
_FLAT_SYSTEM = re.compile(rf"((?:system|developer): )[^\n]*\n+(?s:.*\n)?{_PREFIX}", re.IGNORECASE)
"""A whole conversation as one text that begins with a system text, which no user writes."""
_REPR = re.compile(r"(?:\w*Message\()?(?:role|content)=['\"]|\[object Object\]", re.IGNORECASE)
"""The repr of a message (Agno, LangChain), or the text that JavaScript writes for an object."""


def read_messages(value: Json, notes: PartNotes) -> list[Message]:
    """Returns the messages of a list, a batch of one list (LangChain), one message or a text."""
    value = decoded(value)
    items = value if isinstance(value, list) else [value]
    if len(items) == 1 and isinstance(items[0], list) and not is_message(items[0]):
        items = items[0]
    messages: list[Message] = []
    for item in items:
        for message in _read(decoded(item), notes):
            last = messages[-1] if messages else None
            if last is not None and message.turn is not None and message.turn == last.turn:
                messages[-1] = replace(last, parts=(*last.parts, *message.parts))
            else:
                messages.append(_as_result(message, messages, notes))
    if len(messages) == 1 and _is_flat(messages[0]):
        notes.unreadable.append("flattened")
        return []
    return [
        message if message.turn is None else replace(message, turn=None)
        for message in messages
        if message.parts
    ]


def _is_flat(message: Message) -> bool:
    """Returns whether a request's only message is a user message with a whole conversation."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return message.role == "user" and len(texts) == 1 and bool(_FLAT_SYSTEM.match(texts[0]))


def _as_result(message: Message, before: Sequence[Message], notes: PartNotes) -> Message:
    """Returns a result for a message whose role is the name of a tool that was just called.

    LangGraph's instrumentation for JavaScript logs a tool message's name as its role.
    """
    if message.role in KNOWN_ROLES:
        return message
    last = next((one for one in reversed(before) if one.role != "tool"), None)
    called = calls(last) if last is not None and last.role == "assistant" else []
    content = tuple(part for part in message.parts if isinstance(part, Content))
    if message.role not in {call.name for call in called} or len(content) != len(message.parts):
        return message
    notes.changes["tool_name_as_role"] += 1
    return Message("tool", (ToolResult(content, name=message.role),))


def _read(item: Json, notes: PartNotes) -> Sequence[Message]:
    if isinstance(item, str):
        if _FLAT.match(item) or _REPR.match(item):  # its messages cannot be distinguished
            notes.unreadable.append("flattened" if _FLAT.match(item) else "repr")
            return []
        return [Message("user", (Text(item),))] if item else []
    if is_message(item):
        message = lc_message(as_fields(item))
        return [] if message is None else _split(message)
    fields = as_dict(item)
    kind = as_str(fields.get("type"))
    if kind in _ITEMS:
        return _response_item(fields, kind)
    role = name_or_none(fields.get("role"))
    if role is None:
        if isinstance(fields.get("parts"), list):
            role = "user"
        elif isinstance(fields.get("message"), dict):  # a generation, or an event of a choice
            return _read(fields["message"], notes)
        else:
            return [Message("user", (unknown_part(kind or "message"),))]
    role = ROLES.get(role, role)[:40]
    return noted(_with_role(fields, role, notes), fields, _KEYS)


def _with_role(fields: dict[str, Json], role: str, notes: PartNotes) -> Sequence[Message]:
    listed = (fields[key] for key in ("parts", "blocks") if isinstance(fields.get(key), list))
    body = next(listed, fields.get("content"))
    if role == "tool" and "parts" not in fields:
        if is_definition(body):
            notes.tools.append(body)  # Langfuse's LangChain callback appends the tools this way
            return []
        if called := calls_in_text(body):  # Koog gives its calls the role of their results
            notes.changes["calls_in_text"] += 1
            return [Message("assistant", tuple(called))]
        parts = as_list(body)
        if not any(as_str(part, "type") in _RESULT_PARTS for part in parts):
            result = read_result(fields)
            pieces = result_content(body)
            more = as_dict(fields.get("additional_kwargs"))  # LlamaIndex
            call_id = name_or_none(fields.get("tool_call_id", more.get("tool_call_id")))
            return [Message("tool", (replace(result, content=pieces, call_id=call_id),))]
    if role == "assistant":
        return _split(Message(role, tuple(_assistant(fields, body, notes))))
    return _split(Message(role, tuple(read_parts(body))))


def _assistant(fields: dict[str, Json], body: Json, notes: PartNotes) -> list[Part]:
    if called := calls_in_text(body):
        notes.changes["calls_in_text"] += 1
        return called
    more = as_dict(fields.get("additional_kwargs"))
    parts = with_thoughts(read_parts(body), fields, more)
    if refusal := as_str(fields.get("refusal")):
        parts.append(Text(refusal))
    listed = _calls(fields) or _calls(more)
    legacy = as_dict(fields.get("function_call")) or as_dict(more.get("function_call"))
    if listed or legacy:
        parts = [part for part in parts if not isinstance(part, ToolCall)]  # the same calls again
        parts += [read_call(call) for call in listed]
    if legacy and not listed:
        parts.append(read_call(legacy))
    return without_missing(parts)


def _calls(fields: dict[str, Json]) -> list[Json]:
    """Returns the calls of a message; a single call may be logged without a list."""
    value = decoded(fields.get("tool_calls"))
    return value if isinstance(value, list) else [value] if value else []


def _split(message: Message) -> list[Message]:
    """Returns the message with its results in separate messages of role tool.

    A client's results come before its text; a provider's stay where the model saw them.
    """
    parts = message.parts
    if message.role != "assistant":
        parts = tuple(sorted(parts, key=lambda part: not isinstance(part, ToolResult)))
    runs = groupby(parts, lambda part: "tool" if isinstance(part, ToolResult) else message.role)
    return [Message(role, tuple(run)) for role, run in runs]


def _response_item(fields: dict[str, Json], kind: str) -> list[Message]:
    """Returns an item of the Responses API; consecutive items of the model are one turn."""
    if kind in _RESULT_ITEMS:
        return [Message("tool", (read_result({**fields, "id": None}),))]
    if kind in _CALL_ITEMS:
        if kind == "custom_tool_call":  # free text instead of JSON becomes the only argument
            fields = {**fields, "arguments": {"input": fields.get("input")}}
        return [Message("assistant", (read_call(fields),), turn="items")]
    thought = thought_of(fields)
    return [Message("assistant", (Reasoning(thought),), turn="items")] if thought else []


def is_definition(value: Json) -> bool:
    """Returns whether a value defines a tool."""
    item = as_dict(decoded(value))
    inner = as_dict(item.get("function")) or item
    has_schema = any(key in inner for key in ("parameters", "input_schema", "inputSchema"))
    return isinstance(inner.get("name"), str) and has_schema


def calls_in_text(value: Json) -> list[Part]:
    """Returns the calls of a text that is a JSON list of OpenAI's calls (Koog), else []."""
    return openai_calls(decoded(value)) if as_str(value).startswith('[{"') else []


def openai_calls(value: Json) -> list[Part]:
    """Returns the calls of a list that consists of OpenAI's calls, else []."""
    items = as_dicts(value)
    is_call = (item.get("type") == "function" and as_dict(item.get("function")) for item in items)
    return [read_call(item) for item in items] if all(is_call) else []
