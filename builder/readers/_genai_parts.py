"""OpenTelemetry's messages of parts, and the bodies of OpenAI's form that its first events took.

Source: otel-genai.md "Message JSON", "Legacy generations". Instrumentations pass the blocks of
Anthropic and Bedrock through as they are, so these are read as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import (
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
)
from builder.jsonio import dumps
from builder.readers import _messages
from builder.readers._narrow import as_dict, as_list, as_str, name_or_none
from builder.readers._span_values import decoded, first_of

_ROLES = {"model": "assistant", "ai": "assistant", "human": "user", "function": "tool"}
_TEXTS = frozenset({"text", "input_text", "output_text"})
_THOUGHTS = frozenset({"reasoning", "thinking"})
_SEALED = frozenset({"redacted_thinking", "encrypted_reasoning"})
_CALLS = frozenset({"tool_call", "tool_use", "function_call"})
_RESULTS = frozenset({"tool_call_response", "tool_result", "function_call_output"})
_SERVER = frozenset({"server_tool_call", "server_tool_call_response", "server_tool_use"})
_MEDIA = {
    "blob": "file", "uri": "file", "file": "file", "document": "file", "media": "file",
    "image": "image", "image_url": "image", "image-url": "image", "input_image": "image",
    "audio": "audio", "input_audio": "audio", "audio-url": "audio", "video": "video",
    "video-url": "video", "document-url": "file", "binary": "file",
}  # fmt: skip
_MODALITIES = frozenset({"image", "audio", "video"})
_BEDROCK = ("toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint")


def read_messages(value: Json, unknown: list[str]) -> list[Message]:
    """The messages of a list; types of unknown parts, and items without a role, to `unknown`."""
    return [message for item in as_list(value) for message in read_message(item, unknown)]


def read_message(item: Json, unknown: list[str]) -> list[Message]:
    """What one logged message says: its results as a message of role tool, then the rest."""
    fields = as_dict(item)
    role = as_str(fields.get("role"))
    role = _ROLES.get(role, role)[:40]
    if not role:
        unknown.append("message without a role")
        return []
    if isinstance(fields.get("parts"), list):
        return _of_parts(role, fields, unknown)
    content = as_parts(fields.get("content"))
    if role == "tool" and (called := _calls_in_content(content)):
        return [Message("assistant", called)]
    if role == "tool" and not any(_is_result(part) for part in as_list(content)):
        return [_result_message(fields, content)]
    if role == "assistant":
        return _split(role, _assistant(fields, content, unknown))
    return _split(role, read_parts(content, unknown))


def _of_parts(role: str, fields: dict[str, Json], unknown: list[str]) -> list[Message]:
    parts = read_parts(fields.get("parts"), unknown)
    if role == "tool" and not any(isinstance(part, ToolResult) for part in parts):
        return [_result_message(fields, fields.get("parts"))]
    if role == "assistant" and any(isinstance(part, ToolResult) for part in parts):
        # Run by the provider inside the answer: no call that a client answers.
        parts = [
            part if not isinstance(part, ToolCall | ToolResult) else Unparsed("", "server_tool")
            for part in parts
        ]
    return _split(role, parts)


def _result_message(fields: dict[str, Json], content: Json) -> Message:
    call_id = name_or_none(fields.get("tool_call_id")) or name_or_none(fields.get("id"))
    found = result_content(content)
    return Message("tool", (ToolResult(found, call_id, name_or_none(fields.get("name"))),))


def _split(role: str, parts: Iterable[Part]) -> list[Message]:
    parts = tuple(parts)
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    rest = tuple(part for part in parts if not isinstance(part, ToolResult))
    found = [Message("tool", results)] if results else []
    return [*found, Message(role, rest)] if rest or not results else found


def _assistant(fields: dict[str, Json], content: Json, unknown: list[str]) -> list[Part]:
    """An assistant message of OpenAI's form. Calls in the content repeat those in `tool_calls`."""
    said = read_parts(content, unknown)
    if not any(isinstance(part, Reasoning) for part in said):
        said = [*_messages.reasoning({**fields, "content": None}), *said]
    if refusal := as_str(fields.get("refusal")):
        said.append(Text(refusal))
    made = decoded(fields.get("tool_calls"))
    if isinstance(made, list) and made:
        said = [part for part in said if not isinstance(part, ToolCall)]
        said += [_call(as_dict(call)) for call in made]
    legacy = as_dict(fields.get("function_call"))
    if legacy and not made:
        said.append(_call(legacy))
    return said


def _call(call: dict[str, Json]) -> ToolCall | Unparsed:
    """A call of OpenAI's form, or with its fields side by side."""
    inner = as_dict(call.get("function")) or as_dict(call.get("custom")) or call
    name = name_or_none(inner.get("name"))
    if name is None:
        return Unparsed(dumps(call), "bad_call")
    arguments = inner["arguments"] if "arguments" in inner else inner.get("input")
    call_id = name_or_none(call.get("id")) or name_or_none(call.get("call_id"))
    return ToolCall(name, arguments, id=call_id or name_or_none(call.get("toolUseId")))


