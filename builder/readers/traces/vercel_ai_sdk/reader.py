"""Reads the Vercel AI SDK: chats as user interfaces store them, and the messages sent to models.

Source: docs/formats/vercel-ai-sdk.md. A record is an element of a list, a line or a document: a
chat, a message of a chat, or a row of a table of messages. Single messages form one conversation,
or one for each chat that they name. Interfaces store neither system text nor tools unless the
application adds them to the messages. In the SDK's telemetry, a record is a span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import Conversation, Event, Ignored, Json, Message
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.call_keys import with_request_keys
from builder.readers.toolkit.chat_messages import unreadable_messages
from builder.readers.toolkit.narrow import as_dict, as_str, name_of, unknown_code
from builder.readers.toolkit.outcomes import outcome_of_records
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import SeparateMessages, collected
from builder.readers.traces.any_vendor.messages import read_messages
from builder.readers.traces.any_vendor.parts import PartNotes
from builder.readers.traces.any_vendor.requests import (
    definitions,
    system_text,
    tools_of,
    with_system,
)
from builder.readers.traces.otel.span_log import read_spans
from builder.readers.traces.otel.spans import VERCEL, first_dialect
from builder.readers.traces.vercel_ai_sdk.ui import (
    content_of,
    has_sdk_messages,
    is_ui_message,
    messages_of,
    model_of,
    read_ui_message,
)
from builder.sources.source import Record, Source

_CHATS = (
    "chatId", "chat_id", "threadId", "thread_id", "conversationId", "conversation_id", "sessionId",
)  # fmt: skip
_TIMES = ("createdAt", "created_at")
_PEEKED = 50


def recognise(source: Source) -> str | None:
    """Claims messages with UI parts or tool-call parts, and spans of the SDK's telemetry."""
    for value in source.peek.records[:_PEEKED]:
        if is_ui_message(value):
            return "UI messages with typed parts or toolInvocations"
        if has_sdk_messages(value) or has_sdk_messages([value]):
            return "chats of UI messages, or messages with tool-call parts"
    return "spans of the AI SDK's telemetry" if first_dialect(source) == VERCEL else None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of the source and the outcome of its other records."""
    if first_dialect(source) == VERCEL:
        yield from read_spans(source)
        return
    yield from collected(source.records(), _Collector(), (dict, list))


class _Collector:
    """Collects records into conversations."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.chats: dict[str, SeparateMessages] = {}

    def take(self, record: Record) -> Iterator[Event]:
        """Reads one record."""
        value = record.value
        row = as_dict(value)
        if "role" in row:
            chat_id = name_of(row, *_CHATS) or ""
            chat = self.chats.setdefault(chat_id, SeparateMessages(record.where))
            chat.add(record.where, [value])
        elif items := messages_of(value):
            name = unique_name(as_str(row.get("id"))[:200] or record.where, self.names)
            yield _conversation(items, name, record.where, 1, row)
        elif isinstance(row.get("messages"), list):
            yield Ignored("no_messages")
        else:
            yield Ignored(unknown_code(row.get("type", "record")))

    def rest(self) -> Iterator[Event]:
        """Yields the conversations of messages that are separate records."""
        for chat_id, chat in self.chats.items():
            name = unique_name(f"chat {chat_id[:200]}" if chat_id else "messages", self.names)
            yield _conversation(_by_time(chat.items), name, chat.place, chat.records, {})


def _by_time(items: list[Json]) -> list[Json]:
    """Returns the rows of a table sorted by time if all have one; dumps may be unordered."""
    for key in _TIMES:
        times = [as_dict(item).get(key) for item in items]
        for kind in (str, int):
            comparable = [time for time in times if isinstance(time, kind)]
            if len(comparable) == len(items):
                order = sorted(range(len(items)), key=lambda number: (comparable[number], number))
                return [items[number] for number in order]
    return items


def _conversation(
    items: list[Json], name: str, where: str, records: int, chat: dict[str, Json]
) -> Event:
    notes = PartNotes()
    messages: list[Message] = []
    for number, item in enumerate(items):
        message = as_dict(item)
        body = content_of(message)
        if message.get("role") == "data":
            continue  # for the application, never sent
        if "parts" in message or "toolInvocations" in message or isinstance(body, dict):
            messages += read_ui_message(message, number, notes)
        else:
            messages += read_messages([{**message, "content": body}], notes)
    messages = list(with_system(messages, system_text(chat.get("system"))))
    if not messages:
        return Problem("no_messages", where, "no message has any content", records)
    tools = tools_of(chat)
    return Conversation(
        id=name,
        record=where,
        messages=with_request_keys(messages),
        tools=None if tools is None else tuple(definitions(list(tools))),
        model=name_of(chat, "model") or model_of(items),
        records=records,
        problems=unreadable_messages(sorted(set(notes.unreadable)), where),
        changes=notes.changes,
        outcome=outcome_of_records([*items, chat]),
    )


READER = Reader(
    name="vercel-ai-sdk",
    summary=(
        "Vercel AI SDK chats: UI messages (AI SDK 4 and later) and model messages with "
        "tool-call parts; the spans of its telemetry"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    read=read,
)
