"""Reads Kiro's CLI and IDE, and Amazon Q Developer's CLI. Source: docs/formats/kiro.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

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
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.jsonio import a_json_type
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import content, results_apart
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
from builder.readers.toolkit.rows import RecordLog, add_records, objects, read_objects
from builder.readers.toolkit.siblings import from_sibling
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.readers.traces.parts import read_call
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
            history.put(place, "tool", (_result(one, "tool_use_id") for one in results))
            if prompt := as_str(content.get("prompt")):
                history.put(place, "user", [Text(prompt)])
            if name not in _TURNS:
                history.append(unknown_message(name), place)
        # Hooks' and files' text is put before the prompt when it is sent.
        missing |= {"reminders"} if as_str(user.get("additional_context")) else set()
        for item in as_dict(turn.get("assistant")).values():
            content = as_dict(item)
            text = as_str(content.get("content"))
            parts: list[Part] = [Text(text)] if text else []
            parts += map(read_call, as_dicts(content.get("tool_uses")))
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

_PLACEHOLDER = "..."
"""The text of a thought whose words are encrypted."""
_SCREEN = frozenset({
    "pending_interaction", "interaction_resolved", "session_event", "session_metadata",
    "usage_summary", "turn_start", "turn_end", "steering_inclusion", "session_start",
    "sub_agent_start",
})  # fmt: skip


def _is_event(value: dict[str, Json]) -> bool:
    payload = as_dict(value.get("payload"))
    kind = as_str(payload.get("type"))
    if kind in ("tool_call", "tool_result"):
        return "toolCallId" in payload
    if kind == "assistant":
        return "operationType" in payload
    has_id = {"id", "timestamp"} <= value.keys()
    return has_id and ((kind == "user" and "content" in payload) or kind in _SCREEN)


def _is_description(value: dict[str, Json]) -> bool:
    return {"schemaVersion", "id", "agentMode", "workspacePaths"} <= value.keys()


def _read_events(source: Source) -> Iterator[Event]:
    folder, _, file = source.name.rpartition("/")
    is_named = file in ("messages.jsonl", "")
    name = folder.rpartition("/")[2] if is_named and folder else file.removesuffix(".jsonl")
    history = SessionHistory(_NAME, name or "session", source.name)
    model = from_sibling(source, "session.json", _model)
    log = _Events(history, {"tools"}, model)
    records = yield from add_records(log, objects(source.records(), "an event that is "))
    log.end_turn(is_complete=False)
    log.add_system()
    yield from history.conversations(records)


def _model(source: Source) -> str | None:
    """Returns the model in a session's state: of the IDE, or of the CLI."""
    document = source.document()
    state = as_dict(document, "session_state") if isinstance(document, dict) else {}
    if state:
        return _model_id(as_dict(state.get("rts_model_state")))
    return model_of(document, "modelId") if isinstance(document, dict) else None


@dataclass(slots=True)
class _Response:
    """One response of the model: the place of its first event, and its parts."""

    where: str = ""
    parts: list[Part] = field(default_factory=list)
    is_ended: bool = False


