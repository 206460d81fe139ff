"""Reads data exports of ChatGPT (conversations.json). Source: docs/formats/chatgpt-export.md.

A conversation is a record and a tree of nodes. A call is a message of the assistant to a recipient
other than "all"; calls have no ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from builder.conversation import (
    Content,
    Context,
    Conversation,
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
from builder.jsonio import loads_text
from builder.readers import declared
from builder.readers.toolkit.chat_messages import as_harness, media_of
from builder.readers.toolkit.history import (
    Chat,
    ChatNode,
    chat_conversations,
    has_versions,
    in_order,
)
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_of, name_or_none
from builder.readers.toolkit.rows import read_objects
from builder.sources.source import Source

_NAME = "chatgpt-export"
_MARK = re.compile("\ue200[^\ue201]*\ue201|[\ue200-\ue206]")
"""A citation: private characters around the number of a search result."""
_SETTINGS = ("user_profile", "user_instructions", "model_set_context")
_TEXTS = ("text", "result", "summary", "output_str")
_CHANNELS = (None, "analysis", "commentary", "final")
_SCREEN = frozenset({"reasoning_recap"})


def _recognise(source: Source) -> str | None:
    return "a mapping of nodes" if any(map(_mapping, source.peek.objects)) else None


def _mapping(value: dict[str, Json]) -> dict[str, Json]:
    """Returns the nodes of a conversation, which some exporters wrap; {} if there are none."""
    mapping = as_dict(value.get("mapping"))
    nodes = [node for node in map(as_dict, list(mapping.values())[:5]) if "message" in node]
    if nodes and "inserted_at" not in value and all(map(_is_node, nodes)):
        return mapping
    inner = value.get("raw_provider_payload")
    return _mapping(inner) if isinstance(inner, dict) and "mapping" not in value else {}


def _is_node(node: dict[str, Json]) -> bool:
    """Returns whether a node can be one of ChatGPT's: DeepSeek's messages have fragments."""
    message = as_dict(node, "message")
    is_empty = "message" in node and node["message"] is None
    known = "role" in as_dict(message, "author") or "parent" in node or is_empty
    return known and "fragments" not in message


def _conversation(
    source: Source, where: str, value: dict[str, Json], names: Counter[str]
) -> Iterator[Event]:
    if "mapping" not in value and isinstance(value.get("raw_provider_payload"), dict):
        value = as_dict(value["raw_provider_payload"])
    mapping = as_dict(value.get("mapping"))
    reading = _Reading()
    found = {
        name: tuple(reading.messages(as_dict(item, "message"))) for name, item in mapping.items()
    }
    parents = _parents(mapping)
    nodes = {name: ChatNode(parents.get(name), messages) for name, messages in found.items()}
    if not parents:
        nodes = in_order({name: found[name] for name in _by_time(mapping)})
        reading.missing |= {"history"} if has_versions(nodes) else set()
    current = name_or_none(value.get("current_node"))
    if current not in nodes:
        current = _newest(mapping, parents) if parents else None
    name = name_of(value, "conversation_id", "id") or where
    chat = Chat(
        format_name=_NAME,
        scope=f"{source.name}/{name}",
        name=name,
        where=where,
        model=name_of(value, "default_model_slug"),
        context=Context.lacking(reading.missing),
        changes=dict(sorted(reading.changes.items())),
    )
    for event in chat_conversations(chat, nodes, current, names):
        if isinstance(event, Conversation):
            event = replace(event, messages=tuple(_paired(event.messages)))  # noqa: PLW2901 - completed
        yield event


def _parents(mapping: dict[str, Json]) -> dict[str, str | None]:
    """Returns the parent of each node, which may name its children only; {} if none is named."""
    parents: dict[str, str | None] = {}
    for name, item in mapping.items():
        node = as_dict(item)
        if "parent" in node:
            parents[name] = name_or_none(node["parent"])
        for child in as_list(node.get("children")):
            if isinstance(child, str):
                parents.setdefault(child, name)
    return parents if any(parents.values()) else {}


def _by_time(mapping: dict[str, Json]) -> list[str]:
    """Returns the names of the nodes in the order of their times, or of the file without these."""
    times = {name: _time(item) for name, item in mapping.items()}
    written = [name for name in mapping if as_dict(mapping[name]).get("message") is not None]
    if any(times[name] is None for name in written):
        return written
    return sorted(written, key=lambda name: times[name] or 0)


def _time(item: Json, *keys: str) -> float | None:
    """Returns when the message of a node was written, in seconds; None if it is not logged."""
    message = as_dict(item, "message")
    seconds = next(filter(None, map(message.get, keys or ("create_time",))), None)
    return seconds if isinstance(seconds, int | float) else None


def _newest(mapping: dict[str, Json], parents: dict[str, str | None]) -> str | None:
    """Returns the leaf that was written last; None if no times are logged."""
    times: dict[str, float] = {}
    for name in mapping.keys() - set(parents.values()):
        seconds = _time(mapping[name], "update_time", "create_time")
        if seconds is not None:
            times[name] = seconds
    return max(sorted(times), key=lambda name: times[name], default=None)


def _paired(messages: tuple[Message, ...]) -> Iterator[Message]:
    """Yields the messages; the texts of a tool after one call are its result, others a program's.

    An answer after the text of a tool that nothing called is no continuation of the one before it.
    """
    calls = 0
    results: list[ToolResult] = []
    unseen = False  # whether the result of a search was not logged
    for message in messages:
        if message.role == "tool":
            logged = [part for part in message.parts if isinstance(part, ToolResult)]
            if calls and not any(part.content for part in logged):
                unseen = True
                continue
            if calls:
                results += logged
            else:
                texts = [as_harness(part.content) for part in logged]
                yield Message("user", tuple(part for text in texts for part in text))
            continue
        if results:
            yield from _results(results, calls)
            results, calls = [], 0
        made = sum(isinstance(part, ToolCall) for part in message.parts)
        calls = calls + made if message.role == "assistant" else 0
        if message.role == "user":
            unseen = False
        elif unseen and message.untrained is None:
            message = replace(message, untrained="server_tool")  # noqa: PLW2901 - completed
        yield message
    yield from _results(results, calls)


def _results(results: list[ToolResult], calls: int) -> Iterator[Message]:
    if calls == 1 and len(results) > 1:
        content = tuple(part for result in results for part in result.content)
        failed = any(result.is_error for result in results)
        yield Message("tool", (replace(results[0], content=content, is_error=failed),))
        return
    for result in results:
        yield Message("tool", (result,))


@dataclass(slots=True)
class _Reading:
    """Converts nodes; collects what the log lacks, and the changes of its text."""

    missing: set[str] = field(default_factory=lambda: {"system", "tools"})
    changes: Counter[str] = field(default_factory=Counter)

    def messages(self, message: dict[str, Json]) -> Iterator[Message]:
        """Yields the message of a node, if it contains one."""
        if not message:
            return
        author = as_dict(message.get("author"))
        role = as_str(author.get("role"))
        body = as_dict(message.get("content"))
        metadata = as_dict(message.get("metadata"))
        kind = as_str(body.get("content_type"))
        if kind in _SCREEN or (message.get("weight") == 0 and role != "assistant"):
            return
        if kind in ("user_editable_context", "model_editable_context"):
            self.missing.add("reminders")  # the words around it are not logged
            texts = [as_str(body.get(key)) for key in _SETTINGS]
            if text := "\n\n".join(filter(None, texts)):
                yield Message("user", (Text(text, harness=True),))
            return
        if kind == "thoughts":
            self.changes["reasoning_summary_dropped"] += 1
            self.missing.add("reasoning")
            return
        if metadata.get("attachments"):
            self.missing.add("reminders")
        parts = tuple(self._parts(body))
        if role == "tool":
            status = as_str(metadata, "aggregate_result", "status")
            failed = kind == "system_error" or status.startswith("failed")
            yield Message(
                "tool", (ToolResult(parts, name=name_or_none(author.get("name")), is_error=failed),)
            )
        elif role == "assistant":
            yield from self._answer(message, parts)
        elif parts:
            yield Message(role[:40], parts)

    def _answer(self, message: dict[str, Json], parts: tuple[Content, ...]) -> Iterator[Message]:
        metadata = as_dict(message.get("metadata"))
        recipient = as_str(message.get("recipient")) or "all"
        real = as_str(message, "author", "metadata", "real_author")
        answer: list[Part] = [*parts]
        if recipient != "all":
            text = "\n".join(part.text for part in parts if isinstance(part, Text))
            answer = [ToolCall(recipient, _arguments(recipient, text))]
        elif message.get("channel") == "analysis":
            answer = [Reasoning(p.text) if isinstance(p, Text) else p for p in parts]
        untrained = cut_code({key: message[key] for key in message if key != "status"})
        reason = as_dict(metadata.get("finish_details")).get("type")
        if real.startswith("tool:"):
            untrained = "inserted"
        elif message.get("weight") == 0:
            untrained = "zero_weight"
        elif reason == "interrupted" or message.get("status") == "in_progress":
            untrained = "aborted"
        elif reason == "max_tokens":
            answer.append(Unparsed("", "truncated_answer"))
        if answer:
            model = name_of(metadata, "model_slug")
            unknown = () if message.get("channel") in _CHANNELS else ("channel",)
            yield Message("assistant", tuple(answer), None, untrained, model=model, unknown=unknown)

    def _parts(self, body: dict[str, Json]) -> Iterator[Content]:
        kind = as_str(body.get("content_type"))
        listed = as_list(body.get("parts"))
        known = False
        for part in listed:
            if isinstance(part, str):
                yield from self._text(part)
            else:
                yield from self._media(as_dict(part))
        for key in () if listed else _TEXTS:
            if isinstance(body.get(key), str):
                known = True
                yield from self._text(as_str(body[key]))
        if not listed and not known and "parts" not in body:
            yield unknown_part(kind)

    def _media(self, part: dict[str, Json]) -> Iterator[Content]:
        kind = as_str(part.get("content_type"))
        if kind in ("audio_transcription", "text"):
            yield from self._text(as_str(part.get("text")))
        elif kind == "image_asset_pointer":
            yield media_of("image/")
        elif "audio" in kind:
            yield Media("audio")
        else:
            yield unknown_part(kind)

    def _text(self, text: str) -> Iterator[Content]:
        """Yields a text without the marks of citations, which the interface replaces."""
        text, marks = _MARK.subn("", text)
        if marks:
            self.changes["citation_mark"] += marks
        if text.strip():
            yield Text(text)


def _arguments(name: str, text: str) -> Json:
    """Returns the arguments: the text if it is a JSON object, else an object that contains it."""
    if isinstance(loads_text(text), dict):
        return text
    return {"code" if name == "python" else "input": text}


READER = declared(
    _NAME,
    recognise=_recognise,
    read=lambda source: read_objects(
        source, partial(_conversation, source), "a conversation that is "
    ),
)