def _calls_in_content(content: Json) -> tuple[Part, ...]:
    """Calls that are the content of a message of role tool: Koog gives them their results' role."""
    items = [as_dict(item) for item in as_list(content)]
    is_call = [item.get("type") == "function" and as_dict(item.get("function")) for item in items]
    return tuple(_call(item) for item in items) if items and all(is_call) else ()


def as_parts(content: Json) -> Json:
    """Content whose list of parts an instrumentation wrote as JSON text; other content as it is."""
    if isinstance(content, str) and content.startswith('[{"'):
        inner = decoded(content)
        marks = ("type", "text", *_BEDROCK)
        if isinstance(inner, list) and all(
            any(mark in as_dict(item) for mark in marks) for item in inner
        ):
            return inner
    return content


def _is_result(part: Json) -> bool:
    return as_dict(part).get("type") in _RESULTS or "toolResult" in as_dict(part)


def read_parts(value: Json, unknown: list[str]) -> list[Part]:
    """A message's content: text, a part, or a list of them."""
    if isinstance(value, str):
        return [Text(value)] if value else []
    items = value if isinstance(value, list) else [value]
    found = (_part(item, unknown) for item in items if item is not None)
    return [part for part in found if part is not None]


def _part(item: Json, unknown: list[str]) -> Part | None:
    """One part; None for one that says nothing; the type of an unknown one goes to `unknown`."""
    if isinstance(item, str):
        return Text(item) if item else None
    part = as_dict(item)
    kind = as_str(part.get("type"))
    if kind in _SERVER or (part.get("builtin") is True and kind in _CALLS | _RESULTS):
        return Unparsed(kind, "server_tool")
    if kind in _TEXTS:
        text = _text(part)
        return Text(text) if text else None
    if kind in _THOUGHTS:
        thought = _text(part) or as_str(part.get("thinking"))
        return Reasoning(thought) if thought else None
    if kind == "refusal":
        return Text(_text(part) or as_str(part.get("refusal")))
    if kind in _CALLS:
        return _call(part)
    if kind in _RESULTS:
        return _result(part)
    if kind in _MEDIA:
        return _media(part, _MEDIA[kind])
    if kind in _SEALED:
        return None
    if not kind:
        return _untyped(part, unknown)
    unknown.append(kind)
    return None


def _text(part: dict[str, Json]) -> str:
    return as_str(part.get("content")) or as_str(part.get("text"))


def _untyped(part: dict[str, Json], unknown: list[str]) -> Part | None:
    """A part of Bedrock, whose one field names its kind."""
    if isinstance(part.get("text"), str):
        return Text(as_str(part["text"])) if part["text"] else None
    kind = next((key for key in _BEDROCK if key in part), None)
    match kind:
        case "toolUse":
            return _call(as_dict(part["toolUse"]))
        case "toolResult":
            result = as_dict(part["toolResult"])
            found = _result({**result, "id": result.get("toolUseId")})
            return replace(found, is_error=result.get("status") == "error")
        case "reasoningContent":
            thought = as_str(as_dict(as_dict(part[kind]).get("reasoningText")).get("text"))
            return Reasoning(thought) if thought else None
        case "cachePoint":
            return None
        case None:
            unknown.append(next(iter(part), "part"))
            return None
        case _:
            return Media("file" if kind == "document" else kind)


def _media(part: dict[str, Json], kind: str) -> Media:
    mime = as_str(part.get("mime_type")) or as_str(part.get("media_type"))
    named = as_str(part.get("modality")) or mime.partition("/")[0]
    return Media(named if named in _MODALITIES else kind, mime)


def _result(part: dict[str, Json]) -> ToolResult:
    keys = ("response", "result", "content", "output")
    value = first_of(part, *keys)
    ids = (name_or_none(part.get(key)) for key in ("id", "tool_use_id", "call_id", "tool_call_id"))
    return ToolResult(
        result_content(value),
        call_id=next((one for one in ids if one), None),
        name=name_or_none(part.get("name")),
        is_error=part.get("is_error") is True,
    )


def result_content(value: Json) -> tuple[Text | Data | Media, ...]:
    """What a tool answered: text as it is, a list of texts and media as such, or a JSON value."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if not isinstance(value, list) or not all(_is_block(item) for item in value):
        return (Data(value),)
    found = read_parts(value, [])
    return tuple(part for part in found if isinstance(part, Text | Data | Media))


def _is_block(item: Json) -> bool:
    part = as_dict(item)
    kind = as_str(part.get("type"))
    if kind in _TEXTS:
        return isinstance(part.get("text", part.get("content")), str)
    return kind in _MEDIA or (set(part) == {"text"} and isinstance(part["text"], str))
