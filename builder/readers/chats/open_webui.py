"""Reads Open WebUI chats: exports (JSON) and webui.db. Source: docs/formats/open-webui.md."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

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
    Unparsed,
)
from builder.jsonio import a_json_type, loads_text
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.openai_responses import ItemReading
from builder.readers.chats.exports import turns
from builder.readers.toolkit.chat_messages import as_harness, content, text_or_data
from builder.readers.toolkit.history import (
    Chat,
    ChatNode,
    chat_conversations,
    has_versions,
    in_order,
)
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_of, name_or_none
from builder.readers.toolkit.rows import read_objects
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, json_column, open_sqlite, rows, tables

_NAME = "open-webui"
_CHATS = "SELECT id, title, chat FROM chat ORDER BY id"
_COLUMNS = {"id", "user_id", "title", "chat"}
_BLOCK = re.compile(
    r"""<details\b[^>]*\btype=["'](?:tool_calls|reasoning|code_interpreter)["'][^>]*>"""
)
_END = "</details>"
_ATTRIBUTE = re.compile(r"""([\w-]+)=(?:"([^"]*)"|'([^']*)')""")
_SUMMARY = re.compile(r"\s*<summary>.*?</summary>\n?", re.DOTALL)


def _pieces_of_text(text: str) -> Iterator[Part]:
    """Yields the parts of an answer with `<details>` blocks: text, thoughts, calls, results."""
    at = 0
    while (begin := _BLOCK.search(text, at)) is not None:
        yield from _text(text[at : begin.start()])
        end = text.find(_END, begin.end())
        if end < 0:
            yield Unparsed(text[begin.start() :], "truncated")
            return
        at = end + len(_END)
        attributes = {
            match[1]: html.unescape(match[2] if match[2] is not None else match[3])
            for match in _ATTRIBUTE.finditer(begin[0])
        }
        body = text[begin.end() : end]
        yield from _block(attributes, body, text[begin.start() : at])
    yield from _text(text[at:])


def _text(text: str) -> Iterator[Part]:
    if text.strip():
        yield Text(text.strip("\n"))


def _block(attributes: dict[str, str], body: str, whole: str) -> Iterator[Part]:
    kind = attributes.get("type")
    inner = _SUMMARY.sub("", body, count=1)
    if kind == "reasoning":
        lines = html.unescape(inner).strip().split("\n")
        thought = "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines)
        if thought.strip():
            yield Reasoning(thought)
        return
    if kind == "code_interpreter":
        yield Unparsed(whole, "server_tool")  # code that Open WebUI ran
        return
    name = attributes.get("name")
    if not name or "arguments" not in attributes:  # written by a program between, not Open WebUI
        yield Unparsed(whole, "bad_call")
        return
    call_id = attributes.get("id") or None
    yield ToolCall(name, _arguments(attributes["arguments"]), call_id)
    result = attributes.get("result") or html.unescape(inner).strip()
    if attributes.get("done") == "true" and result:
        yield ToolResult(text_or_data(loads_text(result)), call_id, name)


def _arguments(text: str) -> Json:
    """Returns the arguments: an object, or JSON text, often itself in a JSON string."""
    value = loads_text(text)
    return value if isinstance(value, str | dict) else text


def _pieces_of_items(items: list[Json]) -> Iterator[Part]:
    """Yields the parts of an answer that is a list of items, as the Responses API has them."""
    own: Json = {"type": "code_interpreter_call"}
    ran = [own if as_str(one, "type") == "open_webui:code_interpreter" else one for one in items]
    for message in ItemReading().read(ran).messages:
        for part in message.parts:
            yield from _text(part.text) if isinstance(part, Text) else (part,)


def _recognise(source: Source) -> str | None:
    """Claims chats with a history of messages by id, and databases with the table chat."""
    if source.peek.kind == "sqlite":
        known = tables(source).get("chat", frozenset())
        return "the table chat of webui.db" if known >= _COLUMNS else None
    if any(map(_is_chat, source.peek.objects)):
        return "chats with history.messages and history.currentId"
    return None


def _is_chat(value: dict[str, Json]) -> bool:
    body = _body(value)
    history = as_dict(body.get("history"))
    is_current = "currentId" in history or isinstance(body.get("messages"), list)
    return isinstance(history.get("messages"), dict) and is_current


def _body(value: dict[str, Json]) -> dict[str, Json]:
    return as_dict(value["chat"]) if "chat" in value else value


def _read(source: Source) -> Iterator[Event]:
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_store(source))
    else:
        yield from read_objects(source, partial(_chat, source), "a chat that is ")


