"""Reads Hugging Face session traces (STS): a line for the session, then a line for each message.

Source: docs/formats/hf-session-traces.md. The Hub converts these files to columns without some of
the turns; rows of these columns are rejected (`unverified_format`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Conversation,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import content, reasoning
from builder.readers.toolkit.comparison import with_session_keys
from builder.readers.toolkit.history import Chat, ChatNode, chat_conversations
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    name_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import ignored, span, unique_name
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.readers.traces.parts import read_call
from builder.sources.source import Source

_NAME = "hf-session-traces"
_CONVERTED = frozenset({"harness", "session_id", "file_path"})


def _recognise(source: Source) -> str | None:
    """Claims a session line with `harness`, or the columns that the Hub converts it to."""
    for item in source.peek.objects:
        if item.get("type") == "session" and isinstance(item.get("harness"), str):
            return "a session line with harness"
        if _is_exported(item):
            return "a conversation of llama.cpp's web interface (conv, messages)"
        if item.keys() >= _CONVERTED and {"messages", "traces"} & item.keys():
            return "rows converted from session traces (harness, session_id, file_path)"
    return None


def _is_exported(item: dict[str, Json]) -> bool:
    conv, messages = item.get("conv"), as_dicts(item.get("messages"))
    return isinstance(conv, dict) and "currNode" in conv and any("parent" in m for m in messages)


@dataclass(slots=True)
class _Session:
    id: str
    first: str = ""
    last: str = ""
    records: int = 0
    messages: list[Message] = field(default_factory=list)
    model: str | None = None
    problems: list[Problem] = field(default_factory=list)
    current: str | None = None
    nodes: dict[str, ChatNode] = field(default_factory=dict)

    def take(self, where: str, message: dict[str, Json]) -> None:
        self.first = self.first or where
        self.last = where
        self.records += 1
        own, parent = name_or_none(message.get("id")), name_or_none(message.get("parent"))
        in_tree = own is not None and "parent" in message
        before = len(self.messages)
        self._add(where, message, in_tree=in_tree)
        if own is None or not in_tree:
            return
        if self.nodes and parent not in self.nodes:  # an export may lack the empty root
            detail = "a message whose parent is not in the file"
            self.problems.append(Problem("missing_history", where, detail, records=0))
        self.nodes[own] = ChatNode(parent, tuple(self.messages[before:]))

    def _add(self, where: str, message: dict[str, Json], *, in_tree: bool) -> None:
        role = as_str(message.get("role"))
        written = (
            *content(message.get("content")),
            *map(_attached, as_dicts(message.get("extra"))),
        )
        if role == "tool":
            call_id = name_of(message, "toolCallId", "tool_call_id")
            name = name_of(message, "toolName", "name")
            failed = message.get("isError") is True
            if not in_tree and not self._is_called(call_id):
                detail = "a result, but the turn that called is not in the file"
                self.problems.append(Problem("calls_unrecorded", where, detail, records=0))
            result = ToolResult(written, call_id=call_id, name=name, is_error=failed)
            self.messages.append(Message("tool", (result,)))
            return
        parts: list[Part] = [*written]
        model = untrained = None
        if role == "assistant":
            model, untrained = name_or_none(message.get("model")), cut_code(message)
            self.model = model or self.model
            calls = message.get("toolCalls") or message.get("tool_calls")
            logged = as_list(json_in_text(calls))
            parts = [*reasoning(message), *written, *map(read_call, logged)]
        if parts:
            self.messages.append(Message(role, tuple(parts), None, untrained, model=model))

    def _is_called(self, call_id: str | None) -> bool:
        """Returns whether the last turn of the assistant contains the call."""
        for message in reversed(self.messages):
            if message.role == "assistant":
                calls = [part for part in message.parts if isinstance(part, ToolCall | Unparsed)]
                ids = {part.id for part in calls if isinstance(part, ToolCall)}
                return bool(calls) and (call_id is None or call_id in ids or None in ids)
            if message.role != "tool":
                return False
        return False

    def events(self) -> Iterator[Event]:
        """Yields the session as a conversation, and one for each abandoned branch of a tree."""
        place = span(self.first, self.last)
        if self.nodes and not self.problems:
            chat = Chat(
                format_name=_NAME, scope=self.id, name=self.id, where=place, model=self.model
            )
            for event in chat_conversations(chat, self.nodes, self.current, Counter()):
                yield replace(event, records=self.records) if event.records else event
        elif self.messages:
            yield Conversation(
                id=self.id,
                record=place,
                messages=tuple(with_session_keys(_NAME, self.messages, self.id)),
                model=self.model,
                records=self.records,
                problems=tuple(self.problems[:1]),
            )
        elif self.records:
            yield Ignored("no_turns", self.records)


def _attached(extra: dict[str, Json]) -> Content:
    """Returns a file that a message of llama.cpp's web interface has; texts are sent in a frame."""
    kind = as_str(extra.get("type")).upper()
    if kind.startswith("IMAGE"):
        return Media("image")
    return Media("audio") if kind == "AUDIO" else unknown_part(f"extra {kind}".lower())


def _begun(header: dict[str, Json], name: str, names: Counter[str]) -> _Session:
    """Returns the session of a header; `name` is the file's, for one without an id."""
    return _Session(
        unique_name(as_str(header.get("id")) or name, names),
        model=name_or_none(header.get("model")),
        current=name_or_none(header.get("currNode")),
    )


def _read(source: Source) -> Iterator[Event]:
    session: _Session | None = None
    fault: Problem | None = None
    names: Counter[str] = Counter()
    rest: Counter[str] = Counter()
    for record in objects(source.records()):
        if isinstance(record, Problem):
            fault = record
            yield record
            continue
        where, item = record
        if item.keys() >= _CONVERTED:
            detail = "columns converted by the Hub leave turns out: read the raw file"
            yield Problem("unverified_format", where, detail)
        elif item.get("type") == "session":
            if session is not None:
                yield from session.events()
            session = _begun(item, source.name, names)
            fault = None
            rest["metadata"] += 1
        elif _is_exported(item):
            chat = _begun(as_dict(item["conv"]), source.name, names)
            for message in as_dicts(item["messages"]):
                chat.take(where, message)
            chat.records = 1
            yield from chat.events()
        elif item.get("type") == "message" and isinstance(item.get("message"), dict):
            session = session or _Session(unique_name(source.name, names))
            if fault is not None:  # the lost record may have been a message
                session.problems.append(replace(fault, records=0))
                fault = None
            session.take(where, as_dict(item["message"]))
        else:
            rest[unknown_code(item.get("type"))] += 1
            if session is not None and carries_content(item):
                session.messages.append(unknown_message(item.get("type")))
    if session is not None:
        if fault is not None and session.current not in {None, *session.nodes}:
            session.problems.append(replace(fault, records=0))
        yield from session.events()
    yield from ignored(rest)


READER = declared(_NAME, recognise=_recognise, read=_read)
