"""Histories that agent frameworks save. Source: docs/formats/frameworks.md.

A document, a line or a row of a database holds lists of messages, each of which is a conversation;
or each line is a message.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from builder.conversation import (
    REPEAT,
    Content,
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
    unknown_part,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.gemini import content_messages
from builder.readers.toolkit.chat_messages import (
    chat_message,
    content,
    media_of,
    text_or_data,
)
from builder.readers.toolkit.comparison import CallKeys
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.marks import cut_code, is_history
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    first_of,
    json_in_text,
    name_of,
    name_or_none,
    one_or_many,
)
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import RecordLog
from builder.readers.traces.parts import PartNotes, read_call, read_part, read_result
from builder.readers.traces.vercel_ai_sdk import read_ui_message
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import guarded, once, open_sqlite, rows, tables

_MAX_DEPTH = 8
_PEEKED = 50
"""Messages of a list that are looked at to recognise it."""
_IDS = ("session_id", "conversation_id", "run_id", "id")
_PLAIN = frozenset({
    "agent_state", "agent_states", "data", "events", "llm_context", "message_history", "messages",
    "runs", "store",
})  # fmt: skip
"""Keys above a history that do not name it."""


@dataclass(slots=True)
class _Log(RecordLog):
    """The messages of one history so far. Subclasses add those of a framework.

    model   that of the history, if its messages name none
    system  the prompt so far, of frameworks that repeat it in each request
    """

    model: str | None = None
    system: str = ""
    author: str = ""
    keys: CallKeys = field(default_factory=lambda: CallKeys(""))

    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        """Returns whether an object is a message of the framework."""
        raise NotImplementedError

    def put(self, where: str, message: Message, item: dict[str, Json], kind: str = "") -> None:
        """Appends a message; `item` has the marks of an answer."""
        if not message.parts:
            return
        if message.role == "system":
            self.missing -= {"system"}
        if message.role != "assistant":
            self.history.append(message, where, kind=kind)
            return
        code = message.untrained or (REPEAT if is_history(item) else cut_code(item))
        context = Context.lacking(self.missing)
        answer = replace(message, turn=where, untrained=code, context=context)
        model = message.model or self.model
        self.history.append(answer, where, RequestHead(model=model), kind=kind)

    def put_text(self, where: str, role: str, text: str, *, harness: bool = False) -> None:
        """Appends a text, unless it is empty."""
        self.put(where, Message(role, (Text(text, harness),) if text else ()), {})


class _PydanticAI(_Log):
    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        is_kind = item.get("kind") in ("request", "response")
        return is_kind and any("part_kind" in part for part in as_dicts(item.get("parts")))

    def add(self, where: str, item: dict[str, Json]) -> str:
        parts = as_dicts(item.get("parts"))
        if item.get("kind") == "response":
            model = name_or_none(item.get("model_name"))
            hidden = {"part_kind": "thinking", "content": ""}
            clear = [one for one in parts if not hidden.items() <= one.items()]  # not encrypted
            found = tuple(part for one in clear for part in _parts_of(one))
            self.put(where, Message("assistant", found, model=model), item)
            self.missing |= {"reasoning"} if len(clear) < len(parts) else set()
            return ""
        asked = [one for one in parts if one.get("part_kind") != "system-prompt"]
        for part in parts:
            if part.get("part_kind") == "system-prompt":
                self.put_text(where, "system", as_str(part.get("content")))
        if text := as_str(item.get("instructions")):
            if not self.system:
                self.put_text(where, "system", text)
            elif text != self.system:  # each request has its own, in place of the one before
                self.missing |= {"system"}
            self.system = self.system or text
        for part in asked:
            self.put(where, _request_message(part), {})
        return ""


def _parts_of(part: dict[str, Json]) -> list[Part]:
    kind = as_str(part.get("part_kind"))
    if kind.startswith(("builtin-tool", "native-tool")):
        return [Unparsed(dumps(part), "server_tool")]
    return read_part({**part, "type": kind})


def _request_message(part: dict[str, Json]) -> Message:
    kind, value = as_str(part.get("part_kind")), part.get("content")
    call_id, name = (name_or_none(part.get(key)) for key in ("tool_call_id", "tool_name"))
    if kind == "user-prompt":
        return Message("user", tuple(map(_prompt_part, one_or_many(value))))
    if kind == "tool-return":
        shown = text_or_data(value, compact=True)
        failed = part.get("outcome") in ("failed", "denied")
        is_denied = part.get("outcome") == "denied"
        result = ToolResult(shown, call_id, name, is_error=failed, is_denied=is_denied)
        return Message("tool", (result,))
    if kind == "retry-prompt":
        text = f"{_fault(value, name)}\n\nFix the errors and try again."
        if name is None:
            return Message("user", (Text(text, harness=True),))
        return Message("tool", (ToolResult((Text(text),), call_id, name, is_error=True),))
    return Message("user", (unknown_part(kind),))


def _fault(value: Json, name: str | None) -> str:
    """Returns the errors as they are sent. Source: RetryPromptPart.model_response."""
    if isinstance(value, str):
        return value if name is not None else f"Validation feedback:\n{value}"
    errors = [{key: one[key] for key in one if key != "ctx"} for one in as_dicts(value)]
    plural = "" if len(errors) == 1 else "s"
    text = json.dumps(errors, ensure_ascii=False, indent=2)
    return f"{len(errors)} validation error{plural}:\n```json\n{text}\n```"


def _prompt_part(value: Json) -> Content:
    part = as_dict(value)
    kind = as_str(part.get("kind"))
    if isinstance(value, str) or isinstance(part.get("content"), str):
        return Text(value if isinstance(value, str) else as_str(part["content"]))
    if kind.endswith("-url"):
        return media_of(f"{kind.removesuffix('-url')}/")
    return media_of(as_str(part.get("media_type"))) if kind == "binary" else unknown_part(kind)


class _Adk(_Log):
    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        invocation = item.keys() & {"invocationId", "invocation_id"}
        return bool(invocation) and isinstance(item.get("author"), str)

    def add(self, where: str, item: dict[str, Json]) -> str:
        if item.get("partial") is True:  # a whole event repeats it
            return "streamed_piece"
        invocation, author = name_of(item, "invocationId", "invocation_id"), as_str(item["author"])
        actions = as_dict(item.get("actions"))
        target = name_of(actions, "rewindBeforeInvocationId", "rewind_before_invocation_id")
        if target:
            kinds = [entry.kind for entry in self.history.entries]
            self.history.rewind(kinds.index(target) if target in kinds else len(kinds))
        if actions.get("compaction"):
            self.missing |= {"history"}  # from here on a summary is sent in place of events
        body = as_dict(json_in_text(item.get("content")))
        found = content_messages(body, self.keys)
        if not found:
            return "" if body or actions else "metadata"
        if author != "user" and any(one.role == "assistant" for one in found):
            # An agent sees the turns of other agents in the words of the user.
            self.missing |= {"history"} if self.author not in ("", author) else set()
            self.author = author
        for message in found:
            self.put(where, replace(message, speaker=author), item, invocation or "")
        return ""


class _LlamaIndex(_Log):
    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        has_content = "blocks" in item or "content" in item
        is_own = isinstance(item.get("additional_kwargs"), dict) and "type" not in item
        return is_own and has_content and isinstance(item.get("role"), str)

    def add(self, where: str, item: dict[str, Json]) -> str:
        extra = as_dict(item["additional_kwargs"])
        blocks = as_dicts(item.get("blocks")) or [
            {"block_type": "text", "text": item.get("content")}
        ]
        role = {"chatbot": "assistant", "model": "assistant"}.get(
            as_str(item["role"]), as_str(item["role"])
        )
        written = [part for block in blocks for part in read_part(block)]
        if role in ("tool", "function"):
            shown = tuple(part for part in written if isinstance(part, Content))
            call_id, name = (name_or_none(extra.get(key)) for key in ("tool_call_id", "name"))
            self.put(where, Message("tool", (ToolResult(shown, call_id, name),)), item)
            return ""
        calls = chat_message({"role": "assistant", **extra, "content": None}).parts
        if any(isinstance(part, ToolCall) for part in written):
            calls = ()  # additional_kwargs repeats the blocks
        self.put(where, Message(role, (*written, *calls)), {**item, **extra})
        return ""


_HAYSTACK = frozenset({
    "text", "tool_call", "tool_call_result", "reasoning", "image", "file",
})  # fmt: skip


class _Haystack(_Log):
    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        plain = {key.removeprefix("_"): value for key, value in item.items()}
        if not isinstance(plain.get("meta"), dict) or "role" not in plain:
            return False
        parts = plain.get("content")
        if isinstance(parts, str):
            return "name" in plain and len(plain) == 4
        return isinstance(parts, list) and all(as_dict(one).keys() <= _HAYSTACK for one in parts)

    def add(self, where: str, item: dict[str, Json]) -> str:
        plain = {key.removeprefix("_"): value for key, value in item.items()}
        meta, parts = as_dict(plain["meta"]), plain.get("content")
        pieces = as_dicts([{"text": parts}] if isinstance(parts, str) else parts)
        read = tuple(part for one in pieces for part in _piece(one))
        model = name_or_none(meta.get("model"))
        self.put(where, Message(as_str(plain["role"])[:40], read, model=model), meta)
        return ""


def _piece(piece: dict[str, Json]) -> Iterator[Part]:
    """Yields a part of a message of Haystack, whose kind is its key."""
    call, result = as_dict(piece.get("tool_call")), as_dict(piece.get("tool_call_result"))
    if piece.get("text"):
        yield Text(as_str(piece["text"]))
    elif "reasoning" in piece:
        yield Reasoning(as_str(piece["reasoning"], "reasoning_text"))
    elif call:
        yield read_call(call)
    elif result:
        origin, failed = as_dict(result.get("origin")), result.get("error") is True
        tool, call_id = (name_or_none(origin.get(key)) for key in ("tool_name", "id"))
        value = result.get("result")
        shown: tuple[Content, ...] = text_or_data(value)
        if isinstance(value, list):
            nested = [part for one in as_dicts(value) for part in _piece(one)]
            shown = tuple(part for part in nested if isinstance(part, Content))
        yield ToolResult(shown, call_id, tool, is_error=failed)
    elif "image" in piece or "file" in piece:
        yield Media("image" if "image" in piece else "file")
    elif "text" not in piece:
        yield unknown_part(next(iter(piece), ""))


class _AutoGen(_Log):
    _ROLES: ClassVar[dict[str, str]] = {
        "SystemMessage": "system", "UserMessage": "user", "AssistantMessage": "assistant",
        "FunctionExecutionResultMessage": "tool",
    }  # fmt: skip

    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        return as_str(item.get("type")) in _AutoGen._ROLES and "content" in item

    def add(self, where: str, item: dict[str, Json]) -> str:
        role, value = self._ROLES[as_str(item["type"])], item["content"]
        parts: list[Part] = []
        if text := as_str(item.get("thought")):  # beside calls it is the text of the answer
            parts.append(Text(text) if isinstance(value, list) else Reasoning(text))
        if role == "tool":
            parts += map(read_result, as_dicts(value))
        elif role == "assistant" and isinstance(value, list):
            parts += map(read_call, as_dicts(value))
        else:
            parts += (
                Text(one) if isinstance(one, str) else Media("image") for one in one_or_many(value)
            )
        speaker = name_or_none(item.get("source")) if role == "assistant" else None
        self.put(where, Message(role, tuple(parts), speaker=speaker), item)
        return ""


_AGNO = frozenset({"from_history", "stop_after_tool_call", "add_to_agent_memory"})
"""Flags of a message of Agno."""


class _Agno(_Log):
    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        return "role" in item and not (_AGNO - {"from_history"}).isdisjoint(item)

    def add(self, where: str, item: dict[str, Json]) -> str:
        role = {"model": "assistant", "developer": "system"}.get(
            as_str(item["role"]), as_str(item["role"])
        )
        plain = {key: value for key, value in item.items() if key not in _AGNO}
        message = chat_message({**plain, "role": role})
        if item.get("tool_call_error") is True:
            results = [one for one in message.parts if isinstance(one, ToolResult)]
            message = replace(message, parts=tuple(replace(one, is_error=True) for one in results))
        self.put(where, message, item)
        return ""


class _Mastra(_Log):
    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        body = as_dict(json_in_text(item.get("content")))
        return "role" in item and "format" in body and isinstance(body.get("parts"), list)

    def add(self, where: str, item: dict[str, Json]) -> str:
        body, notes = as_dict(json_in_text(item["content"])), PartNotes()
        chat = {"id": item.get("id"), "role": item["role"], "parts": body["parts"]}
        for message in read_ui_message(chat, len(self.history.entries), notes):
            entries = len(self.history.entries)
            self.put(where, message, item)
            for entry in self.history.entries[entries:]:  # a message has the steps of an answer
                entry.message = replace(entry.message, turn=message.turn)
        return ""


class _Dify(_Log):
    @staticmethod
    def is_message(item: dict[str, Json]) -> bool:
        return {"query", "answer", "conversation_id"} <= item.keys()

    def add(self, where: str, item: dict[str, Json]) -> str:
        name, parent = as_str(item.get("id")), as_str(item.get("parent_message_id"))
        kinds = [entry.kind for entry in self.history.entries]
        if parent in kinds:  # the user asked again from there
            self.history.rewind(len(kinds) - kinds[::-1].index(parent))
        asked = (
            *content(item["query"]),
            *(Media("file") for _ in as_list(item.get("message_files"))),
        )
        self.put(where, Message("user", asked), {}, name)
        if item.get("retriever_resources"):
            self.missing |= {"reminders"}  # documents stand in the prompt
        thoughts = sorted(
            as_dicts(item.get("agent_thoughts")), key=lambda one: str(one.get("position")).zfill(9)
        )
        last = ""
        for at, thought in enumerate(thoughts):
            tools = list(filter(None, as_str(thought.get("tool")).split(";")))
            last = as_str(thought.get("thought"))
            if not tools:
                continue
            inputs, outputs = (
                json_in_text(thought.get(key)) for key in ("tool_input", "observation")
            )
            ids = {tool: f"{name}.{at}.{number}" for number, tool in enumerate(tools)}
            calls = (ToolCall(tool, as_dict(inputs).get(tool, inputs), ids[tool]) for tool in tools)
            self.put(where, Message("assistant", (*content(last), *calls)), {}, name)
            for tool in tools:
                shown = as_dict(outputs).get(tool, outputs)
                result = ToolResult(text_or_data(shown), ids[tool], tool)
                self.put(where, Message("tool", (result,)), {}, name)
            last = ""
        answer = last if thoughts and last else as_str(item["answer"])
        failed = bool(item.get("error")) or item.get("status") in ("error", "stopped")
        code = "aborted" if failed else None
        self.put(where, Message("assistant", content(answer), untrained=code), {}, name)
        return ""


# -- documents, lines and databases ----------------------------------------------------------------

_OF_STEPS = frozenset({"input", "output", "inputs", "outputs"})
"""What a step of a trace took and gave: that a request has such messages is no history."""

_Found = tuple[str, str | None, list[Json]]
"""Name, model and messages of a history."""


@once
def _beginning(source: Source) -> bytes:
    return source.first(1 << 17)


@dataclass(frozen=True, slots=True)
class _Framework:
    """How the histories of one framework are found; `log` reads their messages.

    name     of the format, which formats.toml describes
    sign     is found near the beginning of its files, so that others are soon dismissed
    columns  of the table of a database that has messages or histories
    group    the key of messages that names their conversation
    """

    name: str
    sign: str
    log: type[_Log]
    columns: frozenset[str] = frozenset()
    group: str = ""

    def histories(self, value: Json, name: str, depth: int = 0) -> Iterator[_Found]:
        value = json_in_text(value)
        if isinstance(value, list) and any(map(self.is_message, value[:_PEEKED])):
            grouped: dict[str, list[Json]] = {}
            for item in value:
                grouped.setdefault(as_str(item, self.group) or name, []).append(item)
            yield from ((key, None, messages) for key, messages in grouped.items())
        elif depth > _MAX_DEPTH:
            return
        elif isinstance(value, list):
            for item in value:
                yield from self.histories(item, name, depth + 1)
        elif isinstance(value, dict):
            own, model = name_of(value, *_IDS), name_of(value, "model", "model_name")
            for key, item in value.items():
                if key in _OF_STEPS:
                    continue
                title = own or (name if key in _PLAIN else key)
                for found, inner, messages in self.histories(item, title, depth + 1):
                    yield found, inner or model, messages

    def is_message(self, item: Json) -> bool:
        """Returns whether a value is a message of the framework."""
        return isinstance(item, dict) and self.log.is_message(item)

    def table(self, source: Source) -> str | None:
        """Returns the table of a database that has the columns."""
        known = tables(source).items() if self.columns else ()
        return next((name for name, columns in known if self.columns <= columns), None)

    def recognise(self, source: Source) -> str | None:
        """Claims a database with the table, and a value with a history in it."""
        if source.peek.kind == "sqlite":
            return f"a table of {self.name}" if self.table(source) else None
        if source.table is None and not re.search(self.sign.encode(), _beginning(source)):
            return None
        for value in source.peek.records[:_PEEKED]:
            if self.is_message(value) or next(self.histories(value, ""), None) is not None:
                return f"messages of {self.name}"
        return None

    def read(self, source: Source) -> Iterator[Event]:
        """Yields the conversations of a document, of lines, or of a table."""
        if source.peek.kind == "sqlite":
            yield from guarded(source, self._table_rows(source))
        elif source.peek.kind == "json":
            document = source.document()
            source.count_records()
            yield from self._collected(source, [document], "file")
        else:
            yield from self._collected(source, source.records(), "")

    def _table_rows(self, source: Source) -> Iterator[Event]:
        with open_sqlite(source) as connection:
            query = f'SELECT * FROM "{self.table(source)}"'  # noqa: S608 - a table of the database
            found = [
                {**row, **as_dict(json_in_text(row.get("event_data")))}
                for row in rows(connection, query)
            ]
        source.count_records(len(found))
        found.sort(key=lambda row: str(first_of(row, "timestamp", "createdAt")))
        yield from self._collected(
            source, (Record(f"row {at}", row) for at, row in enumerate(found, 1)), ""
        )

    def _collected(
        self, source: Source, records: Iterable[Record | Problem | Json], place: str
    ) -> Iterator[Event]:
        """Yields the conversations of records, each of which is a message or has histories."""
        names: Counter[str] = Counter()
        logs: dict[str, _Log] = {}
        counts: dict[str, Counter[str]] = {}
        for record in records:
            where = record.where if isinstance(record, Record | Problem) else place
            value = record.value if isinstance(record, Record) else record
            if isinstance(value, Problem):
                yield value
                for log in logs.values():
                    log.lose(where)
            elif self.is_message(value):
                item = as_dict(value)
                group = name_of(item, self.group, "session_id", "thread_id") or "session"
                log = logs.setdefault(group, self._begun(source, group))
                counts.setdefault(group, Counter())[log.add(where, item)] += 1
            else:
                yield from self._histories_of(source, where, value, names)
        for group, log in logs.items():
            used = counts[group].pop("", 0)
            yield from log.history.conversations(used, names=names)
            yield from ignored(counts[group])

    def _begun(self, source: Source, name: str, prefix: str = "") -> _Log:
        scope = f"{source.name}/{name}"
        return self.log(SessionHistory(self.name, name[:200], scope, prefix), keys=CallKeys(scope))

    def _histories_of(
        self, source: Source, where: str, value: Json, names: Counter[str]
    ) -> Iterator[Event]:
        """Yields the conversations in a value, which is one record."""
        records = 1
        for name, model, messages in self.histories(value, where):
            log = self._begun(source, name, "" if where == "file" else f"{where} ")
            log.model = model
            for at, item in enumerate(messages):
                if self.is_message(item):
                    log.add(f"message {at}", as_dict(item))
                else:
                    log.lose(f"message {at}")
            if log.history.entries:
                yield from log.history.conversations(records, names=names)
                records = 0
        if records:
            yield Problem("no_messages", where, "no message with content", records)


READERS = tuple(
    declared(one.name, recognise=one.recognise, read=one.read)
    for one in (
        _Framework("pydantic-ai", "part_kind", _PydanticAI),
        _Framework(
            "google-adk",
            "invocation(?:Id|_id)",
            _Adk,
            frozenset({"session_id", "invocation_id", "author"}),
        ),
        _Framework("llamaindex", "additional_kwargs", _LlamaIndex),
        _Framework("haystack", r'meta\\*"\s*:\s*\{', _Haystack),
        _Framework("autogen", r'Message\\*"', _AutoGen),
        _Framework(
            "agno",
            "_to(?:ol_call|_agent_memory)",
            _Agno,
            frozenset({"session_id", "runs"}),
        ),
        _Framework(
            "mastra",
            r'format\\*"\s*:\s*[23]\b',
            _Mastra,
            frozenset({"thread_id", "resourceId", "content"}),
            "threadId",
        ),
        _Framework("dify", "conversation_id", _Dify, group="conversation_id"),
    )
)
