"""Reads parts, calls and results of any API, and LangChain's messages, as traces log them.

The types of parts of different APIs do not overlap, so the same functions read all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers.api import anthropic, bedrock, gemini
from builder.readers.toolkit.chat_messages import compact_result
from builder.readers.toolkit.comparison import CallKeys
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    name_of,
    one_or_many,
)
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted, unknown_names

_TEXTS = frozenset({"text", "input_text", "output_text", "text-plain"})
_THOUGHTS = frozenset(
    {"thinking", "think", "reasoning", "Microsoft.Extensions.AI.TextReasoningContent"}
)
_ENCRYPTED = frozenset({"redacted_thinking", "redacted-reasoning"})
_CALLS = frozenset({"tool_use", "tool_call", "tool-call", "function_call", "toolCall"})
_RESULTS = frozenset(
    {"tool_result", "tool_call_response", "tool-result", "function_call_output", "toolResult"}
)
_MEDIA = {
    "image": "image", "image_url": "image", "input_image": "image", "image-url": "image",
    "audio": "audio", "input_audio": "audio", "video": "video", "video_url": "video",
    "file": "file", "document": "file", "input_file": "file", "media": "file", "blob": "file",
    "uri": "file",
}  # fmt: skip
_NOT_SENT = frozenset({"tool-approval-request", "tool-approval-response", "step-start"})
"""Types of parts that no model receives."""
_NAMES = ("name", "toolName", "tool_name")
_CALL_IDS = ("toolCallId", "tool_call_id")
_SERVER = frozenset({"server_tool_call", "server_tool_call_response"})
_WITHOUT_CONTENT = frozenset({"thoughtSignature", "thought_signature", "thought", "index"})
_BEDROCK = frozenset({"text", "json"})
_OF_BEDROCK = frozenset(
    {"toolUse", "toolResult", "reasoningContent", "cachePoint", "image", "audio", "video"}
)
"""Keys of its blocks that Gemini's parts do not have."""
_OUTPUTS = frozenset({"text", "json", "content", "error-text", "error-json", "execution-denied"})
"""Types of the AI SDK's outputs since version 5: {"type": "text", "value": …}."""
_MISSING = frozenset({"None", "null", "undefined"})
"""The texts that Python and JavaScript write for a missing value."""
MAX_DECODED = 3
"""Maximum number of times that a text is decoded: platforms encode JSON that is encoded already."""


@dataclass(slots=True)
class PartNotes:
    """Findings while messages are read, other than the messages.

    unreadable  descriptions of what was logged in place of messages
    problems    of the request
    tools       definitions that were logged among the messages
    """

    unreadable: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    tools: list[Json] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)


def decoded(value: Json) -> Json:
    """Decodes JSON text, up to MAX_DECODED times; returns any other value unchanged."""
    return json_in_text(value, beginnings='{["', levels=MAX_DECODED)


def is_empty(value: Json) -> bool:
    """Returns whether a value was logged that contains nothing; None: none was logged."""
    return decoded(value) in ("", [], {})


def without_missing(parts: Sequence[Part]) -> list[Part]:
    """Returns the parts of an assistant message without texts such as "None".

    Instrumentations log such a text if an answer has no content because the model called a tool. If
    neither text nor call remains, the answer was not logged: `Unparsed` with the code `no_output`
    replaces it.
    """
    kept = [
        part for part in parts if not (isinstance(part, Text) and part.text.strip() in _MISSING)
    ]
    if len(kept) == len(parts) or any(not isinstance(part, Reasoning) for part in kept):
        return kept
    return [*kept, Unparsed("", "no_output")]


def read_call(item: Json) -> ToolCall | Unparsed:
    """Returns a call in any vendor's form; one that names no function is `bad_call`."""
    call = as_dict(item)
    inner = as_dict(call.get("function")) or as_dict(call.get("custom"))
    named = inner if name_of(inner, *_NAMES) else call
    name = name_of(named, *_NAMES)
    if name is None:
        return Unparsed(dumps(item), "bad_call")
    if as_str(call, "caller", "type") not in ("", "direct"):
        return Unparsed(name, "programmatic_call")
    if call.get("providerExecuted") is True:  # the AI SDK's
        return Unparsed(name, "server_tool")
    keys = ("arguments", "args", "input", "parameters", "tool_kwargs")
    arguments = next((named[key] for key in keys if key in named), None)
    return ToolCall(name, arguments, id=name_of(call, "call_id", "id", *_CALL_IDS))


