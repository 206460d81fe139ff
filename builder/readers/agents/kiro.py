"""Reads Kiro's CLI, and Amazon Q Developer's, from which it descends.

Source: docs/formats/kiro.md. Sessions are JSONL lines of version, kind and data; older versions and
Amazon Q keep a database with one JSON value for each conversation.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.conversation import (
    Content,
    Context,
    Data,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.homes import Home
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_str,
    name_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.siblings import from_sibling
from builder.readers.toolkit.unknown_records import carries_content, unknown_message
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, json_column, open_sqlite, rows, tables

NAME = "kiro"

_NEW = "SELECT key, value FROM conversations_v2 ORDER BY updated_at, conversation_id, key"
_OLD = "SELECT key, value FROM conversations ORDER BY key"
_ERRORS = frozenset({"error", "Error"})


def recognise(source: Source) -> str | None:
    """Claims lines of version, kind and data, such a session's state, and the database."""
    if source.peek.kind == "sqlite":
        found = tables(source)
        if {"key", "conversation_id", "value"} <= found.get("conversations_v2", frozenset()):
            return "a database with conversations_v2"
        if found.get("conversations", frozenset()) == {"key", "value"}:
            return "a database with conversations of key and value (Amazon Q)"
        return None
    if source.peek.kind not in ("jsonl", "json"):
        return None
    for value in source.peek.objects:
        if _is_line(value):
            return "lines with version, kind and data.message_id"
        if _is_value(value):
            return "a conversation with history of user and assistant"
        if _is_state(value):
            return "the state of a session"
    return None


def _is_line(value: dict[str, Json]) -> bool:
    data = as_dict(value.get("data"))
    return isinstance(value.get("kind"), str) and "version" in value and "message_id" in data


def _is_value(value: dict[str, Json]) -> bool:
    turns = as_dicts(value.get("history"))
    known = any({"user", "assistant"} <= turn.keys() for turn in turns)
    return known and "conversation_id" in value


def _is_state(value: dict[str, Json]) -> bool:
    state = as_dict(value.get("session_state"))
    return "session_id" in value and "conversation_metadata" in state


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session or of a database."""
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_database(source))
        return
    stem = source.name.rpartition("/")[2].removesuffix(".jsonl").removesuffix(".json") or "session"
    if any(map(_is_value, source.peek.objects)):
        names: Counter[str] = Counter()
        for record in objects(source.records()):
            if isinstance(record, Problem):
                yield record
            else:
                yield from _read_value(*record, names)
        return
    history = SessionHistory(NAME, stem, source.name)
    log = _Log(history, from_sibling(source, f"{stem}.json", _model))
    counts: Counter[str] = Counter()
    for record in objects(source.records(), "a line that is "):
        if isinstance(record, Problem):
            log.missing |= {"history"} if record.code != "truncated" else set()
            yield record
        else:
            counts[log.add(*record)] += 1
    records = counts.pop("", 0)
    yield from ignored(counts)
    yield from history.conversations(records)


def _model(source: Source) -> str | None:
    document = source.document()
    state = as_dict(as_dict(document).get("session_state")) if isinstance(document, dict) else {}
    return _model_id(as_dict(state.get("rts_model_state")))


def _model_id(value: dict[str, Json]) -> str | None:
    return name_of(as_dict(value.get("model_info")), "model_id", "model_name")


@dataclass(slots=True)
class _Log:
    """The lines so far. `again` is the entry that the next line repeats, after a rewind."""

    history: SessionHistory
    model: str | None = None
    missing: set[str] = field(default_factory=lambda: {"system", "tools"})
    again: int | None = None

    def add(self, where: str, value: dict[str, Json]) -> str:
        """Adds a line; returns the code for ignoring it, or ""."""
        kind, data = value.get("kind"), as_dict(value.get("data"))
        if _is_state(value):
            return "state"
        name = as_str(data.get("message_id"))
        if self._repeats(name):
            return "repeated_message"
        parts = [part for item in as_dicts(data.get("content")) for part in _parts(item)]
        if kind == "AssistantMessage":
            if parts:
                context = Context.lacking(self.missing)
                message = Message("assistant", tuple(parts), name or where, context=context)
                self._append(message, where, name, RequestHead(model=self.model))
        elif kind in ("Prompt", "ToolResults"):
            results = tuple(part for part in parts if isinstance(part, ToolResult))
            rest = tuple(part for part in parts if not isinstance(part, ToolResult))
            for role, found in (("tool", results), ("user", rest)):
                if found:
                    self._append(Message(role, found), where, name)
        else:
            if carries_content(value):
                self._append(unknown_message(kind), where, name)
            return unknown_code(kind)
        return ""

    def _append(
        self, message: Message, where: str, name: str, head: RequestHead | None = None
    ) -> None:
        if self.again is not None:
            self.history.rewind(self.again)
            self.again = None
        self.history.append(message, where, head, kind=name)

    def _repeats(self, name: str) -> bool:
        """Returns whether a line repeats a message: a rewind writes the kept ones again."""
        names = [entry.kind for entry in self.history.entries]
        if not name or name not in names:
            return False
        at = self.again
        if at is None or names[at : at + 1] != [name]:
            at = names.index(name)
        while names[at : at + 1] == [name]:  # a line may be several messages
            at += 1
        self.again = at
        return True


def _parts(item: dict[str, Json]) -> Iterator[Part]:
    """Yields the parts of an item of a line's content."""
    kind, data = as_str(item.get("kind")), item.get("data")
    value = as_dict(data)
    if kind == "text" and isinstance(data, str):
        if data:
            yield Text(data)
    elif kind == "toolUse":
        call_id = name_or_none(value.get("toolUseId"))
        yield ToolCall(as_str(value.get("name")), value.get("input"), call_id)
    elif kind == "toolResult":
        yield _result(value, "toolUseId")
    elif kind == "image":
        yield Media("image")
    else:
        yield unknown_part(kind)


