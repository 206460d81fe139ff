"""Reads data exports of Claude.ai (conversations.json). Source: docs/formats/claude-ai-export.md.

A conversation is a record. Calls and results are inside one answer, which is cut into turns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial

from builder.conversation import (
    Content,
    Context,
    Data,
    Event,
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
from builder.readers import declared
from builder.readers.chats.pieces import file_media, turns
from builder.readers.toolkit.chat_messages import media_of
from builder.readers.toolkit.history import Chat, ChatNode, chat_conversations, in_order
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    flag_or_none,
    name_of,
    name_or_none,
)
from builder.readers.toolkit.rows import read_objects
from builder.sources.source import Source

_NAME = "claude-ai-export"
_BASE = ("system", "tools")
_SENDERS = frozenset({"human", "assistant"})
_UNSHOWN = re.compile(
    r"(?:```\s*)?(?:This block is not supported on your current device yet\.|"
    r"Viewing artifacts created via the Analysis Tool web feature preview isn.t yet supported on "
    r"mobile\.)(?:\s*```)?"
)
"""What the export writes in place of a block, in the text of an answer: no model's words."""
_FILE_KEYS = ("file_path", "name", "mime_type")
_SCREEN = frozenset({"token_budget", "flag"})


def _recognise(source: Source) -> str | None:
    """Claims conversations with chat_messages of senders."""
    for value in source.peek.objects:
        messages = as_list(value.get("chat_messages"))
        is_named = "uuid" in value and "chat_messages" in value
        if is_named or any(as_dict(one).get("sender") in _SENDERS for one in messages):
            return "conversations with chat_messages"
    return None


def _conversation(
    source: Source, where: str, value: dict[str, Json], names: Counter[str]
) -> Iterator[Event]:
    items = as_dicts(value.get("chat_messages"))
    parents: dict[str, str | None] = {}
    messages_of: dict[str, tuple[Message, ...]] = {}
    is_tree = any(name_or_none(item.get("parent_message_uuid")) for item in items)
    missing = {*_BASE}
    last: str | None = None
    sender = ""
    for at, item in enumerate(items):
        last = as_str(item.get("uuid")) or str(at)
        if not is_tree and sender and item.get("sender") == sender:
            missing.add("history")  # possibly an edit or another answer, which is not marked
        sender = as_str(item.get("sender"))
        parents[last] = name_or_none(item.get("parent_message_uuid"))
        messages_of[last] = tuple(_messages(item, missing))
    nodes = in_order(messages_of)
    if is_tree:
        nodes = {name: ChatNode(parents[name], messages) for name, messages in messages_of.items()}
    name = name_of(value, "uuid", "id") or where
    chat = Chat(
        format_name=_NAME,
        scope=f"{source.name}/{name}",
        name=name,
        where=where,
        model=name_of(value, "model"),
        context=Context.lacking(_BASE),
    )
    current = name_or_none(value.get("current_leaf_message_uuid"))
    yield from chat_conversations(chat, nodes, current if current in nodes else last, names)


def _messages(item: dict[str, Json], missing: set[str]) -> Iterator[Message]:
    """Yields the messages of a message of the export; `missing` is extended for later answers."""
    blocks = as_dicts(item.get("content"))
    text = as_str(item.get("text"))
    if not blocks and text.strip():
        blocks = [{"type": "text", "text": text}]
    if item.get("sender") != "assistant":
        yield from _question(item, blocks)
        return
    pieces = list(_pieces(blocks))
    yield from turns(pieces, Context.lacking(missing), cut_code(item))
    if any(block.get("type") == "thinking" and _is_cut(block) for block in blocks):
        missing.add("reasoning")
    results = (one for one in pieces if isinstance(one, ToolResult))
    if any(isinstance(part, Data) for one in results for part in one.content):
        missing.add("history")


def _is_cut(block: dict[str, Json]) -> bool:
    return block.get("cut_off") is True or block.get("truncated") is True


def _question(item: dict[str, Json], blocks: list[dict[str, Json]]) -> Iterator[Message]:
    parts: list[Part] = []
    for attachment in as_dicts(item.get("attachments")):
        if text := as_str(attachment.get("extracted_content")):
            parts.append(Text(text, harness=True))
        else:
            parts.append(media_of(as_str(attachment.get("file_type"))))
    parts += map(file_media, as_dicts(item.get("files")))
    for block in blocks:
        kind = as_str(block.get("type"))
        text = as_str(block.get("text"))
        if kind in ("text", "voice_note"):
            parts += _text(text)
        elif kind == "image":
            parts.append(Media("image"))
        elif kind not in _SCREEN:
            parts.append(unknown_part(kind))
    if parts:
        yield Message("user", tuple(parts))


def _pieces(blocks: list[dict[str, Json]]) -> Iterator[Part]:
    """Yields the parts of an answer, results among them."""
    for block in blocks:
        match as_str(block.get("type")):
            case "text":
                yield from _text(as_str(block.get("text")))
            case "thinking":
                if not _is_cut(block) and as_str(block.get("thinking")).strip():
                    yield Reasoning(as_str(block["thinking"]))
            case "tool_use":
                name, call_id = name_or_none(block.get("name")), name_or_none(block.get("id"))
                made = ToolCall(name, block.get("input"), call_id) if name else None
                yield made or Unparsed("", "bad_call")
            case "tool_result":
                yield ToolResult(
                    tuple(_result(block.get("content"))),
                    name_or_none(block.get("tool_use_id")),
                    name_or_none(block.get("name")),
                    is_error=flag_or_none(block.get("is_error")),
                )
            case kind if kind in _SCREEN:
                pass
            case kind:
                yield unknown_part(kind)


def _text(text: str) -> Iterator[Part]:
    """Yields a text, and an unknown part for each block that the export did not show in it."""
    for at, piece in enumerate(_UNSHOWN.split(text)):
        if at:
            yield unknown_part("unsupported_block")
        if piece.strip():
            yield Text(piece)


def _result(value: Json) -> Iterator[Content]:
    if isinstance(value, str):
        yield Text(value)
        return
    for part in as_dicts(value):
        kind = part.get("type")
        if kind == "text":
            yield Text(as_str(part.get("text")))
        elif kind == "image":
            yield Media("image")
        elif kind == "knowledge":
            yield Data({key: part[key] for key in ("title", "url", "text") if part.get(key)})
        elif name_or_none(part.get("file_path")):
            yield Data({key: part[key] for key in _FILE_KEYS if key in part})
        else:
            yield unknown_part(as_str(kind))


READER = declared(
    _NAME,
    recognise=_recognise,
    read=lambda source: read_objects(
        source, partial(_conversation, source), "a conversation that is "
    ),
)
