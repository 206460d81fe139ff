"""Reads chats of DeepSeek's web interface. Source: docs/formats/deepseek-export.md.

The data export has a mapping of nodes like ChatGPT's; responses of the interface's own API, which
browser extensions save, list the messages. In both, a message consists of fragments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from builder.conversation import (
    Context,
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    unknown_part,
)
from builder.readers import declared
from builder.readers.chats.pieces import file_media, newest_leaf
from builder.readers.toolkit.history import Chat, ChatNode, chat_conversations
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_of, name_or_none
from builder.readers.toolkit.rows import read_objects
from builder.sources.source import Source

_NAME = "deepseek-export"
_BASE = ("system", "tools")
_SEARCHES = frozenset({"SEARCH", "TOOL_SEARCH", "TOOL_OPEN", "TOOL_FIND", "READ_LINK"})
_ANSWERS = frozenset({"RESPONSE", "THINK", "TEMPLATE_RESPONSE", "TIP"}) | _SEARCHES
_NOTICES = frozenset(
    {
        "服务器繁忙，请稍后再试。",  # noqa: RUF001 - the service's own words
        "The server is busy. Please try again later.",
    }
)
"""Texts that the service shows in place of an answer."""


def _recognise(source: Source) -> str | None:
    """Claims chats whose messages consist of fragments."""
    for value in source.peek.objects:
        if _mapping(value):
            return "a mapping of nodes whose messages have fragments"
        if _listed(value)[1]:
            return "chat_session and chat_messages of DeepSeek's interface"
    return None


def _mapping(value: dict[str, Json]) -> dict[str, Json]:
    """Returns the nodes of an exported chat; {} if it is none."""
    mapping = as_dict(value.get("mapping"))
    messages = (as_dict(node, "message") for node in mapping.values())
    is_own = "inserted_at" in value or any("fragments" in message for message in messages)
    return mapping if is_own else {}


def _listed(value: dict[str, Json]) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """Returns the session and the messages of a response of the API, with or without its wrap."""
    body = as_dict(value, "data", "biz_data") or value
    session = as_dict(body.get("chat_session"))
    messages = as_dicts(body.get("chat_messages"))
    return session, messages if any("parent_id" in one for one in messages) else []


def _conversation(
    source: Source, where: str, value: dict[str, Json], names: Counter[str]
) -> Iterator[Event]:
    session, listed = _listed(value)
    items: dict[str, tuple[str | None, dict[str, Json]]] = {}
    for at, message in enumerate(listed):
        name = _id(message.get("message_id")) or f"#{at}"
        items[name] = (_id(message.get("parent_id")), message)
    if not listed:
        session = value
        for name, node in as_dict(value.get("mapping")).items():
            items[name] = (name_or_none(as_dict(node).get("parent")), as_dict(node, "message"))
    reading = _Reading()
    nodes = {
        name: ChatNode(parent, tuple(reading.messages(message)))
        for name, (parent, message) in items.items()
    }
    current = _id(session.get("current_message_id"))
    name = name_of(session, "id") or where
    chat = Chat(
        format_name=_NAME,
        scope=f"{source.name}/{name}",
        name=name,
        where=where,
        context=Context.lacking(_BASE),
        changes=dict(sorted(reading.changes.items())),
    )
    times = {name: as_str(message.get("inserted_at")) for name, (_, message) in items.items()}
    chosen = current if current in nodes else newest_leaf(nodes, times)
    yield from chat_conversations(chat, nodes, chosen, names)


def _id(value: Json) -> str | None:
    return None if value is None or isinstance(value, bool) else str(value)[:200]


@dataclass(slots=True)
class _Reading:
    """Converts messages; counts what is left out of their text, and what later answers lack."""

    changes: Counter[str] = field(default_factory=Counter)
    missing: set[str] = field(default_factory=lambda: {*_BASE})

    def messages(self, message: dict[str, Json]) -> Iterator[Message]:
        """Yields the message of a node; nothing if it has no content."""
        fragments = as_dicts(message.get("fragments")) or _older(message)
        kinds = {as_str(one.get("type")) for one in fragments}
        default = "assistant" if kinds & _ANSWERS else "user"
        role = as_str(message.get("role")).lower()[:40] or default
        parts = tuple(self._parts(message, fragments))
        if parts and role != "assistant":
            yield Message(role, parts)
        elif parts:
            yield Message(
                role,
                parts,
                model=name_of(message, "model"),
                context=Context.lacking(self.missing),
                untrained=_untrained(message, kinds, parts),
            )
        if kinds & _SEARCHES:
            self.missing.add("history")

    def _parts(self, message: dict[str, Json], fragments: list[dict[str, Json]]) -> Iterator[Part]:
        yield from map(file_media, as_dicts(message.get("files")))
        for fragment in fragments:
            kind, text = as_str(fragment.get("type")), as_str(fragment.get("content"))
            if kind in ("REQUEST", "RESPONSE", "TEMPLATE_RESPONSE"):
                yield from [Text(text)] if text.strip() else []
            elif kind == "THINK":
                yield from [Reasoning(text)] if text.strip() else []
            elif kind == "FILE":
                yield from map(file_media, as_dicts(fragment.get("files")) or [fragment])
            elif kind in _SEARCHES:
                self.changes["search_fragment"] += 1
            elif kind != "TIP":
                yield unknown_part(kind)


def _older(message: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the fragments of a message of the API's older form, whose texts are keys."""
    is_user = as_str(message.get("role")).lower() == "user"
    fragments: list[dict[str, Json]] = []
    if message.get("search_results"):
        fragments.append({"type": "SEARCH"})
    for key, kind in (("thinking_content", "THINK"), ("content", "RESPONSE")):
        if isinstance(message.get(key), str):
            fragments.append({"type": "REQUEST" if is_user else kind, "content": message[key]})
    return fragments


def _untrained(message: dict[str, Json], kinds: set[str], parts: tuple[Part, ...]) -> str | None:
    """Returns why an answer is no target, None if it is one."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if "TEMPLATE_RESPONSE" in kinds or any(text.strip() in _NOTICES for text in texts):
        return "inserted"
    if not texts or as_str(message.get("status")) not in ("", "FINISHED"):
        return "aborted"
    return "server_tool" if kinds & _SEARCHES else None


READER = declared(
    _NAME,
    recognise=_recognise,
    read=lambda source: read_objects(source, partial(_conversation, source), "a chat that is "),
)