def _result(value: dict[str, Json], id_key: str) -> ToolResult:
    content: list[Content] = []
    for item in as_dicts(value.get("content")):
        kind = as_str(item.get("kind"))
        text = item.get("data") if kind == "text" else item.get("Text")
        json = item.get("data") if kind == "json" else item.get("Json")
        if isinstance(text, str):
            content.append(Text(text))
        elif kind == "json" or "Json" in item:
            content.append(Data(json))
        else:
            content.append(unknown_part(kind or next(iter(item), "")))
    failed = as_str(value.get("status")) in _ERRORS
    return ToolResult(tuple(content), name_or_none(value.get(id_key)), is_error=failed)


# -- the database ---------------------------------------------------------------------------------


def _read_database(source: Source) -> Iterator[Event]:
    query = _NEW if "conversations_v2" in tables(source) else _OLD
    names: Counter[str] = Counter()
    newest: dict[str, tuple[str, dict[str, Json]]] = {}
    with open_sqlite(source) as connection:
        for where, value in _values(source, connection, query):
            if isinstance(value, Problem):
                yield value
                continue
            name = as_str(value.get("conversation_id")) or where
            if name in newest:  # the same conversation under another folder's key
                yield Ignored("superseded")
            newest[name] = (where, value)
    for where, value in newest.values():
        yield from _read_value(where, value, names)


def _values(
    source: Source, connection: sqlite3.Connection, query: str
) -> Iterator[tuple[str, dict[str, Json] | Problem]]:
    for row in rows(connection, query):
        source.count_records()
        where = f"key {as_str(row.get('key'))}"[:200]
        value = json_column(row.get("value"), where)
        if isinstance(value, dict | Problem):
            yield where, value
        else:
            yield where, Problem("not_object", where, f"a {type(value).__name__}")


def _read_value(where: str, value: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    """Yields the conversation in a value: turns of user and assistant, whose key is their kind."""
    session = as_str(value.get("conversation_id")) or where
    history = SessionHistory(NAME, session, f"{NAME}/{session}", f"{where} ")
    tools = _definitions(value.get("tools"))
    missing = {"system", *([] if tools is not None else ["tools"])}
    # After /compact, the history begins with the summary, if it is there at all.
    missing |= {"history"} if value.get("latest_summary") else set()
    head = RequestHead(None, tools, _model_id(value))
    for at, turn in enumerate(as_dicts(value.get("history"))):
        place = f"turn {at}"
        user = as_dict(as_dict(turn.get("user")).get("content"))
        for name, item in user.items():
            content = as_dict(item)
            results = as_dicts(content.get("tool_use_results"))
            if results:
                found = tuple(_result(result, "tool_use_id") for result in results)
                history.append(Message("tool", found), place)
            if prompt := as_str(content.get("prompt")):
                history.append(Message("user", (Text(prompt),)), place)
            if name not in ("Prompt", "ToolUseResults", "CancelledToolUses"):
                history.append(unknown_message(name), place)
        for item in as_dict(turn.get("assistant")).values():
            content = as_dict(item)
            text = as_str(content.get("content"))
            parts: list[Part] = [Text(text)] if text else []
            for call in as_dicts(content.get("tool_uses")):
                call_id = name_or_none(call.get("id"))
                parts.append(ToolCall(as_str(call.get("name")), call.get("args"), call_id))
            if parts:
                context = Context.lacking(missing)
                message = Message("assistant", tuple(parts), place, context=context)
                history.append(message, place, head)
    yield from history.conversations(1, names=names)


def _definitions(value: Json) -> tuple[Json, ...] | None:
    """Returns the definitions of tools, which are listed by their origin."""
    found: list[Json] = []
    for items in as_dict(value).values():
        for item in as_dicts(items):
            tool = as_dict(item.get("ToolSpecification")) or item
            schema = as_dict(tool.get("input_schema"))
            found.append({
                "name": tool.get("name"),
                "description": tool.get("description"),
                "parameters": schema.get("json", schema),
            })  # fmt: skip
    return tuple(found) if found else None


READER = Reader(
    name=NAME,
    summary=(
        "Kiro's CLI: sessions (JSONL with version, kind and data), its database and Amazon Q's "
        "(conversations_v2, conversations)"
    ),
    evidence=("files", "parsers"),
    recognise=recognise,
    homes=(
        Home("Kiro", "${KIRO_HOME:-~/.kiro}/sessions/cli"),
        Home("Kiro", "${XDG_DATA_HOME:-~/.local/share}/kiro-cli/data.sqlite3"),
        Home("Kiro", "~/Library/Application Support/kiro-cli/data.sqlite3"),
        Home("Kiro", "${LOCALAPPDATA:-~/AppData/Local}/kiro-cli/data.sqlite3"),
        Home("Amazon Q", "${XDG_DATA_HOME:-~/.local/share}/amazon-q/data.sqlite3"),
        Home("Amazon Q", "~/Library/Application Support/amazon-q/data.sqlite3"),
    ),
    is_agent=True,
    read=read,
)
