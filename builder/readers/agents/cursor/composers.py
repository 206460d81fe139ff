"""Reads the chats ("composers") in Cursor's state.vscdb. Source: docs/formats/cursor.md."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from builder.conversation import (
    Context,
    Event,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from builder.jsonio import a_json_type, dumps
from builder.problem import Problem
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    model_of,
    name_or_none,
)
from builder.readers.toolkit.places import ignored
from builder.sources.source import Source
from builder.sources.sqlite_file import json_column, listed, rows

COMPOSERS = "SELECT key FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key"
_ROWS = """
SELECT key, CAST(value AS TEXT) AS value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key
"""
_BUBBLES = "SELECT key FROM cursorDiskKV WHERE key LIKE 'bubbleId:%'"

_USER, _ASSISTANT = 1, 2
_STORED_EDIT = frozenset({"beforeContentId", "afterContentId"})
"""Keys of results that only name the contents of a file before and after an edit."""


def read_composer(source: Source, connection: sqlite3.Connection, key: str) -> Iterator[Event]:
    """Yields the conversation of a chat, and the events of its other rows."""
    counts: Counter[str] = Counter()
    records = 0
    composer = key.partition(":")[2]
    values: dict[str, dict[str, Json]] = {}
    for start in (key, f"bubbleId:{composer}:"):
        # Keys that begin with the name: ";" follows ":".
        end = f"{start}\0" if start == key else f"{start[:-1]};"
        for row in rows(connection, _ROWS, start, end):
            source.count_records()
            name = as_str(row.get("key"))
            if row.get("value") is None:
                counts["empty_row"] += 1
                continue
            value = json_column(row.get("value"), f"key {name}"[:200])
            if isinstance(value, Problem):
                yield value
            elif isinstance(value, dict):
                records += 1
                source.seen(f"key {name}", value)
                values[name] = value
            else:
                detail = f"a row that is {a_json_type(value)}"
                yield Problem("not_object", f"key {name}"[:200], detail)
    head = values.pop(key, {})
    bubbles = _ordered(head, values, f"bubbleId:{composer}:")
    if not as_list(head.get("conversation")):
        left = len(values) - sum(map(bool, bubbles))  # bubbles that were edited or made again
        counts["not_in_conversation"] += left
        records -= left
    chat = _Chat(SessionHistory("cursor", composer or "chat", f"cursor/{composer}"))
    chat.model = model_of(as_dict(head, "modelConfig"), "modelName")
    for bubble in bubbles:
        chat.add(bubble)
    yield from ignored(+counts)
    yield from chat.history.conversations(records)


def orphans(source: Source, connection: sqlite3.Connection, composers: Iterable[str]) -> int:
    """Returns the number of bubbles whose chat is not in the database, and counts them."""
    known = {key.partition(":")[2] for key in composers}
    keys = (as_str(key) for (key,) in listed(connection, _BUBBLES))
    count = sum(key.split(":")[1] not in known for key in keys)
    source.count_records(count)
    return count


def _ordered(
    head: dict[str, Json], values: dict[str, dict[str, Json]], prefix: str
) -> list[dict[str, Json]]:
    """Returns the bubbles of a chat in the order of its headers; {} for a bubble that is missing.

    Old chats contain their bubbles.
    """
    inline = as_dicts(head.get("conversation"))
    if inline:
        return inline
    by_id = {as_str(bubble.get("bubbleId")): bubble for bubble in values.values()}
    by_id |= {key.removeprefix(prefix): bubble for key, bubble in values.items()}
    found: list[dict[str, Json]] = []
    seen: set[int] = set()
    for header in as_dicts(head.get("fullConversationHeadersOnly")):
        bubble = by_id.get(as_str(header.get("bubbleId")))
        if bubble is None:
            found.append({})
        elif id(bubble) not in seen:
            seen.add(id(bubble))
            found.append({"type": header.get("type"), **bubble})
    return found


@dataclass(slots=True)
class _Chat:
    """The bubbles of a chat so far.

    answer      the answer to which the next bubble may belong
    model_call  the id of the request whose answer made the last call of a tool
    has_calls   the answer has calls
    reworded    what the model saw of earlier messages is not in the log
    """

    history: SessionHistory
    model: str | None = None
    answer: HistoryEntry | None = None
    model_call: str = ""
    has_calls: bool = False
    reworded: bool = False
    count: int = 0

    def add(self, bubble: dict[str, Json]) -> None:
        """Adds a bubble: a user's message, or a thought, text or call of the model."""
        self.count += 1
        where = f"bubble {self.count}"
        if not bubble:
            self.reworded = True
            self.answer = None
        if bubble.get("type") == _USER:
            self.answer = None
            parts: list[Part] = []
            if text := as_str(bubble.get("text")):
                parts.append(Text(text))
            parts += [Media("image") for _ in as_list(bubble.get("images"))]
            if parts:
                self.history.append(Message("user", tuple(parts)), where)
        elif bubble.get("type") == _ASSISTANT:
            tool = as_dict(bubble.get("toolFormerData"))
            parts = list(_said(bubble))
            if parts:
                self._extend(parts, bubble, where, follows=not self.has_calls)
            if name_or_none(tool.get("name")):
                self._call(tool, bubble, where, alone=not parts)

    def _call(
        self, tool: dict[str, Json], bubble: dict[str, Json], where: str, *, alone: bool
    ) -> None:
        call_id = name_or_none(tool.get("toolCallId"))
        model_call = as_str(tool.get("modelCallId"))
        same = bool(model_call) and model_call == self.model_call
        if alone and self.has_calls and not model_call:
            self.reworded = True  # whether the calls were made together is not logged
        raw = tool.get("rawArgs")
        arguments = tool.get("params") if raw in (None, "") else raw
        call = ToolCall(as_str(tool.get("name")), arguments, call_id)
        self._extend([call], bubble, where, follows=same or not self.has_calls)
        self.has_calls, self.model_call = True, model_call
        if (result := _result(tool, call_id)) is not None:
            self.history.append(Message("tool", (result,)), where)
            self.reworded = True  # the result is logged as the client keeps it

    def _extend(
        self, parts: list[Part], bubble: dict[str, Json], where: str, *, follows: bool
    ) -> None:
        """Adds parts to the open answer, or begins another one."""
        if self.answer is None or not follows:
            missing = ["reminders", "system", "tools", *(["history"] if self.reworded else [])]
            model = model_of(as_dict(bubble, "modelInfo"), "modelName") or self.model
            message = Message("assistant", (), where, context=Context.lacking(missing))
            self.answer = self.history.append(message, where, RequestHead(model=model))
            self.has_calls = False
        message = self.answer.message
        self.answer.message = replace(message, parts=(*message.parts, *parts))


def _said(bubble: dict[str, Json]) -> Iterator[Part]:
    """Yields the thought and the text of a bubble of the model."""
    text = as_str(bubble.get("text"))
    blocks = as_dicts(bubble.get("allThinkingBlocks")) or [as_dict(bubble.get("thinking"))]
    thought = "\n\n".join(filter(None, (as_str(block.get("text")) for block in blocks)))
    if bubble.get("isThought") is True:
        thought, text = thought or text, ""
    if thought:
        yield Reasoning(thought)
    if text.strip():
        yield Text(text)


def _result(tool: dict[str, Json], call_id: str | None) -> ToolResult | None:
    """Returns the result of a call; None if the log does not contain its text."""
    logged = tool.get("result")
    value = json_in_text(logged) if isinstance(logged, str) else logged
    if logged in (None, "") or (isinstance(value, dict) and value and value.keys() <= _STORED_EDIT):
        return None
    status = as_str(tool.get("status"))
    return ToolResult(
        (Text(logged if isinstance(logged, str) else dumps(logged)),),
        call_id,
        name_or_none(tool.get("name")),
        is_error=status == "error",
        is_denied=tool.get("userDecision") == "rejected" or status == "rejected",
        is_interrupted=status in ("cancelled", "aborted"),
    )
