"""Parses blocks of Anthropic's Messages API (docs/formats/anthropic-messages.md "Blocks").

A turn in which the provider ran tools (web search, code, MCP servers) cannot be a target: no client
answers these calls, and the log lacks part of what the model saw of them (`server_tool`). Calls by
code that the model wrote are not the model's own (`programmatic_call`). A summary that replaced the
history before it is `compacted`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
from builder.readers.toolkit.chat_messages import results_apart
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, flag_or_none, name_or_none
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.unknown_keys import noted

Block = dict[str, Json]

HALF_CALL = "tool_use without its end"
"""The type that `stream` gives to a call with incomplete arguments."""

_SILENT = frozenset({"redacted_thinking", "tool_addition", "tool_removal"})
"""Encrypted thoughts, and notes that a listed tool may or may not be used from here on."""


def blocks(content: Json) -> list[Block]:
    """Returns the blocks of a message's or result's content; a string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [
        {"type": "text", "text": item} if isinstance(item, str) else as_dict(item)
        for item in as_list(content)
    ]


def read_message(item: Block) -> list[Message]:
    """Returns the messages of a logged message: its tool results, then its other content."""
    return noted(_messages(item), item)


def _messages(item: Block) -> Iterator[Message]:
    role = as_str(item.get("role"))[:40]
    results, rest = results_apart(read_parts(item.get("content")))
    parts = with_thoughts(rest, item) if role == "assistant" else rest
    if results:
        yield Message("tool", results)
    if parts or role == "assistant":
        yield Message(role, tuple(parts))


def read_parts(content: Json) -> list[Part]:
    """Returns the parts of blocks.

    Joins texts next to texts with citations: the API splits one text where its sources change.
    """
    parts: list[Part | list[str]] = []  # texts as lists of pieces
    cited = False
    for block in blocks(content):
        part = read_part(block)
        cites = bool(block.get("citations"))
        last = parts[-1] if parts else None
        if isinstance(part, Text) and isinstance(last, list) and (cited or cites):
            last.append(part.text)
        elif part is not None:
            parts.append([part.text] if isinstance(part, Text) else part)
        cited = cites
    return [Text("".join(part)) if isinstance(part, list) else part for part in parts]


def read_part(block: Block) -> Part | None:
    """Returns a block as a part; None if it holds nothing that a template renders."""
    kind = as_str(block.get("type"))
    match kind:
        case "text":
            text = as_str(block.get("text"))
            return Text(text) if text else None
        case "thinking":
            thought = as_str(block.get("thinking"))
            return Reasoning(thought) if thought else None
        case "tool_use":
            return _call(block)
        case "tool_result":
            return _result(block)
        case "image":
            return Media("image", media_type(block))
        case "document" | "container_upload" | "file":
            return Media("file", media_type(block))
        case "search_result":
            return Data(block)
        case "compaction":
            return Unparsed(kind, "compacted")
        case _ if kind == HALF_CALL:
            return Unparsed(as_str(block.get("text")), "truncated")
        case _ if kind.endswith(("_tool_use", "_tool_result")):
            # Only the type, since clients do not send the whole block back.
            return Unparsed(kind, "server_tool")
        case _:
            return None if kind in _SILENT else unknown_part(kind or "block")


def _call(block: Block) -> ToolCall | Unparsed:
    name = name_or_none(block.get("name"))
    if name is None:
        return Unparsed(dumps(block), "bad_call")
    if as_str(block, "caller", "type") not in ("", "direct"):
        return Unparsed(name, "programmatic_call")
    return ToolCall(name, block.get("input"), name_or_none(block.get("id")))


_RESULT_KEYS = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "id"})


def _result(block: Block) -> ToolResult:
    content: list[Content] = []
    value = block.get("content")
    for inner in blocks(value):
        match inner.get("type"):
            case "text":
                content.append(Text(as_str(inner.get("text"))))
            case "image":
                content.append(Media("image", media_type(inner)))
            case "document" | "file":
                content.append(Media("file", media_type(inner)))
            case _:
                content.append(Data(inner))
    if not isinstance(value, str | list | None):
        content.append(Data(value))
    if value is None:  # a program's own block of this name, whose result is under another key
        unread = sorted(key for key in block.keys() - _RESULT_KEYS if block[key])
        content += [unknown_part(f"tool_result.{key}") for key in unread]
    return ToolResult(
        tuple(content),
        name_or_none(block.get("tool_use_id")),
        is_error=flag_or_none(block.get("is_error")),
    )


def media_type(block: Block) -> str:
    """Returns the MIME type of a media block, or ""."""
    return as_str(block, "source", "media_type")[:80]


def system_messages(system: Json) -> Iterator[Message]:
    """Yields the system message of a request, whose text is a string or blocks."""
    if parts := read_parts(system):
        yield Message("system", tuple(parts))


def has_blocks(messages: Iterable[Block]) -> bool:
    """Returns whether messages contain calls or results in blocks specific to Anthropic."""
    return any(
        block.get("type") in ("tool_use", "tool_result")
        for message in messages
        for block in blocks(message.get("content"))
    )
