"""Reads turns of ShareGPT rows: `from` and `value`, or LLaMA-Factory's typed parts.

Source: docs/formats/sharegpt.md; for lists of results in one
text: LLaMA-Factory data/reason_tool_use_demo_50.jsonl @0798d9db (Apache-2.0). Calls have no ids, so
results pair with them by name and order.
"""

from __future__ import annotations

from collections import Counter

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
    unknown_part,
)
from builder.jsonio import dumps, json_type
from builder.readers.toolkit import chat_messages, tags
from builder.readers.toolkit.chat_messages import content_block, text_or_data
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_of
from builder.readers.toolkit.tags import results_in_text
from builder.readers.toolkit.thoughts import thought_in_text, thoughts_of_keys
from builder.readers.toolkit.unknown_keys import noted

ROLES = {
    "human": "user", "user": "user",
    "gpt": "assistant", "assistant": "assistant", "bard": "assistant", "chatgpt": "assistant",
    "gpt-4": "assistant", "model": "assistant",
    "system": "system",
    "function_call": "call", "function-call": "call",
    "observation": "result", "function-response": "result", "function_response": "result",
    "tool": "result", "ipython": "result",
    "tool_call": "call", "tool_response": "result",
    "ai": "assistant", "bot": "assistant", "chatbot": "assistant", "bing": "assistant",
    "environment": "result", "tool_result": "result", "function": "result",
}  # fmt: skip
"""Roles by a turn's `from` (or `role`) in small letters; "call" is a turn with only calls."""

_WRAPPER = frozenset({"name", "content", "tool_call_id"})
"""The keys of the object in which Hermes and others wrap the output of a tool."""


def read_turns(turns: list[Json], changes: Counter[str]) -> list[Message]:
    """Returns the messages of a row's turns; a turn that is not an object is an unknown part.

    `changes` counts those of `text_tags.assistant_parts`, and `result_unwrapped` for each result
    that was in an object of name and content.
    """
    messages: list[Message] = []
    called: list[str] = []  # names of the calls that the next results answer
    for item in turns:
        if not isinstance(item, dict):
            messages.append(Message("user", (unknown_part(json_type(item)),)))
            continue
        read = list(noted(_turn(item, called, changes), item))
        if read[0].role != "tool":
            if read[0].role != "assistant" or not messages or messages[-1].role != "assistant":
                called.clear()
            called += [part.name for part in read[0].parts if isinstance(part, ToolCall)]
        messages += read
    return messages


def _turn(item: dict[str, Json], called: list[str], changes: Counter[str]) -> list[Message]:
    """Returns the messages of a turn: one for each result, else one."""
    role = role_of(item)
    value = item["value"] if "value" in item else item.get("content")
    blocks = tags.responses(value) if role == "user" and isinstance(value, str) else None
    if role == "result" or (blocks and called):
        results = _results(value, called, item, changes)
        return [Message("tool", (result,)) for result in results]
    parts = _parts(role, value, changes)
    if role not in ("assistant", "call"):
        return [Message(role, tuple(parts))]
    parts = [*thoughts_of_keys(item), *parts, *chat_messages.tool_calls(item.get("tool_calls"))]
    return [Message("assistant", tuple(parts))]


def role_of(turn: dict[str, Json]) -> str:
    """Returns the role of a turn (`ROLES`); an unknown one as logged."""
    source = as_str(turn.get("from")) or as_str(turn.get("role"))
    return ROLES.get(source.lower(), source[:40] or "none")


def is_typed(content: Json) -> bool:
    """Returns whether a message's content is a list of parts {type, value}."""
    parts = as_dicts(content)
    return bool(parts) and all("type" in part and "value" in part for part in parts)


def _parts(role: str, value: Json, changes: Counter[str]) -> list[Part]:
    if is_typed(value):
        return _typed(as_list(value), changes)
    if role == "call":
        return _calls(value, changes)
    if role == "assistant" and isinstance(value, str) and tags.FUNCTIONCALL in value:
        return tags.functioncall_parts(value, changes)
    if role == "assistant" and isinstance(value, str):
        return tags.assistant_parts(value, changes, thoughts=("think", "scratch_pad"))
    return list(text_or_data(value))


def _typed(parts: list[Json], changes: Counter[str]) -> list[Part]:
    """Reads LLaMA-Factory's parts {type, value}, except `tools`, which is read with the row."""
    read: list[Part] = []
    for item in parts:
        kind, value = as_str(item, "type"), as_dict(item).get("value")
        if kind == "text":
            read += text_or_data(value)
        elif kind == "reasoning" and isinstance(value, str):
            read.append(Reasoning(value))
        elif kind in ("tool_call", "tool_calls"):
            read += _calls(value, changes)
        elif kind != "tools":
            read.append(content_block(item))
    return read


def _calls(value: Json, changes: Counter[str]) -> list[Part]:
    """Returns the calls in a turn of calls: an object or a list, possibly after reasoning."""
    if not isinstance(value, str):
        found = tags.calls_of([value])
        return [*found] if found is not None else [Unparsed(dumps(value), "bad_call")]
    calls = tags.read_calls(value, changes)
    if calls is not None:
        return [*calls]
    if "<tool_call>" in value:
        return tags.assistant_parts(value, changes)
    if (split := thought_in_text(value)) is not None:
        thought, rest = split
        calls = tags.read_calls(rest, changes)
        if calls is not None:
            return [*([Reasoning(thought)] if thought.strip() else []), *calls]
    return [Unparsed(value, "bad_call")]


def _results(
    value: Json, called: list[str], turn: dict[str, Json], changes: Counter[str]
) -> list[ToolResult]:
    """Returns the results in one turn: `<tool_response>` blocks, texts joined by them, or one."""
    call_id, name = name_of(turn, "tool_call_id"), name_of(turn, "name")
    if is_typed(value):
        typed = _typed(as_list(value), changes)
        parts = tuple(part for part in typed if isinstance(part, Content))
        if not all(isinstance(part, Text) for part in parts):
            return [ToolResult(parts, call_id, name)]
        value = "".join(part.text for part in parts if isinstance(part, Text))
    if not isinstance(value, str):
        return [ToolResult(text_or_data(value), call_id, name)]
    blocks = tags.responses(value) or tags.split_responses(value)
    results = [result for block in blocks for result in _unwrapped(block, called, changes)]
    if len(results) == 1 and (call_id or name):
        return [ToolResult(results[0].content, call_id, name or results[0].name)]
    return results


def _unwrapped(text: str, called: list[str], changes: Counter[str]) -> list[ToolResult]:
    """Returns the results in a text that is an object of name and content, or a list of these.

    An object must have the name of a called tool or the id of a call.
    """
    return results_in_text(text, called, changes, lambda item: _wraps(item, called), "content")


def _wraps(item: dict[str, Json], called: list[str]) -> bool:
    known = "tool_call_id" in item or item.get("name") in called
    return "content" in item and set(item) <= _WRAPPER and known
