"""Reads Open WebUI chats: exports (JSON) and webui.db. Source: docs/formats/open-webui.md.

A chat is a record. Its messages form a tree (`branches`): regenerated answers are abandoned
branches, answers of several models side by side are conversations of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import (
    Context,
    Event,
    Json,
    Media,
    Message,
    Part,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import JsonFault, a_json_type, loads
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.chats.open_webui.answers import (
    SERVER_TOOL,
    media_of_files,
    pieces_of_items,
    pieces_of_text,
)
from builder.readers.chats.pieces import AnswerInfo, turns
from builder.readers.homes import Home
from builder.readers.toolkit.branches import (
    Chat,
    ChatNode,
    chat_conversations,
    has_versions,
    in_order,
)
from builder.readers.toolkit.chat_messages import as_harness, content
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_of,
    name_or_none,
)
from builder.readers.toolkit.rows import objects
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, open_sqlite, rows, tables

NAME = "open-webui"
_CHATS = "SELECT id, title, chat FROM chat ORDER BY id"
_COLUMNS = {"id", "user_id", "title", "chat"}


def recognise(source: Source) -> str | None:
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
    """Returns the chat of a row of the export, which may be the chat alone."""
    return as_dict(value["chat"]) if "chat" in value else value


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each chat."""
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_store(source))
        return
    names: Counter[str] = Counter()
    for record in objects(source.records(), "a chat that is "):
        if isinstance(record, Problem):
            yield record
        else:
            yield from _chat(source, *record, names)


def _read_store(source: Source) -> Iterator[Event]:
    names: Counter[str] = Counter()
    with open_sqlite(source) as connection:
        for number, row in enumerate(rows(connection, _CHATS)):
            source.count_records()
            where = f"chat {as_str(row.get('id')) or number}"
            value = row.get("chat")
            try:
                body = loads(value) if isinstance(value, str) else value
            except JsonFault as fault:
                yield fault.at(where)
                continue
            if isinstance(body, dict):
                yield from _chat(source, where, {**row, "chat": body}, names)
            else:
                yield Problem("not_object", where, f"a chat that is {a_json_type(body)}")


def _chat(source: Source, where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    """Yields the conversations of a chat."""
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
    chat = Chat(
        format_name=NAME,
        scope=f"{source.name}/{name}",
        name=name,
        where=where,
        system=system,
        model=next((one for one in map(name_or_none, as_list(body.get("models"))) if one), None),
        context=Context.lacking(base),
        outcome=_outcome(values.get(last or "", {})),
    )
    yield from chat_conversations(chat, nodes, last, names)


def _outcome(answer: dict[str, Json]) -> dict[str, Json] | None:
    rating = as_dict(answer.get("annotation")).get("rating")
    return None if rating is None else {"feedback": rating}


def _node(value: dict[str, Json], values: dict[str, dict[str, Json]], base: list[str]) -> ChatNode:
    parent = name_or_none(value.get("parentId"))
    asked = as_list(values.get(parent or "", {}).get("models"))
    index = value.get("modelIdx")
    group = str(index) if len(asked) > 1 and isinstance(index, int) else ""
    role = as_str(value.get("role"))
    if role == "assistant":
        return ChatNode(parent, tuple(_answer(value, base)), group)
    parts: list[Part] = [*content(value.get("content"))]
    parts += [Media(kind, name) for kind, name in media_of_files(value.get("files"))]
    sent = tuple(parts) if role == "user" else as_harness(parts)
    return ChatNode(parent, (Message(role[:40], sent),) if sent else ())


def _answer(value: dict[str, Json], base: list[str]) -> Iterator[Message]:
    """Yields the turns of an answer."""
    items = value.get("output")
    newer = isinstance(items, list) and bool(items)
    pieces = list(pieces_of_items(items) if newer else pieces_of_text(as_str(value.get("content"))))
    missing = {*base}
    if value.get("sources"):  # text of documents that was put into the request
        missing.add("reminders")
    untrained = None
    if any(isinstance(one, Unparsed) and one.code == SERVER_TOOL for one in pieces):
        untrained = "server_tool"
        pieces = [
            one for one in pieces if not (isinstance(one, Unparsed) and one.code == SERVER_TOOL)
        ]
    if value.get("done") is False or value.get("error"):
        untrained = "aborted"
    info = AnswerInfo(name_of(value, "model"), Context.lacking(missing), untrained)
    answer_turns = list(turns(pieces if newer else _apart(pieces), info))
    unclear = False  # whether calls were made at once or one after the other
    for message in answer_turns:
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


READER = Reader(
    name=NAME,
    summary=(
        "Open WebUI chats: exports (chats with history.messages and currentId) and webui.db "
        "(table chat)"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    homes=(Home("Open WebUI", "${DATA_DIR:-~/.open-webui}/webui.db"),),
    read=read,
)
