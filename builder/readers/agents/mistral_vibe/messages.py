"""Converts messages of Mistral Vibe, of its store and of older versions."""

from __future__ import annotations

from builder.conversation import (
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
)
from builder.readers.toolkit.chat_messages import as_harness, chat_message, content_block
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_or_none


def stored_message(value: dict[str, Json]) -> Message:
    """Returns a message of the store or of a request."""
    role = as_str(value.get("role"))
    blocks = as_dicts(value.get("content"))
    if role == "assistant":
        return Message(role, tuple(part for block in blocks for part in _answer_parts(block)))
    contents = tuple(map(content_block, blocks))
    if role == "tool":
        failed = value.get("outcome") == "failure"
        call_id, name = name_or_none(value.get("tool_call_id")), name_or_none(value.get("name"))
        return Message(role, (ToolResult(contents, call_id, name, is_error=failed),))
    injected = (as_dict(block.get("_meta")).get("vibe.injected") is True for block in blocks)
    return Message(role[:40], as_harness(contents) if any(injected) else contents)


def _answer_parts(block: dict[str, Json]) -> list[Part]:
    match block.get("type"):
        case "reasoning":
            texts = [item for item in as_dicts(block.get("content")) if item.get("type") == "text"]
            thought = "".join(as_str(item.get("text")) for item in texts)
            return [Reasoning(thought)] if thought else []
        case "tool_call":
            arguments = as_dict(block.get("arguments"))
            name, call_id = as_str(block.get("name")), name_or_none(block.get("id"))
            raw = arguments.get("raw")
            return [ToolCall(name, arguments.get("value") if raw is None else raw, call_id)]
        case _:
            return [content_block(block)]


def logged_row(row: dict[str, Json]) -> Message:
    """Returns a row of `messages.jsonl` (versions 1 and 2)."""
    message = chat_message(row)
    if row.get("injected") is True and message.role == "user":
        message = Message(message.role, as_harness(message.parts))
    if message.role == "tool":
        text = row.get("content")
        failed = isinstance(text, str) and text.startswith("<tool_error>")
        cancelled = as_dict(row.get("tool_result")).get("cancelled") is True
        results = (part for part in message.parts if isinstance(part, ToolResult))
        message = Message(
            "tool",
            tuple(
                ToolResult(
                    part.content, part.call_id, part.name, is_error=failed, is_interrupted=cancelled
                )
                for part in results
            ),
        )
    images = [Media("image") for _ in as_dicts(row.get("images"))]
    return Message(message.role, (*message.parts, *images)) if images else message
