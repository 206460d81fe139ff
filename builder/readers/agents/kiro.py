"""Reads Kiro's CLI and Amazon Q Developer's CLI. Source: docs/formats/kiro.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

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
from builder.jsonio import a_json_type
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.homes import Home
from builder.readers.toolkit.chat_messages import results_apart
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    model_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.rows import RecordLog, add_records, objects, read_objects, refused
from builder.readers.toolkit.siblings import from_sibling
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, json_column, open_sqlite, rows, tables

_NAME = "kiro"
_ERRORS = frozenset({"error", "Error"})
_TOO_LARGE = ": the actual tool use arguments were too complicated to be generated"


def _result(value: dict[str, Json], id_key: str) -> ToolResult:
    """Returns the result in an item with content, status and, under `id_key`, the call's id."""
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


def _model_id(value: dict[str, Json]) -> str | None:
    return model_of(as_dict(value, "model_info"), "model_id", "model_name")


def _stand_in(parts: list[Part]) -> str | None:
    """Returns `inserted` for an answer with a call whose arguments the program wrote.

    When a response ends before the arguments do, the program stores a call with a note in their
    place and asks again.
    """
    for part in parts:
        if isinstance(part, ToolCall) and isinstance(part.arguments, dict):
            note = part.arguments.get("key")
            if isinstance(note, str) and note.endswith(_TOO_LARGE) and len(part.arguments) == 1:
                return "inserted"
    return None


# -- databases of the CLI and of Amazon Q, and single conversations of them (`/save`) -------------

_NEW = "SELECT key, value FROM conversations_v2 ORDER BY updated_at, conversation_id, key"
_OLD = "SELECT key, value FROM conversations ORDER BY key"
_TURNS = ("Prompt", "ToolUseResults", "CancelledToolUses")


def _has_tables(source: Source) -> str | None:
    """Returns which database a source is, or None."""
    columns = tables(source)
    if {"key", "conversation_id", "value"} <= columns.get("conversations_v2", frozenset()):
        return "a database with conversations_v2"
    if columns.get("conversations", frozenset()) == {"key", "value"}:
        return "a database with conversations of key and value (Amazon Q)"
    return None


def _is_value(value: dict[str, Json]) -> bool:
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


def _read_database(source: Source) -> Iterator[Event]:
    query = _NEW if "conversations_v2" in tables(source) else _OLD
    names: Counter[str] = Counter()
    newest: dict[str, tuple[str, dict[str, Json]]] = {}
    with open_sqlite(source) as connection:
        for row in rows(connection, query):
            source.count_records()
            where = f"key {as_str(row.get('key'))}"[:200]
            value = json_column(row.get("value"), where)
            if isinstance(value, dict):
                name = as_str(value.get("conversation_id")) or where
                if name in newest:  # the same conversation under another folder's key
                    yield Ignored("superseded")
                newest[name] = (where, value)
            elif isinstance(value, Problem):
                yield value
            else:
                yield Problem("not_object", where, a_json_type(value))
    for where, value in newest.values():
        yield from _conversation(where, value, names)