def _read_store(source: Source) -> Iterator[Event]:
    names: Counter[str] = Counter()
    with open_sqlite(source) as connection:
        for number, row in enumerate(rows(connection, _CHATS)):
            source.count_records()
            where = f"chat {as_str(row.get('id')) or number}"
            value = row.get("chat")
            body = json_column(value, where) if isinstance(value, str) else value
            if isinstance(body, dict):
                yield from _chat(source, where, {**row, "chat": body}, names)
            elif isinstance(body, Problem):
                yield body
            else:
                yield Problem("not_object", where, f"a chat that is {a_json_type(body)}")


def _chat(source: Source, where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    body = _body(row)
    history = as_dict(body.get("history"))
    values = {name: as_dict(item) for name, item in as_dict(history.get("messages")).items()}
    if not values:  # chats of the first versions have the list alone
        listed = as_dicts(body.get("messages"))
        values = {as_str(item.get("id")) or str(at): item for at, item in enumerate(listed)}
    system = as_str(body, "params", "system")
    base = ["tools"] if system else ["system", "tools"]
    nodes = {name: _node(value, values, base) for name, value in values.items()}
    if not any(node.parent for node in nodes.values()):
        nodes = in_order({name: node.messages for name, node in nodes.items()})
        if has_versions(nodes):  # which of them the model saw is not logged
            base.append("history")
            lists = {name: _node(value, values, base).messages for name, value in values.items()}
            nodes = in_order(lists)
    name = name_of(row, "id") or name_of(body, "id") or where
    last = name_or_none(history.get("currentId")) or name_or_none(body.get("currentId"))
    rating = as_dict(values.get(last or "", {}).get("annotation")).get("rating")
    chat = Chat(
        format_name=_NAME,
        scope=f"{source.name}/{name}",
        name=name,
        where=where,
        system=system,
        model=next((one for one in map(name_or_none, as_list(body.get("models"))) if one), None),
        context=Context.lacking(base),
        outcome=None if rating is None else {"feedback": rating},
    )
    yield from chat_conversations(chat, nodes, last, names)


def _node(value: dict[str, Json], values: dict[str, dict[str, Json]], base: list[str]) -> ChatNode:
    parent = name_or_none(value.get("parentId"))
    asked = as_list(values.get(parent or "", {}).get("models"))
    index = value.get("modelIdx")
    group = str(index) if len(asked) > 1 and isinstance(index, int) else ""
    role = as_str(value.get("role"))
    if role == "assistant":
        return ChatNode(parent, tuple(_answer(value, base)), group)
    parts: list[Part] = [*content(value.get("content"))]
    for item in as_dicts(value.get("files")):
        name = name_of(item, "name") or name_of(as_dict(item.get("file")), "filename") or ""
        parts.append(Media("image" if item.get("type") == "image" else "file", name))
    sent = tuple(parts) if role == "user" else as_harness(parts)
    return ChatNode(parent, (Message(role[:40], sent),) if sent else ())


def _answer(value: dict[str, Json], base: list[str]) -> Iterator[Message]:
    newer = as_list(value.get("output"))
    pieces = list(
        _pieces_of_items(newer) if newer else _pieces_of_text(as_str(value.get("content")))
    )
    missing = {*base}
    if value.get("sources"):  # text of documents that was put into the request
        missing.add("reminders")
    untrained = None
    if value.get("done") is False or value.get("error"):
        untrained = "aborted"
    pieces = pieces if newer else list(_apart(pieces))
    untrained = untrained or cut_code(value)
    unclear = False  # whether calls were made at once or one after the other
    for message in turns(pieces, Context.lacking(missing), untrained, name_of(value, "model")):
        context = Context.lacking({*missing, "history"}) if unclear else message.context
        yield replace(message, context=context) if message.role == "assistant" else message
        made = sum(isinstance(part, ToolCall) for part in message.parts)
        unclear = unclear or (not newer and made > 1)


def _apart(pieces: list[Part]) -> Iterator[Part]:
    """Yields the pieces of an older answer; the results of neighbouring calls follow all of them.

    Blocks have call and result together, so that calls made at once look like calls in a row.
    """
    results: list[ToolResult] = []
    for piece in pieces:
        if isinstance(piece, ToolResult):
            results.append(piece)
            continue
        if not isinstance(piece, ToolCall):
            yield from results
            results = []
        yield piece
    yield from results


READER = declared(_NAME, recognise=_recognise, read=_read)
