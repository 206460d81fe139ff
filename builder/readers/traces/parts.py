"""Reads the content parts, calls and results of any API, as traces log them.

A platform logs what its instrumentation passes on, so the same field may contain parts of OpenAI,
Anthropic, Gemini, the AI SDK, OpenTelemetry or LangChain. Their types do not overlap, so the same
functions read all of them. Sources: the pages of the APIs and of the traces
in docs/formats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from builder.conversation import (
    Content,
    Data,
    Json,
    Media,
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
from builder.readers.api import anthropic
from builder.readers.api.gemini import SERVER_PARTS
from builder.readers.toolkit.chat_messages import compact_result
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, json_in_text, name_of

_TEXTS = frozenset({"text", "input_text", "output_text", "text-plain"})
_THOUGHTS = frozenset({"thinking", "reasoning", "Microsoft.Extensions.AI.TextReasoningContent"})
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
_WITHOUT_CONTENT = frozenset({"thoughtSignature", "thought_signature", "thought", "index"})
_BEDROCK = frozenset({"text", "json"})
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
    parts = [part for item in items for part in _result_part(item)]
    kept = tuple(part for part in parts if isinstance(part, Content))
    if len(kept) < len(parts) or not (typed or all(isinstance(part, Text) for part in kept)):
        return (Data(value),)
    return kept


def _is_part(item: dict[str, Json]) -> bool:
    return "type" in item or "block_type" in item or (len(item) == 1 and set(item) <= _BEDROCK)


def _result_part(item: dict[str, Json]) -> list[Part]:
    return [Data(item["json"])] if set(item) == {"json"} else read_part(item)


def read_parts(value: Json) -> list[Part]:
    """Returns the parts of a message's content: a text, a part, or a list of them."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [Text(value)]
    items = value if isinstance(value, list) else [value]
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
        words = thought_of(part)
        return [Reasoning(words)] if words else []
    if kind in _ENCRYPTED or kind in _NOT_SENT:
        return []
    if kind in _CALLS or (not kind and "toolName" in part and "result" not in part):
        return [read_call(part)]
    if kind in _RESULTS:
        return [read_result(part)]
    if kind == "invalid_tool_call":
        return [Unparsed(dumps(item), "bad_arguments")]
    if kind in _MEDIA:
        return [Media(_MEDIA[kind])]
    if kind == "compaction" or kind.endswith(("_tool_use", "_tool_result")):
        own = anthropic.read_part(part)
        return [] if own is None else [own]
    return _gemini_part(part) if not kind else [unknown_part(kind)]


def _gemini_part(part: dict[str, Json]) -> list[Part]:
    """Reads a part of Gemini (camel or snake case) or Bedrock, whose only field is its type."""
    match part:
        case {"function_call": dict(call)} | {"functionCall": dict(call)} | {"toolUse": dict(call)}:
            return [read_call({**call, "id": call.get("toolUseId", call.get("id"))})]
        case {"function_response": dict(result)} | {"functionResponse": dict(result)}:
            return [read_result(result)]
        case {"toolResult": dict(result)}:
            return [read_result({**result, "id": result.get("toolUseId")})]
        case {"inline_data": _} | {"inlineData": _} | {"file_data": _} | {"fileData": _}:
            return [Media("file")]
    if not SERVER_PARTS.isdisjoint(part):
        return [Unparsed(next(iter(part)), "server_tool")]
    return [] if set(part) <= _WITHOUT_CONTENT else [unknown_part(next(iter(part)))]


def thought_of(part: dict[str, Json]) -> str:
    """Returns the clear text of a thought, or ""; a summary of it is by another model."""
    for key in ("thinking", "reasoning", "text", "content"):
        value = part.get(key)
        text = as_str(value) or as_str(value, "text")
        if text:
            return text
    return "".join(as_str(one, "text") for one in as_list(part.get("content")))


def summaries(content: Json) -> int:
    """Returns how many thoughts of a message's content are summaries, which are dropped."""
    parts = (part for part in as_dicts(content) if part.get("type") == "reasoning")
    return sum(bool(as_list(part.get("summary"))) and not thought_of(part) for part in parts)
