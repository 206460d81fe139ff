"""Reads the threads of Zed's agent: threads.db, and a thread as JSON. Source: docs/formats/zed.md.

A thread holds messages, results and the model; system prompt and tools are not logged.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from builder.conversation import (
    Content,
    Event,
    Json,
    Media,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.jsonio import JsonFault, a_json_type, loads
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.bodies import decompressed
from builder.readers.toolkit.history import SessionHistory
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_list,
    as_str,
    name_of,
    name_or_none,
    one_or_many,
)
from builder.readers.toolkit.rows import read_objects
from builder.readers.toolkit.unknown_keys import unknown_message
from builder.sources.source import Source
from builder.sources.sqlite_file import read_sessions, session_sizes, tables

NAME = "zed"

_THREADS = "SELECT id FROM threads ORDER BY 1"
_SIZES = "SELECT id, length(CAST(data AS BLOB)) FROM threads"
_THREAD = "SELECT data_type, CAST(data AS BLOB) FROM threads WHERE id = ?"
_EMPTY = "<Tool returned an empty string>"
"""What the program sends in place of an empty result."""
_RESUMED = "Continue where you left off"
"""What the program sends for `Resume`."""


def _recognise(source: Source) -> str | None:
    """Claims the table threads with data and data_type, and a thread with tagged messages."""
    if source.peek.kind == "sqlite":
        columns = tables(source).get("threads", frozenset())
        return "a table of threads with data_type" if {"data_type", "data"} <= columns else None
    if any(map(_is_thread, source.peek.objects)):
        return "a thread with User and Agent messages"
    return None


def _is_thread(value: dict[str, Json]) -> bool:
    tagged = any(
        as_dict(item).keys() & {"User", "Agent"} for item in as_list(value.get("messages"))
    )
    return tagged and "updated_at" in value


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each thread."""
    if source.peek.kind == "sqlite":
        yield from read_sessions(source, _THREADS, _stored)
    else:
        yield from read_objects(
            source,
            lambda where, value, names: _thread(
                value, name_or_none(value.get("id")) or where, where, names
            ),
            "a thread that is ",
        )


def _stored(source: Source, connection: sqlite3.Connection, thread: str) -> Iterator[Event]:
    for kind, data in connection.execute(_THREAD, (thread,)):
        source.count_records()
        where = f"thread {thread}"[:200]
        try:
            packed = data if isinstance(data, bytes) else b""
            value = loads(decompressed(packed, "") if kind == "zstd" else packed)
        except JsonFault as fault:
            yield fault.at(where)
            continue
        source.seen(where, value)
        if isinstance(value, dict):
            yield from _thread(value, thread, where, Counter())
        else:
            yield Problem("not_object", where, a_json_type(value))


def _thread(
    value: dict[str, Json], thread: str, where: str, names: Counter[str]
) -> Iterator[Event]:
    history = SessionHistory(NAME, thread, f"{NAME}/{thread}", f"{where} ")
    model = name_of(as_dict(value.get("model")), "model", "name")
    messages = as_list(value.get("messages"))
    if any("segments" in as_dict(item) for item in messages):
        yield Problem("unverified_format", where, "a thread of Zed before 0.3")
        return
    _read_messages(history, messages, model)
    yield from history.conversations(1, names=names)


def _read_messages(history: SessionHistory, messages: Sequence[Json], model: str | None) -> None:
    missing = {"system", "tools"}
    for at, item in enumerate(messages):
        place = f"message {at}"
        tagged = as_dict(item)
        if "User" in tagged:
            blocks = as_list(tagged["User"], "content")
            history.put(place, "user", (part for block in blocks for part in _user_part(block)))
            # A mention is sent with text around it that the log lacks.
            if any("Mention" in as_dict(block) for block in blocks):
                missing |= {"reminders"}
        elif "Agent" in tagged:
            agent = as_dict(tagged["Agent"])
            blocks = as_list(agent.get("content"))
            answer = (part for block in blocks for part in _answer_part(block))
            cut = any(
                as_dict(block, "ToolUse").get("is_input_complete") is False for block in blocks
            )
            history.answer(place, answer, missing, model, "truncated" if cut else cut_code(agent))
            results = as_dict(agent.get("tool_results")).items()
            history.put(place, "tool", (_result(key, as_dict(result)) for key, result in results))
            if any("RedactedThinking" in as_dict(block) for block in blocks):
                missing |= {"reasoning"}
        elif item == "Resume" or "Resume" in tagged:
            history.put(place, "user", [Text(_RESUMED, harness=True)])
        elif "Compaction" in tagged:
            summary = as_str(tagged["Compaction"], "Summary")
            history.replace()
            missing |= {"history"} if summary else {"encrypted_context"}
            history.put(place, "user", [Text(summary, harness=True)])
        else:
            history.append(unknown_message(next(iter(tagged), as_str(item))), place)


def _user_part(block: Json) -> Iterator[Part]:
    tagged = as_dict(block)
    if isinstance(block, str) or "Text" in tagged:
        text = block if isinstance(block, str) else as_str(tagged.get("Text"))
        if text:
            yield Text(text)
    elif "Mention" in tagged:
        if content := as_str(tagged["Mention"], "content"):
            yield Text(content, harness=True)
    elif "Image" in tagged:
        yield Media("image")
    else:
        yield unknown_part(next(iter(tagged), ""))


def _answer_part(block: Json) -> Iterator[Part]:
    tagged = as_dict(block)
    if "Thinking" in tagged:
        if thought := as_str(tagged["Thinking"], "text"):
            yield Reasoning(thought)
    elif "ToolUse" in tagged:
        call = as_dict(tagged["ToolUse"])
        given = as_dict(call.get("input"))
        wrapped = given.keys() == {"type", "value"} and given["type"] in ("json", "text")
        arguments = given["value"] if wrapped else call.get("input")
        raw = call.get("raw_input")
        yield ToolCall(
            as_str(call.get("name")),
            raw if isinstance(raw, str) and raw else arguments,
            name_or_none(call.get("id")),
        )
    elif "RedactedThinking" not in tagged:
        yield from _user_part(block)


def _result(call_id: str, result: dict[str, Json]) -> ToolResult:
    content: list[Content] = []
    for item in one_or_many(result.get("content")):
        text = item if isinstance(item, str) else as_dict(item).get("Text")
        if isinstance(text, str):
            content += [Text(text)] if text else []
        elif item is not None:
            image = "Image" in as_dict(item)
            content.append(Media("image") if image else unknown_part(next(iter(as_dict(item)), "")))
    name = name_or_none(result.get("tool_name"))
    failed = result.get("is_error") is True
    return ToolResult(tuple(content) or (Text(_EMPTY),), call_id, name, is_error=failed)


READER = declared(
    NAME,
    recognise=_recognise,
    read=read,
    item_sizes=lambda source: session_sizes(source, _THREADS, _SIZES),
)