def _conversation(where: str, value: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    """Yields the conversation in a value: turns of user and assistant, whose key is their kind."""
    session = as_str(value.get("conversation_id")) or where
    history = SessionHistory(_NAME, session, f"{_NAME}/{session}", f"{where} ")
    tools = _definitions(value.get("tools"))
    missing = {"system", *([] if tools is not None else ["tools"])}
    # After /compact, the history begins with the summary, if it is there at all.
    missing |= {"history"} if value.get("latest_summary") else set()
    head = RequestHead(None, tools, _model_id(value))
    for at, turn in enumerate(_turns(value)):
        place = f"turn {at}"
        user = as_dict(turn.get("user"))
        for name, item in as_dict(user.get("content")).items():
            content = as_dict(item)
            results = as_dicts(content.get("tool_use_results"))
            if results:
                results_sent = tuple(_result(one, "tool_use_id") for one in results)
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
                message = Message("assistant", tuple(parts), place, _stand_in(parts), context)
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


# -- sessions of the IDE 1.x and of the CLI's third engine -----------------------------------------


def _is_event(value: dict[str, Json]) -> bool:
    """Returns whether a record is an event of a session."""
    payload = as_dict(value.get("payload"))
    is_said = payload.get("type") in ("user", "assistant", "tool_call", "tool_result")
    return is_said and not payload.keys().isdisjoint({"content", "toolCallId", "operationType"})


def _model(source: Source) -> str | None:
    """Returns the model in the state of a session of the CLI."""
    document = source.document()
    state = as_dict(document, "session_state") if isinstance(document, dict) else {}
    return _model_id(as_dict(state.get("rts_model_state")))


# -- sessions of the CLI ---------------------------------------------------------------------------


def _is_line(value: dict[str, Json]) -> bool:
    data = as_dict(value.get("data"))
    return isinstance(value.get("kind"), str) and "version" in value and "message_id" in data


def _is_state(value: dict[str, Json]) -> bool:
    state = as_dict(value.get("session_state"))
    return "session_id" in value and "conversation_metadata" in state


def _read_session(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session's lines."""
    stem = source.name.rpartition("/")[2].removesuffix(".jsonl").removesuffix(".json") or "session"
    history = SessionHistory(_NAME, stem, source.name)
    log = _Log(history, model=from_sibling(source, f"{stem}.json", _model))
    records = yield from add_records(log, objects(source.records(), "a line that is "))
    yield from history.conversations(records)


@dataclass(slots=True)
class _Log(RecordLog):
    """The lines so far. `again` is the entry that the next line repeats, after a rewind."""

    model: str | None = None
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
                code = _stand_in(parts) or cut_code(data)
                message = Message("assistant", tuple(parts), name or where, code, context)
                self._append(message, where, name, RequestHead(model=self.model))
        elif kind in ("Prompt", "ToolResults"):
            for role, sent in zip(("tool", "user"), results_apart(parts), strict=True):
                if sent:
                    self._append(Message(role, sent), where, name)
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


_KINDS = (
    (_is_line, "lines with version, kind and data.message_id"),
    (_is_value, "a conversation with history of user and assistant"),
    (_is_state, "the state of a session"),
    (_is_event, "events with payload (refused)"),
)


def _recognise(source: Source) -> str | None:
    """Claims lines and events of sessions, their state, and databases."""
    if source.peek.kind == "sqlite":
        return _has_tables(source)
    for value in source.peek.objects:
        for is_kind, found in _KINDS:
            if is_kind(value):
                return found
    return None


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session or of a database."""
    found = source.peek.objects
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_database(source))
    elif any(map(_is_value, found)):
        yield from read_objects(source, _conversation)
    elif any(map(_is_event, found)):
        yield from refused(source, "events of a session do not tell which answer made which call")
    else:
        yield from _read_session(source)


READER = Reader(
    name=_NAME,
    summary=(
        "Kiro: its CLI's sessions (JSONL with version, kind and data), its database and Amazon "
        "Q's (conversations_v2, conversations); its IDE's sessions (payload) are refused"
    ),
    evidence=("files", "parsers"),
    recognise=_recognise,
    homes=(
        Home("Kiro", "${KIRO_HOME:-~/.kiro}/sessions"),
        Home("Kiro", "${XDG_DATA_HOME:-~/.local/share}/kiro-cli/data.sqlite3"),
        Home("Kiro", "~/Library/Application Support/kiro-cli/data.sqlite3"),
        Home("Kiro", "${LOCALAPPDATA:-~/AppData/Local}/kiro-cli/data.sqlite3"),
        Home("Amazon Q", "${XDG_DATA_HOME:-~/.local/share}/amazon-q/data.sqlite3"),
        Home("Amazon Q", "~/Library/Application Support/amazon-q/data.sqlite3"),
    ),
    is_agent=True,
    read=_read,
)
