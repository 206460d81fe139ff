"""Builds the conversations of a chat whose messages form a tree.

Siblings are edits or regenerations: the user went on from one of them. The path to the current
message is one conversation; every other path with an answer of its own is a conversation with the
problem `rewound`, in which the shared answers are repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Text,
    ToolCall,
    lowest,
)
from builder.problem import Problem
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.links import Links
from builder.readers.toolkit.segments import Segments

_ROOTS = frozenset({
    "00000000-0000-4000-8000-000000000000", "00000000-0000-0000-0000-000000000000",
    "client-created-root", "root",
})  # fmt: skip
"""Names of the empty message above the first one, which exports need not contain."""


@dataclass(frozen=True, slots=True)
class ChatNode:
    """A message of the tree.

    parent    id of the message that it follows; None: it is the first one. An id that the chat does
              not have: what was sent before it is lost, and the answers after it lack `history`
    messages  what it contains, in order; () for a node without content
    group     siblings of different groups do not replace each other: they are answers of several
              models that the user asked at once. "": the siblings replace each other
    """

    parent: str | None
    messages: tuple[Message, ...]
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """What the conversations of a chat have in common; see `Conversation` for the fields."""

    format_name: str
    scope: str
    name: str
    where: str
    system: str = ""
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    context: Context | None = None
    changes: Mapping[str, int] | None = None
    outcome: Mapping[str, Json] | None = None
    version: str | None = None


def chat_conversations(
    chat: Chat, nodes: Mapping[str, ChatNode], current: str | None, names: Counter[str]
) -> Iterator[Event]:
    """Yields the conversation that ends at the current message, and the abandoned branches.

    The first one counts the chat as one record; a chat without messages, or whose messages have no
    content, is ignored. `current` None or unknown: the last leaf.
    """
    targets: set[str] = set()
    segments = Segments(chat.name, records=1, taken=names)
    for path, is_abandoned in paths(nodes, current):
        answers = {one for one in path if _is_answer(nodes[one])}
        messages = [message for one in path for message in _messages(one, nodes[one], targets)]
        if not messages or (answers <= targets and not segments.records):
            continue
        targets |= answers
        if chat.system:
            messages.insert(0, Message("system", (Text(chat.system),)))
        context = chat.context
        above = nodes[path[0]].parent
        if above is not None and above not in nodes and above not in _ROOTS:
            context = _lacking_history(context)
            messages = [
                one if one.context is None else replace(one, context=_lacking_history(one.context))
                for one in messages
            ]
        detail = "the chat went on from another message"
        is_first = bool(segments.records)
        yield Conversation(
            id=segments.next_name(),
            record=chat.where,
            messages=tuple(with_session_keys(chat.format_name, messages, chat.scope)),
            tools=chat.tools,
            model=chat.model,
            records=segments.take_records(),
            problems=(Problem("rewound", chat.where, detail, 0),) if is_abandoned else (),
            changes=dict(chat.changes or {}) if is_first else {},
            context=context,
            outcome=chat.outcome if is_first else None,
            version=chat.version,
        )
    yield from segments.rest("no_content" if nodes else "no_messages")


def paths(nodes: Mapping[str, ChatNode], current: str | None) -> Iterator[tuple[list[str], bool]]:
    """Yields (ids from the first message on, whether it was abandoned) of each path to a leaf.

    The path to the current message is the first one; it need not end at a leaf.
    """
    links = Links({one: node.parent for one, node in nodes.items()})
    parents = links.parents
    if current not in nodes:
        current = links.leaves[-1] if links.leaves else next(iter(nodes), None)
    if current is None:
        return
    chosen = links.path(current)
    yield chosen, False
    on_path = set(chosen)
    last_of_group: dict[tuple[str | None, str], str] = {}
    for one, node in nodes.items():
        last_of_group[parents[one], node.group] = one
    replacing = {parents[one]: one for one in chosen}
    for leaf in links.leaves:
        if leaf in on_path:
            continue
        path = links.path(leaf)
        first = next(one for one in path if one not in on_path)
        parent, group = parents[first], nodes[first].group
        other = replacing.get(parent)
        is_beside = group != "" and other is not None and nodes[other].group not in ("", group)
        yield path, not (is_beside and last_of_group[parent, group] == first)


def _lacking_history(context: Context | None) -> Context | None:
    lost = Context.lacking({"history"})
    return lost if context is None else lowest((context, lost))


def _is_answer(node: ChatNode) -> bool:
    return any(message.role == "assistant" for message in node.messages)


def _messages(name: str, node: ChatNode, targets: set[str]) -> Iterator[Message]:
    """Yields the messages of a node, with a place for each call; those of `targets` as repeats."""
    at = 0
    for message in node.messages:
        if message.role != "assistant":
            yield message
            continue
        parts = []
        for part in message.parts:
            parts.append(replace(part, key=f"{name}.{at}") if isinstance(part, ToolCall) else part)
            at += 1
        repeat = name in targets and message.untrained is None
        untrained = REPEAT if repeat else message.untrained
        yield replace(message, parts=tuple(parts), untrained=untrained)


def in_order(messages: Mapping[str, tuple[Message, ...]]) -> dict[str, ChatNode]:
    """Returns the nodes of a chat whose log has an order in place of parents.

    A node follows the one before it. A text right after another answer of text is a version of it:
    these programs write an answer as one message, so that it is not continued by a second one.
    """
    nodes: dict[str, ChatNode] = {}
    last: str | None = None
    for name, own in messages.items():
        is_version = last is not None and _is_text(own) and _is_text(nodes[last].messages)
        parent = nodes[last].parent if is_version and last is not None else last
        nodes[name] = ChatNode(parent, own)
        last = name if own else last
    return nodes


def has_versions(nodes: Mapping[str, ChatNode]) -> bool:
    """Returns whether two nodes follow the same one."""
    parents = [node.parent for node in nodes.values() if node.messages]
    return len(set(parents)) < len(parents)


def _is_text(messages: tuple[Message, ...]) -> bool:
    """Returns whether the messages are one answer of text, without calls."""
    alone = messages[0] if len(messages) == 1 else None
    return (
        alone is not None
        and alone.role == "assistant"
        and any(isinstance(part, Text) for part in alone.parts)
        and not any(isinstance(part, ToolCall) for part in alone.parts)
    )
