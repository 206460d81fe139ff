"""Reads LangChain messages in all their serialisations (docs/formats/langchain.md).

Constructors (`{"lc": 1, "type": "constructor", "id": […, class], "kwargs": {…}}`),
`messages_to_dict` (`{"type", "data"}`), `model_dump` (fields at the top level) and `[role, text]`
pairs become the same fields; chunks of one streamed message are joined.
"""

from __future__ import annotations

from dataclasses import replace

from builder.conversation import Json, Message, Part, Text, ToolCall, Unparsed
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_of
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted, unknown_names
from builder.readers.traces.msgpack import CLASS
from builder.readers.traces.parts import (
    read_call,
    read_parts,
    read_result,
    result_content,
    without_missing,
)

_CLASSES = {
    "HumanMessage": "human", "AIMessage": "ai", "SystemMessage": "system", "ToolMessage": "tool",
    "FunctionMessage": "function", "ChatMessage": "chat", "RemoveMessage": "remove",
    "DeveloperMessage": "developer",
}  # fmt: skip
_ROLES = {
    "human": "user", "ai": "assistant", "system": "system", "developer": "developer",
    "tool": "tool", "function": "tool",
}  # fmt: skip
TYPES = frozenset({*_CLASSES.values(), *(f"{name}Chunk" for name in _CLASSES)})
_UNMISTAKABLE = frozenset({"human", "ai", "remove", *_CLASSES})
"""Types that records of other programs do not have."""
_FIELDS = frozenset({"type", "content", "id", "name", "tool_call_id", "status", "artifact", "role"})
_KEYS = MESSAGE_KEYS | {
    "additional_kwargs", "response_metadata", "invalid_tool_calls", "tool_call_chunks", "artifact",
    "example", CLASS, "data", "kwargs",
}  # fmt: skip
"""Fields of a message, and of its `additional_kwargs`, that are known."""
_PAIRS = frozenset({"human", "ai", "system"})
_SAME = ("index", "type")
_PIECES = ("text", "thinking", "reasoning")
REMOVE_ALL = "__remove_all__"
"""Id of the RemoveMessage that empties the list (langgraph.graph.message)."""


def is_message(value: Json) -> bool:
    """Returns whether a value is a message in one of the serialisations."""
    if isinstance(value, list):
        return len(value) == 2 and as_str(value[0]) in _PAIRS and isinstance(value[1], str)
    item = as_dict(value)
    if "lc" in item:
        return item.get("type") == "constructor" and _class(item).removesuffix("Chunk") in _CLASSES
    kind = as_str(item.get("type"))
    if kind not in TYPES:
        return False
    if as_str(item.get(CLASS)).removesuffix("Chunk") in _CLASSES:
        return True
    if isinstance(item.get("data"), dict):
        return set(item) <= {"type", "data"}
    if "additional_kwargs" not in item and kind.removesuffix("Chunk") not in _UNMISTAKABLE:
        # Other programs' records may have such a type; LangChain's have no further fields.
        return "content" in item and set(item) <= _FIELDS
    # A message of OpenAI's form may have such a type, but always has a role.
    return ("content" in item and "role" not in item) or kind in ("chat", "remove")


def is_kind(fields: dict[str, Json]) -> bool:
    """Returns whether fields (see `as_fields`) have the type of a message."""
    kind = as_str(fields.get("type"))
    return kind in TYPES or kind in _CLASSES


def _class(item: dict[str, Json]) -> str:
    path = as_list(item.get("id"))
    return as_str(path[-1] if path else None)


def as_fields(value: Json) -> dict[str, Json]:
    """Returns the fields of a message of any serialisation, with `type` (`…Chunk` for a chunk)."""
    if isinstance(value, list):
        return {"type": value[0], "content": value[1]} if is_message(value) else {}
    item = as_dict(value)
    if "lc" in item:
        name = _class(item)
        return {**as_dict(_plain(item.get("kwargs"))), "type": _CLASSES.get(name, name)}
    data = item.get("data")
    if isinstance(data, dict):
        return {**data, "type": item.get("type")}
    return item


def _plain(value: Json) -> Json:
    """Returns a serialised value with escaped objects unescaped."""
    if isinstance(value, dict):
        if set(value) == {"__lc_escaped__"}:
            return value["__lc_escaped__"]
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def joined_chunks(items: list[Json]) -> list[dict[str, Json]]:
    """Returns the fields of the messages, with the chunks of each streamed message joined.

    Chunks of one message are consecutive and have the same id (or none).
    """
    joined: list[dict[str, Json]] = []
    for item in items:
        fields = as_fields(item)
        last = joined[-1] if joined else {}
        chunk = as_str(fields.get("type")).endswith("Chunk")
        if chunk and last.get("type") == fields.get("type") and last.get("id") == fields.get("id"):
            joined[-1] = _merged(last, fields)
        else:
            joined.append(fields)
    return joined


