"""Parses OpenAI-shaped chat messages, which many agents and datasets contain.

Source: docs/formats/openai-chat.md, "Request fields".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

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
from builder.jsonio import dumps, json_type
from builder.problem import Problem
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import noted

P = TypeVar("P", bound=Part)

_TEXTS = frozenset({"text", "input_text", "output_text"})
_MEDIA = {
    "image_url": "image", "image": "image", "input_image": "image", "imageUrl": "image",
    "input_audio": "audio", "audio": "audio", "audio_url": "audio",
    "video_url": "video", "video": "video",
    "file": "file", "document": "file", "input_file": "file", "document_url": "file",
}  # fmt: skip
"""Kind of the media in a content part, by the part's type."""
_RESOURCES = frozenset({"resource", "resource_link"})
"""Types of MCP's blocks with a resource, which has a text or is a file."""
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
"""Types of content parts that contain reasoning; the second one is encrypted."""


def content(value: Json) -> tuple[Content, ...]:
    """Returns the parts of a message's `content`: text, a list of typed parts, or other JSON.

    Skips parts with reasoning, which `reasoning` returns.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if not isinstance(value, list):
        return (Data(value),)
    parts: list[Content] = []
    for item in value:
        part = as_dict(item)
        kind = as_str(part.get("type"))
        text = item if isinstance(item, str) else part.get("text")
        is_text = isinstance(item, str) or kind in _TEXTS or part.keys() == {"text"}
        if isinstance(text, str) and is_text:
            parts += [Text(text)] if text else []
        elif kind == "document" and (data := as_dict(part.get("document")).get("data")):
            parts += text_or_data(data)  # of a result, in Cohere's form
        elif kind not in _THOUGHTS:
            parts.append(content_block(item))
    return tuple(parts)


def with_content(message: dict[str, Json]) -> dict[str, Json]:
    """Returns a message that has `parts` in place of `content` with these as its content."""
    parts = message.get("parts")
    if not isinstance(parts, list) or message.get("content") not in (None, "", []):
        return message
    rest = {key: value for key, value in message.items() if key != "parts"}
    return {**rest, "content": parts}


def tool_calls(value: Json) -> list[ToolCall | Unparsed]:
    """Returns the calls of a message's `tool_calls`; `bad_call` for an item without a name."""
    calls: list[ToolCall | Unparsed] = []
    for item in as_list(value):
        call = as_dict(item)
        # Some servers always send both kinds and leave the unused one empty.
        function = as_dict(call.get("function"))
        custom = {} if name_or_none(function.get("name")) else as_dict(call.get("custom"))
        function = custom or function
        name = name_or_none(function.get("name"))
        if name is None:
            calls.append(Unparsed(dumps(item), "bad_call"))
            continue
        # A custom tool takes free text instead of JSON; the text becomes its only argument.
        arguments = {"input": custom.get("input")} if custom else function.get("arguments")
        calls.append(ToolCall(name, arguments, id=name_or_none(call.get("id"))))
    if value is not None and not isinstance(value, list):
        calls.append(Unparsed(dumps(value), "bad_call"))
    return calls


def value_arguments(value: Json) -> Json:
    """Returns the arguments of an API that sends them as a value.

    A text there is JSON that a proxy encoded once more: it is returned in quotes, so that the
    normaliser counts it as doubly encoded.
    """
    return dumps(value) if isinstance(value, str) else value


def qualified(namespace: Json, name: str) -> str:
    """Returns a tool's name with its namespace, if any, as in `mcp__server__tool`."""
    if not isinstance(namespace, str) or not namespace:
        return name
    return namespace + name if namespace.endswith("__") else f"{namespace}__{name}"


