"""Reads sessions of Grok Build, xAI's CLI. Source: docs/formats/grok-cli.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Context,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolResult,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.response_items import thoughts
from builder.readers.toolkit.chat_messages import chat_message, content_block
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_str,
    json_in_text,
    name_or_none,
    tuple_or_none,
    unknown_code,
)
from builder.readers.toolkit.rows import RecordLog, add_records, objects, refused
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.readers.traces.parts import read_call
from builder.sources.source import Source

_NAME = "grok-cli"

_ROWS = "chat_history.jsonl"
_TOOLS, _EVENTS, _UPDATES = "tool_definitions.json", "events.jsonl", "updates.jsonl"
_FILES = frozenset({
    _ROWS, _TOOLS, _EVENTS, _UPDATES, "summary.json", "system_prompt.txt", "prompt_context.json",
    "signals.json", "usage.json", "rewind_points.jsonl", "plan.json", "title_refresh_idx",
})  # fmt: skip
"""Files of a session's folder; only the first four are read."""

_FOREIGN = frozenset({"uuid", "message", "timestamp", "payload", "role", "subtype", "session_id"})
"""Keys of the lines of other agents."""
_HUMAN = frozenset({"", "interjection"})
"""Reasons of rows that a person typed; a row with any other reason is the program's."""


def _recognise(source: Source) -> str | None:
    """Claims rows with type and content, without the keys of other agents' lines."""
    if source.peek.kind == "folder":
        rows = next((item for item in source.members if item.name == _ROWS), None)
        if rows is None or not any(item.name == "summary.json" for item in source.members):
            return None
        known = any(_is_row(value) or _is_old(value) for value in rows.peek.objects)
        return "chat_history.jsonl and summary.json" if known else None
    if any(map(_is_row, source.peek.objects)):
        return "rows with type and content only"
    return "a session's notifications" if any(map(_is_update, source.peek.objects)) else None


def _is_update(value: dict[str, Json]) -> bool:
    """Returns whether a record is a notification for the screen (ACP)."""
    params = as_dict(value.get("params"))
    own = "eventId" in as_dict(params.get("_meta")) or "_x.ai/" in as_str(value.get("method"))
    return own and isinstance(as_dict(params.get("update")).get("sessionUpdate"), str)


def _is_row(value: dict[str, Json]) -> bool:
    kind, content = value.get("type"), value.get("content")
    if not isinstance(kind, str) or not value.keys().isdisjoint(_FOREIGN):
        return False
    if kind == "user":
        return isinstance(content, list)
    if kind == "tool_result":
        return isinstance(content, str) and "tool_call_id" in value
    return kind in ("system", "assistant") and isinstance(content, str)


def _is_old(value: dict[str, Json]) -> bool:
    return "type" not in value and isinstance(value.get("role"), str)


def _read(source: Source) -> Iterator[Event]:
    if source.peek.kind != "folder" and any(map(_is_update, source.peek.objects)):
        detail = "updates.jsonl has results as the screen got them, not as the model read them"
        yield from refused(source, detail)
        return
    session = source.name.rpartition("/")[2].removesuffix(".jsonl") or "session"
    rows = source
    files = {member.name: member for member in source.members}
    for name, member in files.items():
        if name == _ROWS:
            rows = member
        else:
            member.count_records()
            yield Ignored("other_file")

    def file(name: str) -> Source | None:
        if files:  # the copy's records are not counted
            return files[name].unread_copy() if name in files else None
        return source.sibling(name)

    tools_file = file(_TOOLS)
    document = tools_file.document() if tools_file is not None else None
    tools = None if isinstance(document, Problem) else tuple_or_none(document)
    failed = {*_failed(file(_EVENTS)), *_failed(file(_UPDATES))}
    replay = _Rows(SessionHistory(_NAME, session, source.name), set(), tools, failed)
    records = yield from add_records(replay, objects(rows.json_lines(), "a row that is "))
    yield from replay.history.conversations(records)


def _failed(source: Source | None) -> Iterator[str]:
    """Yields the ids of calls that failed, by the events or updates of a session."""
    for record in objects(source.json_lines()) if source is not None else ():
        if isinstance(record, Problem):
            continue
        _, value = record
        update = as_dict(value, "params", "update")
        if value.get("type") == "tool_completed" and value.get("outcome") == "error":
            yield as_str(value.get("tool_call_id"))
        elif update.get("sessionUpdate") == "tool_call_update" and update.get("status") == "failed":
            yield as_str(update.get("toolCallId"))