@dataclass(slots=True)
class _Events(RecordLog):
    """The events so far; those of a turn are held back until it ends.

    system     the system prompt, which is logged last
    responses  those of the turn that ended; `open` is the one that has not
    """

    model: str | None = None
    system: str | None = None
    responses: list[_Response] = field(default_factory=list)
    open: _Response = field(default_factory=_Response)
    calls: list[tuple[str, ToolCall]] = field(default_factory=list)
    results: dict[str, ToolResult] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    is_cut: bool = False

    def lose(self, where: str) -> None:
        """Notes that the turn may lack events, so that its order is not known."""
        RecordLog.lose(self, where)
        self.is_cut = True

    def add(self, where: str, value: dict[str, Json]) -> str:
        payload = as_dict(value.get("payload"))
        kind = as_str(payload.get("type"))
        if kind == "user":
            self._user(where, payload)
        elif kind == "assistant":
            self._say(where, payload)
        elif kind == "tool_call":
            call_id = name_or_none(payload.get("toolCallId"))
            call = ToolCall(as_str(payload.get("toolName")), payload.get("args"), call_id)
            self.calls.append((where, call))
        elif kind == "tool_result":
            call_id = name_or_none(payload.get("toolCallId"))
            failed = payload.get("success") is False
            parts = content(payload.get("content"))
            self.results[call_id or ""] = ToolResult(parts, call_id, is_error=failed)
        elif kind == "tombstone":
            self.end_turn(is_complete=False)
            self.history.replace()
            self.missing |= {"history"}
        elif kind in _SCREEN:
            return self._other(kind, where, payload)
        else:
            if carries_content(value) or carries_content(payload):
                self.end_turn(is_complete=False)
                self.history.append(unknown_message(kind), where)
            return unknown_code(kind)
        return ""

    def _other(self, kind: str, where: str, payload: dict[str, Json]) -> str:
        text = as_str(payload.get("content"))
        if kind == "session_start" and text:
            if payload.get("forcedRole") is True:
                self.system = text
                return ""
            if not self.history.entries:  # a sub-agent's session begins with its prompt
                self.history.put(where, "user", [Text(text)])
                return ""
        if kind == "session_metadata" and payload.get("key") == "contextUsage":
            if self.open.where or self.calls:
                self.responses.append(replace(self.open, is_ended=True))
                self.open = _Response()
        elif kind == "usage_summary":
            for summary in as_dicts(payload.get("promptTurnSummaries")):
                self.used += [as_str(name) for name in as_list(summary.get("usedTools"))]
        elif kind == "turn_end":
            self.end_turn(is_complete=payload.get("stopReason") == "end_turn")
        elif kind == "steering_inclusion" and payload.get("documents"):
            self.missing |= {"reminders"}
        return kind

    def _user(self, where: str, payload: dict[str, Json]) -> None:
        self.end_turn(is_complete=False)
        parts: list[Content] = [*content(payload.get("content"))]
        parts += [Media("image") for _ in as_list(payload.get("images"))]
        if payload.get("documents"):
            self.missing |= {"reminders"}
        self.history.put(where, "user", parts)

    def _say(self, where: str, payload: dict[str, Json]) -> None:
        kind = as_str(payload.get("operationType"))
        self.open.where = self.open.where or where
        parts = content(payload.get("content"))
        if kind == "Reasoning":
            text = "".join(part.text for part in parts if isinstance(part, Text))
            if text.strip() not in ("", _PLACEHOLDER):
                self.open.parts.append(Reasoning(text))
            elif text:
                self.missing |= {"reasoning"}
        elif kind == "Say":
            self.open.parts += parts
        else:  # printed by the program, or a summary
            self.open.parts.append(unknown_part(kind))

    def end_turn(self, *, is_complete: bool) -> None:
        """Appends the turn's answers and results to the history."""
        if self.open.where:  # a response that did not end
            self.responses.append(self.open)
            self.open = _Response()
            is_complete = False
        order = self._order() if is_complete and not self.is_cut else None
        alone = not self.calls and len(self.responses) == 1 and not self.is_cut
        for at, answer in enumerate(self.responses):
            if order is not None or alone:
                self._answer(answer, (order or [])[at : at + 1])
            else:
                self._answer(replace(answer, parts=[*answer.parts, unknown_part("call_order")]), ())
        if order is None:
            for where, call in self.calls:
                self._answer(_Response(where, [unknown_part("call_order")]), (call,))
        self.responses, self.calls, self.results, self.used = [], [], {}, []
        self.is_cut = False

    def add_system(self) -> None:
        """Adds the system prompt, which is logged last, to the requests of the last history."""
        for entry in self.history.entries:
            if self.system and entry.request is not None and entry.message.context is not None:
                entry.request = replace(entry.request, system=self.system)
                context = Context.lacking({*entry.message.context.missing} - {"system"})
                entry.message = replace(entry.message, context=context)

    def _order(self) -> list[ToolCall] | None:
        """Returns the calls in the order of the responses that made them; None if it is unknown.

        The program asks again only after a call, so that all responses but the last made one.
        """
        if len(self.calls) != len(self.responses) - 1:
            return None
        if any((call.id or "") not in self.results for _, call in self.calls):
            return None
        left = [call for _, call in self.calls]
        names = self.used or [call.name for call in left[:1]]
        ordered: list[ToolCall] = []
        for name in names:
            same = next((call for call in left if call.name == name), None)
            if same is None:
                return None
            left.remove(same)
            ordered.append(same)
        return None if left else ordered

    def _answer(self, answer: _Response, calls: Sequence[ToolCall]) -> None:
        code = None if answer.is_ended or calls else "aborted"
        parts, missing = (*answer.parts, *calls), {*self.missing, "system"}
        self.history.answer(answer.where, parts, missing, self.model, code)
        for call in calls:
            if (result := self.results.get(call.id or "")) is not None:
                self.history.put(answer.where, "tool", [result])


