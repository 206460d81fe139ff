"""Gemini's `Content` (role, parts) as agents of that family log it: Gemini CLI, Qwen Code.

Source: gemini-api.md (Part), gemini-cli.md.
"""

from __future__ import annotations

import re
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
)
from builder.readers._narrow import as_dict, as_list, as_str, name_or_none
from builder.readers._session import CallKeys

_NOTHING = frozenset({"thoughtSignature", "thought", "videoMetadata", "partMetadata"})
"""Fields beside a part's own one; a part of these alone says nothing."""


def part_list(content: Json) -> list[Json]:
    """The parts of a PartListUnion: a string, one part, or a list of either."""
    items = content if isinstance(content, list) else [content]
    return [{"text": item} if isinstance(item, str) else item for item in items]


def read_parts(parts: list[Json], keys: CallKeys) -> tuple[list[Part], list[str]]:
    """What the parts say, and the names of the fields of those that are unknown.

    Media that stand beside tool results in one content belong to the result before them.
    """
    found: list[Part] = []
    unknown: list[str] = []
    for item in parts:
        part = _part(as_dict(item), keys)
        last = found[-1] if found else None
        if isinstance(part, str):
            unknown.append(part)
        elif isinstance(part, Media) and isinstance(last, ToolResult):
            found[-1] = replace(last, content=(*last.content, part))
        elif part is not None:
            found.append(part)
    return found, unknown


def _part(part: dict[str, Json], keys: CallKeys) -> Part | str | None:
    """The part; the name of an unknown one; None for one that says nothing."""
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
    names = [name for name in part if name not in _NOTHING]
    if names or not part:
        return names[0] if names else "nothing"
    return None


def _media(blob: dict[str, Json]) -> Media:
    mime = as_str(blob.get("mimeType"))
    family = mime.partition("/")[0]
    return Media(family if family in ("image", "audio", "video") else "file", mime)


def _result(response: dict[str, Json]) -> ToolResult:
    content = response_content(response.get("response"))
    media: list[Text | Data | Media] = []
    for item in as_list(response.get("parts")):
        blob = as_dict(item)
        if "inlineData" in blob or "fileData" in blob:
            media.append(_media(as_dict(blob.get("inlineData") or blob.get("fileData"))))
        else:
            media.append(Data(item))
    return ToolResult(
        (*content, *media),
        call_id=name_or_none(response.get("id")),
        name=name_or_none(response.get("name")),
        is_error="error" in as_dict(response.get("response")),
    )


def response_content(response: Json) -> tuple[Text | Data | Media, ...]:
    """What a `response` object says: a single `output`, `error` or `result` is unwrapped."""
    if response is None:
        return ()
    if isinstance(response, dict) and len(response) == 1:
        for name in ("output", "error", "result"):
            if name in response:
                value = response[name]
                return (Text(value) if isinstance(value, str) else Data(value),)
    return (Text(response) if isinstance(response, str) else Data(response),)


_ACKNOWLEDGED = frozenset(
    {"Got it. Thanks for the context!", "Got it. Thanks for the additional context!"}
)
_SET_UP = re.compile(
    r"\s*(?:<session_context>|<hook_context>|<system-reminder>"
    r"|This is the (?:Gemini CLI|Qwen Code)\. We are setting up the context for our chat)"
)


def mark_harness(parts: list[Part], role: str) -> list[Part]:
    """The parts with the program's own words marked: context blocks, put-on acknowledgements.

    The program opens a history with a block of context, and answers it (and the summary of a
    compressed history) itself in the model's name.
    """
    return [
        replace(part, harness=True)
        if isinstance(part, Text)
        and (_SET_UP.match(part.text) if role == "user" else part.text in _ACKNOWLEDGED)
        else part
        for part in parts
    ]


def content_messages(content: Json, keys: CallKeys) -> tuple[list[Message], list[str]]:
    """The messages of one `Content`, and the names of its unknown parts.

    Tool results stand in contents of role user (older: function); they come first.
    """
    item = as_dict(content)
    parts, unknown = read_parts(as_list(item.get("parts")), keys)
    role = as_str(item.get("role"))
    role = {"model": "assistant", "function": "user"}.get(role, role)
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    rest = mark_harness([part for part in parts if not isinstance(part, ToolResult)], role)
    messages = [Message("tool", results)] if results else []
    if rest:
        messages.append(Message(role, tuple(rest)))
    return messages, unknown
