"""Parses Gemini's `Content` (role, parts), which Gemini CLI and Qwen Code log too.

Keys are in camelCase on the wire and in snake_case in dumps of the Python SDK.
Source: docs/formats/gemini-api.md, docs/formats/gemini-cli.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

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
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.chat_messages import media_of, results_apart, text_or_data
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, one_or_many
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted

_NOTHING = frozenset(
    {"thoughtSignature", "thought", "videoMetadata", "partMetadata", "mediaResolution"}
)
"""Additional fields of a part; a part with only these is empty."""
_KEYS = (MESSAGE_KEYS | {"parts"}) - {"content", "tool_calls"}
"""Keys of a content that are known."""
_SERVER = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
"""Parts of tools that the service runs in the model's turn, which cannot be a target."""
_WIRE_KEYS = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "tool_call": "toolCall",
    "tool_response": "toolResponse",
    "thought_signature": "thoughtSignature",
    "video_metadata": "videoMetadata",
    "part_metadata": "partMetadata",
    "media_resolution": "mediaResolution",
}


def part_list(content: Json) -> list[Json]:
    """Returns the parts of a PartListUnion: a string, one part, or a list of either."""
    return [{"text": item} if isinstance(item, str) else item for item in one_or_many(content)]


def wire_part(part: Json) -> dict[str, Json]:
    """Returns a part with the wire's keys, without the null fields of SDK dumps."""
    return {_WIRE_KEYS.get(k, k): item for k, item in as_dict(part).items() if item is not None}


def read_parts(parts: list[Json], keys: CallKeys) -> list[Part]:
    """Returns the parts of a content.

    Media after a tool result belong to the result.
    """
    read: list[Part] = []
    for item in parts:
        part = _part(wire_part(item), keys)
        last = read[-1] if read else None
        if isinstance(part, str):
            read.append(unknown_part(part))
        elif isinstance(part, Media) and isinstance(last, ToolResult):
            read[-1] = replace(last, content=(*last.content, part))
        elif part is not None:
            read.append(part)
    return read


def _part(part: dict[str, Json], keys: CallKeys) -> Part | str | None:
    """Returns the part; the name of an unknown part; None for an empty part."""
    if "functionCall" in part:
        call = as_dict(part["functionCall"])
        call_id = name_or_none(call.get("id"))
        return ToolCall(as_str(call.get("name")), call.get("args"), call_id, keys.of(call_id))
    if "functionResponse" in part:
        return _result(as_dict(part["functionResponse"]))
    if "inlineData" in part or "fileData" in part:
        return _media(as_dict(part.get("inlineData") or part.get("fileData")))
    text = part.get("text")
    if isinstance(text, str):
        if not text:
            return None
        return Reasoning(text) if part.get("thought") is True else Text(text)
    if any(name in part for name in _SERVER):
        return Unparsed(dumps({k: part[k] for k in part if k not in _NOTHING}), "server_tool")
    names = [name for name in part if name not in _NOTHING]
    if names or not part:
        return names[0] if names else "nothing"
    return None


def _media(blob: dict[str, Json]) -> Media:
    return media_of(as_str(blob.get("mimeType") or blob.get("mime_type")))


def _result(response: dict[str, Json]) -> ToolResult:
    content = response_content(response.get("response"))
    media: list[Content] = []
    for item in as_list(response.get("parts")):
        blob = wire_part(item)
        if "inlineData" in blob or "fileData" in blob:
            media.append(_media(as_dict(blob.get("inlineData") or blob.get("fileData"))))
        else:
            media.append(Data(item))
    return ToolResult(
        (*content, *media),
        call_id=name_or_none(response.get("id")),
        name=name_or_none(response.get("name")),
        is_error=as_dict(response.get("response")).get("error") is not None or None,
    )


def response_content(response: Json) -> tuple[Content, ...]:
    """Returns the content of a `response`; unwraps a single `output`, `error` or `result`."""
    if isinstance(response, dict) and len(response) == 1:
        for name in ("output", "error", "result"):
            if name in response:
                value = response[name]
                return (Text(value) if isinstance(value, str) else Data(value),)
    return text_or_data(response)


_ACKNOWLEDGED = frozenset(
    {"Got it. Thanks for the context!", "Got it. Thanks for the additional context!"}
)
_SET_UP = re.compile(
    r"(?:\s*<(session_context|hook_context|system-reminder)>(?:(?!</\1>).)*</\1>)+\s*\Z"
    r"|\s*This is the (?:Gemini CLI|Qwen Code)\. We are setting up the context for our chat",
    re.DOTALL,
)


def mark_harness(parts: Iterable[Part], role: str) -> list[Part]:
    """Marks text of the agent program: blocks of context, and acknowledgements.

    The program opens a history with a block of context, and acknowledges it (and the summary of a
    compressed history) in the model's name.
    """
    return [
        replace(part, harness=True)
        if isinstance(part, Text)
        and (_SET_UP.match(part.text) if role == "user" else part.text in _ACKNOWLEDGED)
        else part
        for part in parts
    ]


def content_messages(content: Json, keys: CallKeys) -> list[Message]:
    """Returns the messages of one `Content`: its tool results, then its other parts.

    Tool results have the role user (older: function; some SDKs: tool). Content without a role is
    the user's.
    """
    item = as_dict(content)
    role = "user" if item.get("role") is None else as_str(item["role"])
    role = {"model": "assistant", "function": "user", "tool": "user"}.get(role, role)[:40]
    results, rest = results_apart(read_parts(as_list(item.get("parts")), keys))
    messages = [Message("tool", results)] if results else []
    parts = with_thoughts(rest, item) if role == "assistant" else rest
    if parts:
        messages.append(Message(role, tuple(mark_harness(parts, role))))
    return noted(messages, item, _KEYS)