def _merged(one: dict[str, Json], other: dict[str, Json]) -> dict[str, Json]:
    """Merges two consecutive chunks, including the extra fields that providers send in pieces."""
    extras = [as_dict(item.get("additional_kwargs")) for item in (one, other)]
    extra: dict[str, Json] = {}
    if thought := "".join(as_str(item.get("reasoning_content")) for item in extras):
        extra["reasoning_content"] = thought
    if legacy := [as_dict(item["function_call"]) for item in extras if "function_call" in item]:
        extra["function_call"] = {
            key: "".join(as_str(item.get(key)) for item in legacy) for key in ("name", "arguments")
        }
    pieces = [*as_list(one.get("tool_call_chunks")), *as_list(other.get("tool_call_chunks"))]
    meta = {**as_dict(one.get("response_metadata")), **as_dict(other.get("response_metadata"))}
    joined: dict[str, Json] = {
        "content": _merged_content(one.get("content"), other.get("content")),
        "additional_kwargs": extra, "response_metadata": meta,
        "tool_call_chunks": pieces, "tool_calls": [], "invalid_tool_calls": [],
    }  # fmt: skip
    return {**one, **joined}


def _merged_content(one: Json, other: Json) -> Json:
    """Joins texts, and blocks of the same index and type."""
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    parts = _listed(one)
    for item in _listed(other):
        last, block = as_dict(parts[-1]) if parts else {}, as_dict(item)
        same = "index" in block and all(last.get(key) == block.get(key) for key in _SAME)
        key = next((key for key in _PIECES if isinstance(block.get(key), str)), None)
        if same and key is not None:
            parts[-1] = {**last, key: as_str(last.get(key)) + as_str(block[key])}
        else:
            parts.append(item)
    return parts


def _listed(content: Json) -> list[Json]:
    return list(content) if isinstance(content, list) else [content] if content else []


def lc_message(fields: dict[str, Json]) -> Message | None:
    """Returns the message that the fields describe; None for a RemoveMessage."""
    kind = as_str(fields.get("type")).removesuffix("Chunk")
    kind = _CLASSES.get(kind, kind)
    if kind == "remove":
        return None
    extra = unknown_names(as_dict(fields.get("additional_kwargs")), _KEYS)
    message = noted([_message(fields, kind)], fields, _KEYS)[0]
    return replace(message, unknown=(*message.unknown, *extra)) if extra else message


def _message(fields: dict[str, Json], kind: str) -> Message:
    if kind == "chat":
        role = as_str(fields.get("role"))
        role = _ROLES.get(role, role)[:40] or "chat"
    else:
        role = _ROLES.get(kind, kind)
    if role == "tool":
        result = read_result({**fields, "id": None, "content": None})
        content = result_content(fields.get("content"))
        return Message("tool", (replace(result, content=content),))
    if role == "assistant":
        return Message(role, tuple(_assistant_parts(fields)))
    return Message(role, tuple(read_parts(fields.get("content"))))


def _assistant_parts(fields: dict[str, Json]) -> list[Part]:
    """Returns reasoning, text and calls; calls that are logged in several fields are taken once.

    LangChain parses `args` leniently, so the provider's own text is preferred if it is logged.
    """
    extra = as_dict(fields.get("additional_kwargs"))
    parts = with_thoughts(read_parts(_without_call_chunks(fields.get("content"))), extra, fields)
    if not parts and (refusal := as_str(extra.get("refusal"))):
        parts.append(Text(refusal))
    raw = [read_call(item) for item in as_list(extra.get("tool_calls"))]
    texts = {call.id: call for call in raw if isinstance(call, ToolCall) and call.id}
    calls: list[Part] = [*_chunked(fields)]
    for item in as_list(fields.get("tool_calls")) if not calls else ():
        call = read_call(item)
        if isinstance(call, ToolCall) and call.id in texts and texts[call.id].name == call.name:
            call = texts[call.id]
        calls.append(call)
    broken = as_list(fields.get("invalid_tool_calls"))
    if not calls and not broken:
        legacy = as_dict(extra.get("function_call"))
        calls = [*raw] or ([read_call(legacy)] if legacy else [])
    if calls or broken:
        parts = [part for part in parts if not isinstance(part, ToolCall)]
    parts += calls
    parts += [Unparsed(as_str(item, "args"), "bad_arguments") for item in broken]
    return without_missing(parts)


def _without_call_chunks(content: Json) -> Json:
    """Returns content without pieces of streamed calls, which are also in `tool_call_chunks`."""
    if not isinstance(content, list):
        return content
    streamed = ("input_json_delta", "tool_call_chunk")
    return [part for part in content if as_dict(part).get("type") not in streamed]


def _chunked(fields: dict[str, Json]) -> list[ToolCall]:
    """Returns the calls of a streamed message, joined from their pieces by index."""
    calls: dict[str, ToolCall] = {}
    key = ""
    for item in as_list(fields.get("tool_call_chunks")):
        piece = as_dict(item)
        index = piece.get("index")
        if index is not None or piece.get("id"):  # otherwise it continues the previous call
            key = repr(index if index is not None else piece.get("id"))
        before = calls.get(key, ToolCall("", ""))
        name = before.name + as_str(piece.get("name"))
        arguments = as_str(before.arguments) + as_str(piece.get("args"))
        calls[key] = ToolCall(name, arguments, before.id or name_of(piece, "id"))
    return [call for call in calls.values() if call.name]