@dataclass(slots=True)
class _Rows(RecordLog):
    """The rows so far.

    thoughts  those before the next answer
    server    the next answer used a tool of the server
    system    the first system row
    """

    tools: tuple[Json, ...] | None = None
    failed: set[str] = field(default_factory=set)
    system: str | None = None
    thoughts: list[Part] = field(default_factory=list)
    server: bool = False

    def add(self, where: str, row: dict[str, Json]) -> str:
        kind = row.get("type")
        if _is_old(row):
            message = chat_message(row)
            if message.role == "system":
                self._system(where, as_str(row.get("content")))
            elif message.role == "assistant":
                self._finish(where, message, name_or_none(row.get("model_id")))
            else:
                self.history.append(message, where)
        elif kind == "system":
            self._system(where, as_str(row.get("content")))
        elif kind == "user":
            self._user(where, row)
        elif kind == "reasoning":
            self.thoughts += thoughts(row)
        elif kind == "backend_tool_call":
            self.server = True
        elif kind == "assistant":
            self._answer(where, row)
        elif kind == "tool_result":
            call_id = name_or_none(row.get("tool_call_id"))
            text = as_str(row.get("content"))
            content: list[Content] = [Text(text)] if text else []
            content += [Media("image") for _ in as_dicts(row.get("images"))]
            result = ToolResult(tuple(content), call_id, is_error=call_id in self.failed)
            self.history.append(Message("tool", (result,)), where)
        else:
            if carries_content(row):
                self.history.append(unknown_message(kind), where)
            return unknown_code(kind)
        return ""

    def _system(self, where: str, text: str) -> None:
        if self.system is None and not self.history.entries:
            self.system = text
        elif text:
            self.history.append(Message("system", (Text(text),)), where)

    def _user(self, where: str, row: dict[str, Json]) -> None:
        self.thoughts, self.server = [], False  # thoughts without an answer are not sent again
        if row.get("prior_turn_interrupt") is not None and self.history.entries:
            last = self.history.entries[-1]
            if last.message.role == "assistant" and not calls(last.message):
                last.message = replace(last.message, untrained="aborted")
        reason = row.get("synthetic_reason")
        blocks = as_dicts(row.get("content"))
        texts = [as_str(block.get("text")) for block in blocks]
        injected = as_str(reason) not in _HUMAN or (reason is not None and not as_str(reason))
        if "prompt_index" not in row and texts and texts[0].startswith("<user_info>"):
            injected = True
        parts = tuple(content_block(block, harness=injected) for block in blocks)
        if parts:
            self.history.append(Message("user", parts), where)

    def _answer(self, where: str, row: dict[str, Json]) -> None:
        parts = [*self.thoughts]
        if not parts and (thought := as_str(row, "reasoning", "text")):
            parts = [Reasoning(thought)]
        text = as_str(row.get("content"))
        parts += [Text(text)] if text else []
        parts += map(read_call, as_dicts(row.get("tool_calls")))
        untrained = "server_tool" if self.server else cut_code(row)
        self.thoughts, self.server = [], False
        model = name_or_none(row.get("model_id"))
        self._finish(where, Message("assistant", tuple(parts), where, untrained), model)

    def _finish(self, where: str, message: Message, model: str | None) -> None:
        if not message.parts:
            return
        lacking = {*self.missing, *(["system"] if self.system is None else [])}
        lacking |= {"tools"} if self.tools is None else set()
        context = Context.lacking(lacking, "rendered")
        head = RequestHead(self.system, self.tools, model)
        self.history.append(replace(message, context=context), where, head)
        # The program sends {} in place of arguments that are no JSON.
        if any(isinstance(json_in_text(call.arguments), str) for call in calls(message)):
            self.missing |= {"history"}
        self.missing |= {"server_tool"} if message.untrained == "server_tool" else set()


READER = declared(
    _NAME,
    recognise=_recognise,
    read=_read,
    is_store=lambda folder: folder.is_file(_ROWS) and folder.is_file("summary.json"),
    holds=_FILES.__contains__,
    exclusive=False,
)