# -- sessions of the CLI ---------------------------------------------------------------------------


def _is_line(value: dict[str, Json]) -> bool:
    data = as_dict(value.get("data"))
    return isinstance(value.get("kind"), str) and "version" in value and "message_id" in data


def _is_state(value: dict[str, Json]) -> bool:
    state = as_dict(value.get("session_state"))
    return "session_id" in value and "conversation_metadata" in state


def _read_session(source: Source) -> Iterator[Event]:
    stem = source.name.rpartition("/")[2].removesuffix(".jsonl").removesuffix(".json") or "session"
    history = SessionHistory(_NAME, stem, source.name)
    log = _Log(history, model=from_sibling(source, f"{stem}.json", _model))
    records = yield from add_records(log, objects(source.records(), "a line that is "))
    yield from history.conversations(records)


@dataclass(slots=True)
class _Log(RecordLog):
    model: str | None = None

    def add(self, where: str, value: dict[str, Json]) -> str:
        kind, data = value.get("kind"), as_dict(value.get("data"))
        if _is_state(value):
            return "state"
        name = as_str(data.get("message_id"))
        if self.history.repeats(name):
            return "repeated_message"
        parts = [part for item in as_dicts(data.get("content")) for part in _parts(item)]
        if kind == "AssistantMessage":
            if parts:
                context = Context.lacking(self.missing)
                code = _stand_in(parts) or cut_code(data)
                message = Message("assistant", tuple(parts), name or where, code, context)
                self.history.append(message, where, RequestHead(model=self.model), kind=name)
        elif kind in ("Prompt", "ToolResults"):
            for role, sent in zip(("tool", "user"), results_apart(parts), strict=True):
                if sent:
                    self.history.append(Message(role, sent), where, kind=name)
        else:
            if carries_content(value):
                self.history.append(unknown_message(kind), where, kind=name)
            return unknown_code(kind)
        return ""


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
    (_is_event, "events with id, timestamp and payload"),
    (_is_description, "the description of a session"),
)


def _recognise(source: Source) -> str | None:
    if source.peek.kind == "sqlite":
        return _has_tables(source)
    for value in source.peek.objects:
        for is_kind, found in _KINDS:
            if is_kind(value):
                return found
    return None


def _read(source: Source) -> Iterator[Event]:
    found = source.peek.objects
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_database(source))
    elif any(map(_is_value, found)):
        yield from read_objects(source, _conversation)
    elif any(map(_is_description, found)):
        for record in source.records():
            yield record if isinstance(record, Problem) else Ignored("state")
    elif any(map(_is_event, found)):
        yield from _read_events(source)
    else:
        yield from _read_session(source)


READER = declared(_NAME, recognise=_recognise, read=_read)
