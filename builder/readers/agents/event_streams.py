"""Reads what agents write piece by piece: printed streams of events, Letta Code's transcripts.

Source: docs/formats/event-streams.md, docs/formats/letta-code.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from builder.conversation import (
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.anthropic import read_part
from builder.readers.toolkit.chat_messages import content, joined, qualified, text_or_data
from builder.readers.toolkit.history import SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_list,
    as_str,
    first_of,
    model_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.rows import RecordLog, add_records, objects, refused
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.source import Record, Source


@dataclass(slots=True)
class _Stream(RecordLog):
    """The events so far. An answer is open until the user or, after its results, the model speaks.

    parts, results  of the open answer, which begins at `where`
    """

    IN_PIECES: ClassVar[bool] = True
    """Texts are pieces, and an answer that is open where the stream ends is cut off."""
    model: str | None = None
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    where: str = ""

    def say(self, where: str, *parts: Part) -> None:
        """Adds parts to the open answer, or begins another one after results."""
        if self.results:
            self.end()
        self.where = self.where or where
        self.parts += (
            part for part in parts if not isinstance(part, Text | Reasoning) or part.text
        )

    def end(self, code: str | None = None, *cut: Part) -> None:
        """Ends the open answer; `code`, `cut`: it is not whole, unless all calls have results."""
        calls = {part.id for part in self.parts if isinstance(part, ToolCall)}
        if calls and calls <= {one.call_id for one in self.results}:
            code, cut = None, ()
        if self.parts:
            parts = joined(self.parts) if self.IN_PIECES else tuple(self.parts)
            self.history.answer(self.where, (*parts, *cut), self.missing, self.model, code)
        self.history.put(self.where, "tool", self.results)
        self.parts, self.results, self.where = [], [], ""

    def begin(self, value: dict[str, Json]) -> None:
        """Notes the session of an event; another one than before begins without its history."""
        if self.history.is_other(value.get("session_id")):
            self.end("truncated")
            self.history.replace()

    def lose(self, where: str) -> None:
        """Notes that an event cannot be read: the answer beside it may lack it."""
        self.end(None, Unparsed("", "truncated_answer"))
        RecordLog.lose(self, where)

    def ask(self, where: str, role: str, value: Json) -> None:
        """Adds a message of the user or the program."""
        self.end()
        self.history.append(Message(role[:40], content(value)), where)

    def unknown(self, where: str, value: dict[str, Json]) -> str:
        """Returns the code for ignoring an event of an unknown type."""
        if carries_content(value):
            self.end()
            self.history.append(unknown_message(value.get("type")), where)
        return unknown_code(value.get("type"))


# -- Gemini CLI --output-format stream-json --------------------------------------------------------


def _is_gemini(item: dict[str, Json]) -> bool:
    kind, is_text = item.get("type"), isinstance(item.get("content"), str)
    if kind == "init":
        return {"session_id", "model", "timestamp"} <= item.keys() and "uuid" not in item
    if kind in ("tool_use", "tool_result"):
        return {"tool_id", "timestamp"} <= item.keys()
    return kind == "message" and is_text and {"role", "timestamp"} <= item.keys()


class _Gemini(_Stream):
    def add(self, where: str, value: dict[str, Json]) -> str:
        self.missing |= {"reminders", "reasoning"}
        kind, role, call_id = as_str(value.get("type")), value.get("role"), value.get("tool_id")
        if kind == "message" and role == "assistant":
            self.say(where, Text(as_str(value.get("content"))))
        elif kind == "message":
            self.ask(where, as_str(role), value.get("content"))
        elif kind == "tool_use":
            name = as_str(value.get("tool_name"))
            self.say(where, ToolCall(name, value.get("parameters"), name_or_none(call_id)))
        elif kind == "tool_result":
            shown, failed = first_of(value, "output", "error"), value.get("status") == "error"
            result = ToolResult(text_or_data(shown), name_or_none(call_id), is_error=failed)
            self.results.append(result)
        elif kind in ("init", "result"):
            self.begin(value)
            self.model = name_or_none(value.get("model")) or self.model
            if kind == "result":
                self.end(None if value.get("status") == "success" else "aborted")
            return "metadata"
        else:
            return "error_message" if kind == "error" else self.unknown(where, value)
        return ""


# -- cursor-agent --output-format stream-json ------------------------------------------------------


def _is_cursor(item: dict[str, Json]) -> bool:
    """Returns whether a line is Cursor's; Claude Code's have no `tool_call` and have a uuid."""
    if item.get("type") == "tool_call":
        return isinstance(item.get("tool_call"), dict) and "call_id" in item
    return item.get("type") == "system" and "apiKeySource" in item and "uuid" not in item


class _Cursor(_Stream):
    def add(self, where: str, value: dict[str, Json]) -> str:
        kind, body = as_str(value.get("type")), as_dict(value.get("message")).get("content")
        if kind == "user":
            self.ask(where, "user", body)
        elif kind == "assistant":
            texts = [part for part in content(body) if isinstance(part, Text)]
            sent = [part.text for part in self.parts if isinstance(part, Text)]
            if sent and not self.results and "".join(part.text for part in texts) == "".join(sent):
                return "repeated_message"  # the whole text after its streamed pieces
            self.say(where, *texts)
        elif kind == "thinking":
            self.say(where, Reasoning(as_str(value.get("text"))))
        elif kind == "tool_call":
            self._call(where, value)
        elif kind in ("system", "result"):
            self.begin(value)
            self.model = model_of(value, "model") or self.model
            if kind == "result":
                self.end("aborted" if value.get("is_error") is True else None)
            return "metadata"
        else:
            return self.unknown(where, value)
        return ""

    def _call(self, where: str, value: dict[str, Json]) -> None:
        """Adds a call where it starts, and its result where it is completed."""
        logged = as_dict(value.get("tool_call"))
        name = next((key for key, item in logged.items() if isinstance(item, dict)), "")
        call = as_dict(logged.get(name))
        call_id = as_str(value.get("call_id")) or as_str(logged.get("toolCallId"))
        name = as_str(call.get("name")) if name == "function" else name
        if all(not isinstance(part, ToolCall) or part.id != call_id for part in self.parts):
            self.say(where, ToolCall(name, first_of(call, "args", "arguments"), call_id))
        if value.get("subtype") == "completed" and "result" in call:
            outcome = as_dict(call["result"])
            shown = text_or_data(outcome.get("success", call["result"]))
            failed, is_denied = "success" not in outcome, "rejected" in outcome
            result = ToolResult(shown, call_id, name, is_error=failed, is_denied=is_denied)
            self.results.append(result)

    def end(self, code: str | None = None, *cut: Part) -> None:
        """Ends the open answer; the log has results as the client keeps them."""
        has_results = bool(self.results)
        _Stream.end(self, code, *cut)
        self.missing |= {"history"} if has_results else set()


# -- Claude's Managed Agents -----------------------------------------------------------------------

_CALLS = ("agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use")
_RESULTS = ("agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result")
_SCREEN = ("session.", "span.", "user.tool_confirmation")


def _managed_event(item: dict[str, Json]) -> dict[str, Json]:
    """Returns the event in a record: itself, or under `raw`; {} for other records."""
    event = as_dict(item.get("raw")) or item
    is_known = as_str(event.get("type")).startswith(("user.", "agent.", "session.", "span."))
    return event if is_known and as_str(event.get("id")).startswith("sevt_") else {}


class _Managed(_Stream):
    IN_PIECES: ClassVar[bool] = False

    def add(self, where: str, value: dict[str, Json]) -> str:
        event = _managed_event(value)
        kind = as_str(event.get("type"))
        if kind == "agent.message":
            self.say(where, *content(event.get("content")))
        elif kind in _CALLS:
            server = event.get("mcp_server_name")
            name = qualified(f"mcp__{server}" if server else None, as_str(event.get("name")))
            self.say(where, ToolCall(name, event.get("input"), name_or_none(event.get("id"))))
        elif kind in _RESULTS:
            call_id = next((event[key] for key in event if key.endswith("tool_use_id")), None)
            result = read_part({**event, "type": "tool_result", "tool_use_id": call_id})
            self.results += [result] if isinstance(result, ToolResult) else []
        elif kind in ("user.message", "system.message"):
            self.ask(where, kind.partition(".")[0], event.get("content"))
        elif kind == "user.define_outcome":  # the words around it and its rubric are not logged
            self.ask(where, "user", event.get("description"))
            self.missing |= {"reminders"}
        elif kind == "agent.thinking":
            self.missing |= {"reasoning"}  # its text is not in the event
            return "thinking"
        elif kind == "agent.thread_context_compacted":
            self.end()
            self.history.replace()
            self.missing |= {"history"}
        elif kind == "user.interrupt":
            self.end("aborted")
        elif kind.startswith(_SCREEN):
            if kind in ("span.model_request_start", "session.status_idle"):
                self.end()
            self.model = name_or_none(as_dict(event.get("agent")).get("model")) or self.model
            return "metadata"
        else:
            return self.unknown(where, event or value)
        return ""


# -- transcripts of Letta Code: a tool_call has the call and its result ----------------------------

_LINES = frozenset({"user", "assistant", "reasoning", "tool_call", "error"})


def _is_line(item: dict[str, Json]) -> bool:
    return as_str(item.get("kind")) in _LINES and "captured_at" in item


def _is_printed(item: dict[str, Json]) -> bool:
    """Returns whether a line is a message that `--output-format stream-json` prints."""
    return item.get("type") == "message" and isinstance(item.get("message_type"), str)


@dataclass(slots=True)
class _Letta(_Stream):
    """The lines so far. `response`: that of the open answer, if the log has one.

    `is_cut`: the open answer stands beside a line that cannot be read, which may be a piece of it.
    """

    IN_PIECES: ClassVar[bool] = False

    seen: set[str] = field(default_factory=set)
    response: str | None = None
    is_cut: bool = False

    def lose(self, where: str) -> None:
        """Notes that a line cannot be read: the answer beside it may lack it."""
        self.is_cut = True
        self.end()
        RecordLog.lose(self, where)
        self.is_cut = True

    def add(self, where: str, value: dict[str, Json]) -> str:
        self.missing |= {"reminders"}
        kind, text = as_str(value.get("kind")), as_str(value.get("text"))
        line = as_str(value.get("source_line_id"))
        if line in self.seen:
            return "repeated_record"
        self.seen |= {line} - {""}
        if kind == "error" or kind not in _LINES:
            return "error_message" if kind == "error" else unknown_code(value.get("kind"))
        if kind == "user":
            self.end()
            self.is_cut = False
            self.history.put(where, "user", [Text(text)] if text.strip() else [])
            return ""
        self._continue(name_or_none(value.get("source_message_id")), is_call=kind == "tool_call")
        self.where = where
        if kind == "tool_call":
            self._call(value)
        elif text.strip():
            self.parts.append(Reasoning(text) if kind == "reasoning" else Text(text))
        return ""

    def _continue(self, response: str | None, *, is_call: bool) -> None:
        """Ends the open answer, unless the next piece belongs to it."""
        same = response is not None and response == self.response
        follows = is_call and response is None and not self.results
        if not same and not follows and (self.parts or self.results):
            had_calls = bool(self.results) or any(isinstance(p, ToolCall) for p in self.parts)
            self.end()
            if is_call and response is None and had_calls:
                self.missing.add("history")  # perhaps it was made together with the call before
        self.response = response or self.response if follows else response

    def _call(self, value: dict[str, Json]) -> None:
        name, result = name_or_none(value.get("name")), value.get("resultText")
        call_id, arguments = name_or_none(value.get("source_line_id")), value.get("argsText")
        if name is None:
            self.parts.append(Unparsed(as_str(arguments), "bad_call"))
            return
        self.parts.append(ToolCall(name, arguments, call_id))
        if isinstance(result, str):
            failed = value.get("resultOk") is False
            self.results.append(ToolResult((Text(result),), call_id, name, is_error=failed))

    def end(self, code: str | None = None, *cut: Part) -> None:
        if self.parts:
            code, self.is_cut = "truncated" if self.is_cut else code, False
            self.history.answer(self.where, (*self.parts, *cut), self.missing, untrained=code)
        for result in self.results:
            self.history.put(self.where, "tool", [result])
        self.parts, self.results, self.response = [], [], None


def _recognise_letta(source: Source) -> str | None:
    if any(map(_is_printed, source.peek.objects)):
        return "messages of Letta Code's stream-json (refused)"
    return "lines with kind and captured_at" if any(map(_is_line, source.peek.objects)) else None


def _read_letta(source: Source) -> Iterator[Event]:
    if any(map(_is_printed, source.peek.objects)):
        detail = "Letta Code's stream-json has pieces of answers without the prompts before them"
        yield from refused(source, detail)
        return
    name = source.name.rpartition("/")[0].rpartition("/")[2] or "conversation"
    log = _Letta(SessionHistory("letta-code", name, source.name))
    records = yield from add_records(log, objects(source.records(), "a line that is "))
    log.end()
    yield from log.history.conversations(records)


# -- readers ---------------------------------------------------------------------------------------


def _page(value: Json) -> list[Json]:
    """Returns the events of a page of an API, or of a session with its events."""
    return as_list(first_of(as_dict(value), "data", "events"))


def _recognise(is_event: Callable[[dict[str, Json]], object], source: Source) -> str | None:
    first = source.peek.objects[:3]
    paged = (as_dict(one) for value in first[:1] for one in _page(value)[:3])
    return "events of a stream" if any(map(is_event, [*first, *paged])) else None


def _read(name: str, stream: type[_Stream], source: Source) -> Iterator[Event]:
    document = source.document() if source.peek.kind == "json" else None
    listed = _page(document) if not isinstance(document, Problem) else []
    records: Iterator[Record | Problem] = source.counted(listed) if listed else source.records()
    session = source.name.rpartition("/")[2].partition(".")[0] or "session"
    log = stream(SessionHistory(name, session, source.name))
    count = yield from add_records(log, objects(records, "an event that is "))
    log.end("truncated" if log.IN_PIECES else None)
    yield from log.history.conversations(count)


READERS = (
    declared("letta-code", recognise=_recognise_letta, read=_read_letta),
    *(
        declared(name, recognise=partial(_recognise, is_event), read=partial(_read, name, stream))
        for name, stream, is_event in (
            ("gemini-stream-json", _Gemini, _is_gemini),
            ("cursor-stream-json", _Cursor, _is_cursor),
            ("managed-agents", _Managed, _managed_event),
        )
    ),
)