def reasoning(message: dict[str, Json]) -> list[Part]:
    """Returns the clear-text reasoning of an assistant message, without duplicates.

    A key of the message (`thoughts.thoughts_of_keys`) repeats content parts of type `thinking`, if
    it has both.
    """
    if thoughts := thoughts_of_keys(message):
        return thoughts
    blocks = as_dicts(message.get("content"))
    texts = [_thought(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]
    return [Reasoning(text) for text in texts if text]


def _thought(value: Json) -> str:
    texts = (as_str(part.get("text")) for part in as_dicts(value))
    return as_str(value) or "".join(texts)


def assistant_parts(message: dict[str, Json]) -> tuple[Part, ...]:
    """Returns the parts of an assistant message: reasoning, text, calls."""
    parts = [*reasoning(message), *content(message.get("content"))]
    if refusal := as_str(message.get("refusal")):
        parts.append(Text(refusal))
    parts += tool_calls(message.get("tool_calls"))
    legacy = as_dict(message.get("function_call"))
    if name := name_or_none(legacy.get("name")):
        parts.append(ToolCall(name, legacy.get("arguments")))
    return tuple(parts)


def chat_message(message: dict[str, Json]) -> Message:
    """Returns a message as logged. An unknown role is kept; the normaliser rejects it."""
    message = with_content(message)
    role = as_str(message.get("role"))
    if role == "assistant":
        model = name_or_none(message.get("model"))
        read = Message(role, assistant_parts(message), model=model)
    elif role in ("tool", "function"):
        read = Message("tool", (tool_result(message),))
    else:
        read = Message(role[:40], content(message.get("content")))
    return noted([read], message)[0]


def tool_result(message: dict[str, Json]) -> ToolResult:
    """Returns the result in a message of role tool (or the older role function)."""
    name = as_str(message.get("name")) or as_str(message.get("tool_name"))
    return ToolResult(
        content(message.get("content")),
        call_id=name_or_none(message.get("tool_call_id")),
        name=name or None,
    )


def as_harness(parts: Iterable[P]) -> tuple[P | Text, ...]:
    """Returns the parts with all text marked as inserted by the agent program."""
    return tuple(
        Text(part.text, harness=True) if isinstance(part, Text) else part for part in parts
    )


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Returns the parts of all pieces of an answer; text that a piece continues is one part."""
    found: list[Part] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, Text) and isinstance(last, Text):
            found[-1] = Text(last.text + part.text)
        elif isinstance(part, Reasoning) and isinstance(last, Reasoning):
            found[-1] = Reasoning(last.text + part.text)
        else:
            found.append(part)
    return tuple(found)


def content_block(item: Json, *, harness: bool = False) -> Content:
    """Returns a typed block as content: its text, a placeholder for media, or an unknown part.

    A resource that MCP embeds is its text. `harness`: a program wrote it.
    """
    block = as_dict(item)
    kind = as_str(block.get("type"))
    inside = as_dict(block.get("resource")) if kind in _RESOURCES else block
    if (kind == "text" or kind in _RESOURCES) and isinstance(inside.get("text"), str):
        return Text(as_str(inside["text"]), harness=harness)
    if kind in _RESOURCES or kind in _MEDIA:
        return Media(_MEDIA.get(kind, "file"), as_str(inside.get("mimeType")))
    return unknown_part(kind or json_type(item))


def text_or_data(value: Json, *, compact: bool = False) -> tuple[Text | Data, ...]:
    """Returns a string as `Text`, null as no part and any other value as `Data`."""
    if value is None:
        return ()
    return (Text(value),) if isinstance(value, str) else (Data(value, compact),)


def with_compact_results(messages: Iterable[Message]) -> list[Message]:
    """Returns the messages of a program that sends values in results as compact JSON text."""
    return [
        replace(message, parts=tuple(map(_compact_result, message.parts)))
        if any(isinstance(part, ToolResult) for part in message.parts)
        else message
        for message in messages
    ]


def _compact_result(part: Part) -> Part:
    return compact_result(part) if isinstance(part, ToolResult) else part


def compact_result(result: ToolResult) -> ToolResult:
    """Returns a result whose values are compact."""
    content = (
        replace(one, compact=True) if isinstance(one, Data) else one for one in result.content
    )
    return replace(result, content=tuple(content))


def media_of(mime: str) -> Media:
    """Returns a `Media` of the kind in a MIME type: image, audio, video, else file."""
    family = mime.partition("/")[0]
    return Media(family if family in ("image", "audio", "video") else "file", mime)


def results_apart(parts: Iterable[Part]) -> tuple[tuple[ToolResult, ...], tuple[Part, ...]]:
    """Returns the tool results and the other parts of a message, for APIs that mix them."""
    parts = tuple(parts)
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    return results, tuple(part for part in parts if not isinstance(part, ToolResult))


def has_unknown_parts(messages: Iterable[Message]) -> bool:
    """Returns whether messages contain parts of unknown types."""
    return any(
        isinstance(item, Unparsed) and item.code == "unknown_part"
        for message in messages
        for part in message.parts
        for item in (part.content if isinstance(part, ToolResult) else (part,))
    )


def unreadable_messages(names: Iterable[str], where: str) -> tuple[Problem, ...]:
    """Returns the problem `unknown_part` if there are any names of types, else ().

    Use it if messages were not logged or cannot be separated, so that the context of every turn
    is unknown. For a single part of an unknown type use `conversation.unknown_part`.
    """
    types = ", ".join(repr(name[:40]) for name in dict.fromkeys(names))
    return (Problem("unknown_part", where, f"type {types}", records=0),) if types else ()