def read_result(item: dict[str, Json]) -> ToolResult:
    """Returns a result in any vendor's form."""
    keys = ("content", "output", "result", "response")
    key = next((key for key in keys if item.get(key) is not None), "content")
    value = item.get(key)
    flags = [item[key] is True for key in ("is_error", "isError") if key in item]
    flags += [item["status"] == "error"] if item.get("status") in ("error", "success") else []
    failed = any(flags) if flags else None
    typed = key == "content" or as_str(item.get("type")).endswith("_call_output")
    call_id = name_of(item, "tool_use_id", "tool_call_id", "toolCallId", "call_id", "id")
    name = name_of(item, "name", "toolName")
    wrapped = as_dict(value)
    kind = as_str(wrapped.get("type"))
    if kind in _OUTPUTS and ("value" in wrapped or kind == "execution-denied"):
        failed = bool(failed) or kind not in ("text", "json", "content")
        value, typed = wrapped.get("value", wrapped.get("reason")), kind == "content"
        if kind in ("json", "error-json"):
            return ToolResult((Data(value, compact=True),), call_id, name, is_error=failed)
    result = ToolResult(result_content(value, typed), call_id, name, is_error=failed)
    return compact_result(result) if "toolName" in item else result  # the AI SDK's


def result_content(value: Json, typed: bool = True) -> tuple[Content, ...]:
    """Returns the content of a result: text, parts, or any other JSON value.

    `typed`: the API defines a list to contain parts. Otherwise only a list of texts is read as
    parts, since a tool's own objects may have types of the same names.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    items = as_dicts(value)
    if not items or not all(map(_is_part, items)):
        return (Data(value),)
    parts = [
        part
        for item in items
        for part in ([Data(item["json"])] if set(item) == {"json"} else read_part(item))
    ]
    kept = tuple(part for part in parts if isinstance(part, Content))
    if len(kept) < len(parts) or not (typed or all(isinstance(part, Text) for part in kept)):
        return (Data(value),)
    return kept


def _is_part(item: dict[str, Json]) -> bool:
    return "type" in item or "block_type" in item or (len(item) == 1 and set(item) <= _BEDROCK)


def read_parts(value: Json) -> list[Part]:
    """Returns the parts of a message's content: a text, a part, or a list of them."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [Text(value)]
    items = one_or_many(value)
    if any(as_list(item, "citations") for item in items):
        return anthropic.read_parts(value)  # which splits texts where their sources change
    return [part for item in items for part in read_part(item)]


def read_part(item: Json) -> list[Part]:
    """Returns the parts for one logged part; none if it is encrypted or has no content."""
    if isinstance(item, str):
        return [Text(item)] if item else []
    part = as_dict(item)
    kind = as_str(part.get("type")) or as_str(part.get("block_type"))
    if kind in _TEXTS or (not kind and isinstance(part.get("text"), str)):
        text = as_str(part.get("text")) or as_str(part.get("content"))
        thought = part.get("thought") is True
        return [Reasoning(text) if thought else Text(text)] if text else []
    if kind == "refusal":
        return [Text(as_str(part.get("refusal")))]
    if kind in _THOUGHTS:
        if words := _thought_of(part):
            return [Reasoning(words)]
        words = "\n\n".join(as_str(one, "text") for one in as_list(part.get("summary")))
        return [Reasoning(words, is_summary=True)] if part.get("summary") else []
    if kind in _ENCRYPTED or kind in _NOT_SENT:
        return []
    if kind in _CALLS or (not kind and "toolName" in part and "result" not in part):
        return [read_call(part)]
    if kind in _RESULTS:
        return [read_result(part)]
    if kind == "invalid_tool_call":
        return [Unparsed(dumps(item), "bad_arguments")]
    if kind in _MEDIA:
        mime = as_str(part.get("mime_type"))
        named = as_str(part.get("modality")) or mime.partition("/")[0]  # OpenTelemetry's
        return [Media(_MEDIA.get(named, _MEDIA[kind]), mime)]
    if kind in _SERVER or part.get("builtin") is True:
        return [Unparsed(kind, "server_tool")]
    if kind == "compaction" or kind.endswith(("_tool_use", "_tool_result")):
        own = anthropic.read_part(part)
        return [] if own is None else [own]
    if kind:
        return [unknown_part(kind)]
    if not _OF_BEDROCK.isdisjoint(part):
        return list(bedrock.read_blocks([part]))
    return [] if set(part) <= _WITHOUT_CONTENT else gemini.read_parts([part], CallKeys(""))


