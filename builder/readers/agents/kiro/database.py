"""Reads the databases of Kiro's CLI and Amazon Q, and single conversations of them (`/save`)."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from functools import partial

from builder.conversation import Context, Event, Ignored, Json, Message, Part, Text, ToolCall
from builder.jsonio import a_json_type
from builder.problem import Problem
from builder.readers.agents.kiro.parts import model_id, result, stand_in
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.rows import read_objects
from builder.readers.toolkit.unknown_records import unknown_message
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, json_column, open_sqlite, rows, tables

_NEW = "SELECT key, value FROM conversations_v2 ORDER BY updated_at, conversation_id, key"
_OLD = "SELECT key, value FROM conversations ORDER BY key"
_TURNS = ("Prompt", "ToolUseResults", "CancelledToolUses")


def has_tables(source: Source) -> str | None:
    """Returns which database a source is, or None."""
    columns = tables(source)
    if {"key", "conversation_id", "value"} <= columns.get("conversations_v2", frozenset()):
        return "a database with conversations_v2"
    if columns.get("conversations", frozenset()) == {"key", "value"}:
        return "a database with conversations of key and value (Amazon Q)"
    return None


def is_value(value: dict[str, Json]) -> bool:
    """Returns whether a record is a conversation as a database holds it."""
    known = any({"user", "assistant"} <= turn.keys() for turn in _turns(value))
    return known and "conversation_id" in value


def _turns(value: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the turns; Amazon Q before 1.15 writes each as a list of the user's and the model's.

    There the content of an answer has the keys of its variant, and no key of its own.
    """
    turns: list[dict[str, Json]] = []
    for turn in as_list(value.get("history")):
        if isinstance(turn, list):
            user, answer = [*turn, None, None][:2]
            is_turn = "content" in as_dict(user) and isinstance(answer, dict)
            turns += [{"user": user, "assistant": answer}] if is_turn else []
        elif isinstance(turn, dict):
            turns.append(turn)
    return turns


def read_values(source: Source, format_name: str) -> Iterator[Event]:
    """Yields the conversations in a file of them."""
    yield from read_objects(source, partial(_conversation, format_name))


def read_database(source: Source, format_name: str) -> Iterator[Event]:
    """Yields the conversations of a database."""
    yield from guarded(source, _rows(source, format_name))


def _rows(source: Source, format_name: str) -> Iterator[Event]:
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
        yield from _conversation(format_name, where, value, names)


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
            yield where, Problem("not_object", where, a_json_type(value))


def _conversation(
    format_name: str, where: str, value: dict[str, Json], names: Counter[str]
) -> Iterator[Event]:
    """Yields the conversation in a value: turns of user and assistant, whose key is their kind."""
    session = as_str(value.get("conversation_id")) or where
    history = SessionHistory(format_name, session, f"{format_name}/{session}", f"{where} ")
    tools = _definitions(value.get("tools"))
    missing = {"system", *([] if tools is not None else ["tools"])}
    # After /compact, the history begins with the summary, if it is there at all.
    missing |= {"history"} if value.get("latest_summary") else set()
    head = RequestHead(None, tools, model_id(value))
    for at, turn in enumerate(_turns(value)):
        place = f"turn {at}"
        user = as_dict(turn.get("user"))
        for name, item in as_dict(user.get("content")).items():
            content = as_dict(item)
            results = as_dicts(content.get("tool_use_results"))
            if results:
                results_sent = tuple(result(one, "tool_use_id") for one in results)
                history.append(Message("tool", results_sent), place)
            if prompt := as_str(content.get("prompt")):
                history.append(Message("user", (Text(prompt),)), place)
            if name not in _TURNS:
                history.append(unknown_message(name), place)
        # Hooks' and files' text is put before the prompt when it is sent.
        missing |= {"reminders"} if as_str(user.get("additional_context")) else set()
        for item in as_dict(turn.get("assistant")).values():
            content = as_dict(item)
            text = as_str(content.get("content"))
            parts: list[Part] = [Text(text)] if text else []
            for call in as_dicts(content.get("tool_uses")):
                call_id = name_or_none(call.get("id"))
                parts.append(ToolCall(as_str(call.get("name")), call.get("args"), call_id))
            if parts:
                context = Context.lacking(missing)
                message = Message("assistant", tuple(parts), place, stand_in(parts), context)
                history.append(message, place, head)
    yield from history.conversations(1, names=names)


def _definitions(value: Json) -> tuple[Json, ...] | None:
    """Returns the definitions of tools, which are listed by their origin."""
    definitions: list[Json] = []
    for items in as_dict(value).values():
        for item in as_dicts(items):
            tool = as_dict(item.get("ToolSpecification")) or item
            schema = as_dict(tool.get("input_schema"))
            definitions.append({
                "name": tool.get("name"),
                "description": tool.get("description"),
                "parameters": schema.get("json", schema),
            })  # fmt: skip
    return tuple(definitions) if definitions else None
