"""Reads chats of Grok's data export (prod-grok-backend.json). Source: docs/formats/grok-export.md.

A chat is `{conversation, responses}`; a response is a message of the user or of the model, with the
one before it in `parent_response_id`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from builder.conversation import Context, Event, Json, Media, Message, Part, Reasoning, Text
from builder.readers import declared
from builder.readers.chats.pieces import newest_leaf
from builder.readers.toolkit.history import Chat, ChatNode, chat_conversations
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_of, name_or_none
from builder.readers.toolkit.rows import read_objects
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.sources.source import Source

_NAME = "grok-export"
_BASE = ("system", "tools")
_SEARCHED = (
    "web_search_results", "cited_web_search_results", "xpost_ids", "webpage_urls", "steps",
    "generated_image_urls", "image_edit_uris", "agent_thinking_traces", "tool_responses",
)  # fmt: skip
"""What the service found or made for an answer; none shows the call and what the model got."""
_TOOL_MARK = "<xai:"
_KEYS = MESSAGE_KEYS | {*_SEARCHED} | {
    "_id", "message", "sender", "create_time", "parent_response_id", "conversation_id",
    "thinking_trace", "thinking_start_time", "thinking_end_time", "file_attachments", "query",
    "query_type", "card_attachments_json", "media_types", "manual", "partial", "shared", "error",
    "mode", "request_metadata", "ui_layout",
}  # fmt: skip


def _recognise(source: Source) -> str | None:
    is_chat = any(map(_responses, source.peek.objects))
    return "conversations with responses of senders (Grok's data export)" if is_chat else None


def _responses(chat: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the messages of an exported chat; [] if it is none."""
    if not isinstance(chat.get("conversation"), dict):
        return []
    responses = [as_dict(one.get("response")) for one in as_dicts(chat.get("responses"))]
    are_messages = all("sender" in one and "message" in one for one in responses)
    return responses if are_messages else []


def _conversation(
    source: Source, where: str, value: dict[str, Json], names: Counter[str]
) -> Iterator[Event]:
    missing = {*_BASE}
    nodes: dict[str, ChatNode] = {}
    for at, item in enumerate(_responses(value)):
        parent = name_or_none(item.get("parent_response_id"))
        name = name_or_none(item.get("_id")) or f"#{at}"
        nodes[name] = ChatNode(parent, tuple(_messages(item, missing)))
    chat_id = name_of(as_dict(value.get("conversation")), "id") or where
    chat = Chat(
        format_name=_NAME,
        scope=f"{source.name}/{chat_id}",
        name=chat_id,
        where=where,
        context=Context.lacking(_BASE),
    )
    yield from chat_conversations(chat, nodes, newest_leaf(nodes, {}), names)


def _messages(item: dict[str, Json], missing: set[str]) -> Iterator[Message]:
    """Yields the message of a response; adds what later answers lack to `missing`."""
    text, thought = as_str(item.get("message")), as_str(item.get("thinking_trace"))
    files: list[Part] = [Media("file") for _ in as_list(item.get("file_attachments"))]
    words: list[Part] = [Text(text)] if text.strip() else []
    if as_str(item.get("sender")).lower() in ("human", "user"):
        if files or words:
            yield from noted([Message("user", (*files, *words))], item, _KEYS)
        return
    searched = _TOOL_MARK in thought or _TOOL_MARK in text or any(map(item.get, _SEARCHED))
    thoughts: list[Part] = [Reasoning(thought)] if thought.strip() and not searched else []
    code = "server_tool" if searched else None
    if item.get("error") or item.get("partial") is True or not words:
        code = "aborted"
    if parts := (*thoughts, *words, *files):
        context = Context.lacking(missing)
        answer = Message("assistant", parts, None, code, context, name_of(item, "model"))
        yield from noted([answer], item, _KEYS)
    if searched:
        missing.add("history")


READER = declared(
    _NAME,
    recognise=_recognise,
    read=lambda source: read_objects(source, partial(_conversation, source), "a chat that is "),
)