def _thought_of(part: dict[str, Json]) -> str:
    """Returns the clear text of a thought, or ""; a summary of it is by another model."""
    for key in ("thinking", "think", "reasoning", "text", "content"):
        value = part.get(key)
        text = as_str(value) or as_str(value, "text")
        if text:
            return text
    return "".join(as_str(one, "text") for one in as_list(part.get("content")))


CLASS = "__class__"
"""The key of an object's class among its arguments, in MessagePack."""
_CLASSES = {
    "HumanMessage": "human", "AIMessage": "ai", "SystemMessage": "system", "ToolMessage": "tool",
    "FunctionMessage": "function", "ChatMessage": "chat", "RemoveMessage": "remove",
    "DeveloperMessage": "developer",
}  # fmt: skip
ROLES = {"human": "user", "model": "assistant", "ai": "assistant", "function": "tool"}
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
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    parts = [*one_or_many(one or [])]
    for item in one_or_many(other or []):
        last, block = as_dict(parts[-1]) if parts else {}, as_dict(item)
        same = "index" in block and all(last.get(key) == block.get(key) for key in _SAME)
        key = next((key for key in _PIECES if isinstance(block.get(key), str)), None)
        if same and key is not None:
            parts[-1] = {**last, key: as_str(last.get(key)) + as_str(block[key])}
        else:
            parts.append(item)
    return parts


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
    named = as_str(fields.get("role")) if kind == "chat" else kind
    role = ROLES.get(named, named)[:40] or "chat"
    if role == "tool":
        result = read_result({**fields, "id": None, "content": None})
        content = result_content(fields.get("content"))
        return Message("tool", (replace(result, content=content),))
    if role == "assistant":
        return Message(role, tuple(assistant_parts(fields, fields.get("content"))))
    return Message(role, tuple(read_parts(fields.get("content"))))


def assistant_parts(fields: dict[str, Json], content: Json) -> list[Part]:
    """Returns reasoning, text and calls; calls that are logged in several fields are taken once.

    LangChain parses `args` leniently, so the provider's own text is preferred if it is logged.
    """
    extra = as_dict(fields.get("additional_kwargs"))
    if isinstance(content, list):  # pieces of streamed calls are also in `tool_call_chunks`
        streamed = ("input_json_delta", "tool_call_chunk")
        content = [part for part in content if as_dict(part).get("type") not in streamed]
    parts = with_thoughts(read_parts(content), extra, fields)
    refusal = as_str(fields.get("refusal")) or (as_str(extra.get("refusal")) if not parts else "")
    parts += [Text(refusal)] if refusal else []
    raw = [read_call(item) for item in _logged_calls(extra)]
    texts = {call.id: call for call in raw if isinstance(call, ToolCall) and call.id}
    calls: list[Part] = [*_chunked(fields)]
    for item in _logged_calls(fields) if not calls else ():
        call = read_call(item)
        if isinstance(call, ToolCall) and call.id in texts and texts[call.id].name == call.name:
            call = texts[call.id]
        calls.append(call)
    broken = as_list(fields.get("invalid_tool_calls"))
    if not calls and not broken:
        legacy = as_dict(fields.get("function_call")) or as_dict(extra.get("function_call"))
        calls = [*raw] or ([read_call(legacy)] if legacy else [])
    if calls or broken:
        parts = [part for part in parts if not isinstance(part, ToolCall)]
    parts += calls
    parts += [Unparsed(as_str(item, "args"), "bad_arguments") for item in broken]
    return without_missing(parts)


def _logged_calls(fields: dict[str, Json]) -> list[Json]:
    """Returns the calls of a message; a single call may be logged without a list."""
    return one_or_many(decoded(fields.get("tool_calls")) or [])


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
