"""OpenAI chat messages as agent trajectories keep them: content, calls, reasoning, results.

Source: openai-chat.md "Request fields"; the formats that keep such messages name their reference.
"""

from __future__ import annotations

from builder.conversation import (
    Data,
    Json,
    Media,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none

_TEXTS = frozenset({"text", "input_text", "output_text"})
_MEDIA = {
    "image_url": "image", "image": "image", "input_image": "image",
    "input_audio": "audio", "audio": "audio", "audio_url": "audio",
    "video_url": "video", "video": "video",
    "file": "file", "document": "file", "input_file": "file", "document_url": "file",
}  # fmt: skip
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
"""Content parts that are thoughts; the second kind is encrypted."""


def content(value: Json, unknown: list[str]) -> tuple[Text | Data | Media, ...]:
    """A message's content: text, a list of typed parts, or another JSON value.

    Thoughts among the parts are left to `reasoning`; names of unknown types go to `unknown`.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if not isinstance(value, list):
        return (Data(value),)
    parts: list[Text | Data | Media] = []
    for item in value:
        part = as_dict(item)
        kind = as_str(part.get("type"))
        text = item if isinstance(item, str) else part.get("text")
        if isinstance(text, str) and (isinstance(item, str) or kind in _TEXTS):
            parts += [Text(text)] if text else []
        elif kind in _MEDIA:
            parts.append(Media(_MEDIA[kind]))
        elif kind not in _THOUGHTS:
            unknown.append(kind or type(item).__name__)
    return tuple(parts)


def tool_calls(value: Json) -> list[ToolCall | Unparsed]:
    """The calls of a message's `tool_calls`; an item that names no function is `bad_call`."""
    calls: list[ToolCall | Unparsed] = []
    for item in as_list(value):
        call = as_dict(item)
        # Servers that send both kinds leave the unused one empty.
        function = as_dict(call.get("function"))
        custom = {} if name_or_none(function.get("name")) else as_dict(call.get("custom"))
        function = custom or function
        name = name_or_none(function.get("name"))
        if name is None:
            calls.append(Unparsed(dumps(item), "bad_call"))
            continue
        # A custom tool takes free text, no JSON: its one argument is that text.
        arguments = {"input": custom.get("input")} if custom else function.get("arguments")
        calls.append(ToolCall(name, arguments, id=name_or_none(call.get("id"))))
    if value is not None and not isinstance(value, list):
        calls.append(Unparsed(dumps(value), "bad_call"))
    return calls


def reasoning(message: dict[str, Json]) -> list[Part]:
    """The thoughts of an assistant message in clear text, each once.

    `reasoning_content` and `reasoning` repeat what `thinking_blocks`, or content parts of type
    thinking, hold signed.
    """
    for name in ("reasoning_content", "reasoning"):
        if text := as_str(message.get(name)):
            return [Reasoning(text)]
    for blocks in (message.get("thinking_blocks"), message.get("content")):
        thoughts = [
            _thought(as_dict(block).get("thinking"))
            for block in as_list(blocks)
            if as_dict(block).get("type") == "thinking"
        ]
        if any(thoughts):
            return [Reasoning(thought) for thought in thoughts if thought]
    return []


def _thought(value: Json) -> str:
    """A thought: text, or (Mistral) a list of text parts."""
    texts = (as_str(as_dict(part).get("text")) for part in as_list(value))
    return as_str(value) or "".join(texts)


def assistant_parts(message: dict[str, Json], unknown: list[str]) -> tuple[Part, ...]:
    """The parts of an assistant message: its thoughts, its words, its calls."""
    parts = [*reasoning(message), *content(message.get("content"), unknown)]
    if refusal := as_str(message.get("refusal")):
        parts.append(Text(refusal))
    parts += tool_calls(message.get("tool_calls"))
    legacy = as_dict(message.get("function_call"))
    if name := name_or_none(legacy.get("name")):
        parts.append(ToolCall(name, legacy.get("arguments")))
    return tuple(parts)


def tool_result(message: dict[str, Json], unknown: list[str]) -> ToolResult:
    """The result that a message of role tool (or of the older role function) carries."""
    return ToolResult(
        content(message.get("content"), unknown),
        call_id=name_or_none(message.get("tool_call_id")),
        name=name_or_none(message.get("name")),
    )


def as_harness(parts: tuple[Text | Data | Media, ...]) -> tuple[Text | Data | Media, ...]:
    """The parts with their texts marked as the agent program's own."""
    return tuple(
        Text(part.text, harness=True) if isinstance(part, Text) else part for part in parts
    )


def unknown_parts(names: list[str], where: str) -> tuple[Problem, ...]:
    """The problem of a conversation with parts of unknown types: the model saw them, we cannot."""
    if not names:
        return ()
    shown = ", ".join(repr(name[:40]) for name in dict.fromkeys(names))
    return (Problem("unknown_part", where, f"type {shown}", records=0),)
