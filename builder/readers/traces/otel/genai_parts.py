"""Reads OpenTelemetry's messages of parts, and the OpenAI-shaped bodies of its first events.

Source: docs/formats/otel-genai.md. Instrumentations copy the blocks of any
API unchanged, so other shapes are read with the parsers for any vendor.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from builder.readers.toolkit import chat_messages
from builder.readers.toolkit.narrow import (
    as_dict,
    as_list,
    as_str,
    first_of,
    flag_or_none,
    name_of,
    name_or_none,
)
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.readers.traces.any_vendor.messages import ROLES, openai_calls
from builder.readers.traces.any_vendor.parts import read_call, read_part
from builder.readers.traces.otel.span_values import decoded

_RESULTS = frozenset({"tool_call_response", "tool_result"})
_KEYS = MESSAGE_KEYS | {"parts"}
"""Keys of a message that are known."""
_SERVER = frozenset({"server_tool_call", "server_tool_call_response", "server_tool_use"})
_MODALITIES = frozenset({"image", "audio", "video"})
_BLOBS = frozenset({"blob", "uri", "file"})
_BEDROCK = ("text", "toolUse", "toolResult", "reasoningContent", "cachePoint", *_MODALITIES)


def read_messages(value: Json) -> list[Message]:
    """Returns the messages of a list."""
    return [message for item in as_list(value) for message in read_message(item)]


def read_message(item: Json) -> list[Message]:
    """Returns the messages in one logged message: its results with the role tool, then the rest."""
    fields = as_dict(item)
    role = as_str(fields.get("role"))
    role = ROLES.get(role, role)[:40]
    if not role:
        return [Message("user", (unknown_part("message without a role"),))]
    return noted(_messages(fields, role), fields, _KEYS)


def _messages(fields: dict[str, Json], role: str) -> list[Message]:
    content = fields.get("parts")
    if not isinstance(content, list):
        content = _as_parts(fields.get("content"))
    if role == "tool" and (called := openai_calls(content)):  # Koog: calls with their results' role
        return [Message("assistant", tuple(called))]
    if role == "tool" and not any(_is_result(part) for part in as_list(content)):
        return [_result_message(fields, content)]
    parts = read_parts(content)
    if role == "assistant":
        parts = _assistant(fields, parts)
    results, rest = chat_messages.results_apart(parts)
    messages = [Message("tool", results)] if results else []
    return [*messages, Message(role, rest)] if rest or not results else messages


def _result_message(fields: dict[str, Json], content: Json) -> Message:
    call_id = name_of(fields, "tool_call_id", "id")
    return Message("tool", (ToolResult(result_content(content), call_id, name_of(fields, "name")),))


def _assistant(fields: dict[str, Json], parts: list[Part]) -> list[Part]:
    """Returns an assistant message's content, with the other fields of OpenAI's form.

    Calls in the content repeat those in `tool_calls`. Results in the content come from the
    provider, which ran its tools inside the answer; the client never answered those calls.
    """
    if any(isinstance(part, ToolResult) for part in parts):
        return [
            Unparsed("", "server_tool") if isinstance(part, ToolCall | ToolResult) else part
            for part in parts
        ]
    if not any(isinstance(part, Reasoning) for part in parts):
        parts = [*chat_messages.reasoning({**fields, "content": None}), *parts]
    if refusal := as_str(fields.get("refusal")):
        parts.append(Text(refusal))
    made = as_list(decoded(fields.get("tool_calls")))
    legacy = as_dict(fields.get("function_call"))
    if made:
        parts = [part for part in parts if not isinstance(part, ToolCall)]
    elif legacy:
        made = [legacy]
    return [*parts, *(read_call(call) for call in made)]


def _as_parts(content: Json) -> Json:
    """Returns the parts of a content: as logged, or of a JSON text or Gemini's content."""
    if isinstance(content, str) and content.startswith('[{"'):
        inner = decoded(content)
        marks = ("type", *_BEDROCK)
        if isinstance(inner, list) and all(
            any(mark in as_dict(item) for mark in marks) for item in inner
        ):
            return inner
    inner = as_dict(content).get("parts")
    return inner if isinstance(inner, list) else content


def _is_result(part: Json) -> bool:
    return as_str(part, "type") in _RESULTS or "toolResult" in as_dict(part)


def read_parts(value: Json) -> list[Part]:
    """Returns the parts of a message's content: a text, a part, or a list of them."""
    items = value if isinstance(value, list) else [value]
    return [part for item in items if item is not None for part in _part(item)]


def _part(item: Json) -> Iterable[Part]:
    part = as_dict(item)
    kind = as_str(part.get("type"))
    if kind in _SERVER or part.get("builtin") is True:
        return [Unparsed(kind, "server_tool")]
    if kind in _RESULTS:
        return [_result(part)]
    if kind in _BLOBS:
        mime = as_str(part.get("mime_type"))
        named = as_str(part.get("modality")) or mime.partition("/")[0]
        return [Media(named if named in _MODALITIES else "file", mime)]
    own = next((key for key in _BEDROCK if key in part), "") if not kind else ""
    match own:
        case "toolResult":
            result = as_dict(part["toolResult"])
            failed = result["status"] == "error" if "status" in result else None
            return [_result({**result, "id": result.get("toolUseId"), "is_error": failed})]
        case "reasoningContent":
            thought = as_dict(part[own], "reasoningText").get("text")
            return [Reasoning(thought)] if isinstance(thought, str) and thought else []
        case "cachePoint":
            return []
        case "image" | "audio" | "video":
            return [Media(own)]
    return read_part(item)


def _result(part: dict[str, Json]) -> ToolResult:
    value = first_of(part, "response", "result", "content", "output")
    call_id = name_or_none(first_of(part, "id", "tool_use_id", "call_id", "tool_call_id"))
    failed = flag_or_none(part.get("is_error"))
    return ToolResult(result_content(value), call_id, name_of(part, "name"), is_error=failed)


def result_content(value: Json) -> tuple[Content, ...]:
    """Returns the content of a tool response: text, a list of texts and media, or a JSON value."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    items = [as_dict(item) for item in as_list(value)]
    if items and all("type" in item or set(item) == {"text"} for item in items):
        content = [part for item in items for part in _part(item)]
        kept = tuple(part for part in content if isinstance(part, Content))
        if len(kept) == len(content):
            return kept
    return (Data(value),)
