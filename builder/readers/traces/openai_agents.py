"""The OpenAI Agents SDK: spans of its traces, and its sessions in SQLite."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from builder.conversation import Conversation, Event, Ignored, Json, Message, ToolCall, ToolResult
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.openai_responses import ItemReading
from builder.readers.toolkit.chat_messages import text_or_data
from builder.readers.toolkit.comparison import calls, mark_repeats, with_session_keys
from builder.readers.toolkit.history import upwards
from builder.readers.toolkit.made_up import says_unknown
from builder.readers.toolkit.narrow import (
    as_dict,
    as_list,
    as_str,
    first_of,
    name_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import span, unique_name
from builder.readers.toolkit.rows import collected, missing_records
from builder.readers.traces.any_vendor import read_outcome, read_request
from builder.readers.traces.parts import PartNotes
from builder.readers.traces.steps import ModelCall, Step, TraceBuffer
from builder.readers.traces.tool_runs import ToolRun, ToolRuns
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import json_column, read_sessions, rows, session_sizes, tables

_COLUMNS = frozenset({"id", "session_id", "message_data"})
_BRANCHES = frozenset({"session_id", "message_id", "branch_id", "sequence_number"})
_ENCRYPTED = "__enc__"
_Row = tuple[str, dict[str, Json]]


def _session_table(source: Source) -> str | None:
    return next((name for name, columns in tables(source).items() if columns >= _COLUMNS), None)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _ids(source: Source) -> str:
    table = _quoted(_session_table(source) or "")
    return f"SELECT DISTINCT session_id FROM {table} ORDER BY 1"  # noqa: S608 - a quoted name


def _item_sizes(source: Source) -> Sequence[int]:
    table = _session_table(source)
    if table is None:
        return ()
    size = "sum(length(CAST(message_data AS BLOB)))"
    query = f"SELECT session_id, {size} FROM {_quoted(table)} GROUP BY 1"  # noqa: S608 - quoted
    return session_sizes(source, _ids(source), query)


def _session(source: Source, connection: sqlite3.Connection, session: str) -> Iterator[Event]:
    table = _quoted(_session_table(source) or "")
    query = f"SELECT id, message_data FROM {table}"  # noqa: S608 - a quoted name
    rows_by_id: dict[Json, _Row] = {}
    lost: list[Problem] = []
    hidden = 0
    for row in rows(connection, f"{query} WHERE session_id = ? ORDER BY id", session):
        source.count_records()
        where = f"session {session[:200]} item {row.get('id')}"
        item = json_column(row.get("message_data"), where)
        if isinstance(item, dict) and _ENCRYPTED in item:
            hidden += 1
        elif isinstance(item, dict):
            source.seen(where, item)
            rows_by_id[row.get("id")] = where, item
        else:
            detail = "an item that is not an object"
            lost.append(item if isinstance(item, Problem) else Problem("not_object", where, detail))
    yield from lost
    if hidden:
        detail = "items that the application encrypted"
        lost.append(Problem("encrypted_context", f"session {session[:200]}", detail, hidden))
        yield lost[-1]
    branches = _branches(source, connection, session, rows_by_id)
    counted: set[Json] = set()
    targets: set[str] = set()
    names: Counter[str] = Counter()
    for name, ids in branches:
        items = [rows_by_id[one] for one in ids if one in rows_by_id]
        new = {one for one in ids if one in rows_by_id} - counted
        counted |= new
        messages = tuple(mark_repeats(_messages(items), targets))
        if not messages:
            if new:
                yield Ignored("no_messages", len(new))
            continue
        keyed = with_session_keys("openai-agents", messages, f"{source.name}/{session}")
        yield Conversation(
            id=unique_name(f"{session}/{name}" if name else session, names),
            record=span(items[0][0], items[-1][0]),
            messages=tuple(keyed),
            model=next((one.model for one in reversed(messages) if one.model), None),
            records=len(new),
            problems=missing_records(lost),
        )
    if left := len(rows_by_id) - len(counted):
        yield Ignored("not_in_conversation", left)


def _branches(
    source: Source, connection: sqlite3.Connection, session: str, rows_by_id: dict[Json, _Row]
) -> list[tuple[str, list[Json]]]:
    """Returns (name, ids of items in order) of each branch, the latest first."""
    table = next((name for name, has in tables(source).items() if has >= _BRANCHES), None)
    if table is None:
        return [("", list(rows_by_id))]
    query = (
        f"SELECT branch_id, message_id FROM {_quoted(table)} WHERE session_id = ?"  # noqa: S608
        " ORDER BY branch_id, sequence_number"
    )
    branches: dict[str, list[Json]] = {}
    for row in rows(connection, query, session):
        branches.setdefault(str(row.get("branch_id")), []).append(row.get("message_id"))
    order = {one: at for at, one in enumerate(rows_by_id)}
    latest = sorted(branches, key=lambda name: -max(order.get(one, -1) for one in branches[name]))
    several = len(branches) > 1
    return [(name if several else "", branches[name]) for name in latest] or [
        ("", list(rows_by_id))
    ]


def _messages(items: Sequence[_Row]) -> Iterator[Message]:
    for (response, answered), group in groupby(items, lambda one: _response(one[1])):
        listed = list(group)
        messages = ItemReading().read([item for _, item in listed]).messages
        provider = as_dict(listed[0][1].get("provider_data"))
        model = name_or_none(provider.get("model"))
        for message in messages:
            is_answer = answered and message.role == "assistant"
            turn = (response or listed[0][0]) if is_answer else None
            yield replace(message, turn=turn, model=model) if is_answer else message


def _response(item: dict[str, Json]) -> tuple[str | None, bool]:
    kind, role = as_str(item.get("type")), item.get("role", "assistant")
    response = name_or_none(as_dict(item.get("provider_data")).get("response_id"))
    return response, role == "assistant" and not kind.endswith("_output")


_CUT = "... [truncated]"
"""The end of a text that the SDK's exporter cut at 100,000 bytes."""
_MAX_DEPTH = 8


def _model_call(where: str, data: dict[str, Json], error: dict[str, Json]) -> ModelCall | None:
    """Returns the model call that a span logs; None if it has neither request nor answer."""
    response = as_dict(data.get("response"))
    sent, answered = data.get("input"), first_of(data, "output", "response")
    if sent is None and answered is None:
        return None
    notes, answer_notes = PartNotes(), PartNotes()
    body: dict[str, Json] = {key: response.get(key) for key in ("instructions", "tools")}
    body["input"] = sent
    request, outcome = read_request(body, notes), read_outcome(answered, answer_notes)
    problems: tuple[Problem, ...] = ()
    if _is_cut(sent) or _is_cut(answered):
        detail = "the exporter cut a text at its limit"
        problems = (Problem("partial_history", where, detail, records=0),)
    return ModelCall(
        messages=request.messages,
        outcome=outcome,
        notes=notes,
        answer_notes=answer_notes,
        tools=request.tools,
        model=name_of(data, "model") or name_of(response, "model"),
        failed=bool(error),
        error=as_str(error.get("message")),
        response=outcome.id or name_of(data, "response_id"),
        previous=outcome.previous,
        problems=problems,
    )


def _is_cut(value: Json, depth: int = 0) -> bool:
    if isinstance(value, str):
        return value.endswith(_CUT)
    if isinstance(value, dict) and value.get("truncated") is True and "preview" in value:
        return True
    inner = value if isinstance(value, list) else [*as_dict(value).values()]
    return depth < _MAX_DEPTH and any(_is_cut(one, depth + 1) for one in inner)


_NAME = "openai-agents"

_LISTS = ("data", "spans", "items")
"""Keys of objects that hold spans: a request to the service, a dump of one trace."""
_MODELS = frozenset({"generation", "response"})
_KINDS = frozenset({
    "agent", "function", "handoff", "guardrail", "mcp_tools", "custom", "task", "turn",
    "transcription", "speech", "speech_group",
})  # fmt: skip


def _recognise(source: Source) -> str | None:
    if _session_table(source):
        return "a table of session items (session_id, message_data)"
    for value in source.peek.objects:
        if _is_item(value):
            return "objects of type trace.span"
        if any(any(map(_is_item, as_list(value.get(key))[:20])) for key in _LISTS):
            return "lists of objects of type trace.span"
    return None


def _is_item(value: Json) -> bool:
    item = as_dict(value)
    kind = item.get("object")
    return (kind == "trace.span" and isinstance(item.get("span_data"), dict)) or (
        kind == "trace" and "workflow_name" in item
    )


def _read(source: Source) -> Iterator[Event]:
    if source.peek.kind == "sqlite":
        yield from read_sessions(source, _ids(source), _session)
    else:
        yield from collected(source.records(), _Collector(source))


class _Collector(TraceBuffer):
    """Collects spans into their traces; traces of one group are one session."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.runs = ToolRuns("function", by_arguments=True)
        self.bare: set[str] = set()  # ids of agents without tools
        self.origins: dict[str, str] = {}  # the traces of model calls by their place
        self.undefined: set[tuple[str, str]] = set()  # traces, and tools that their agents lack

    def take(self, record: Record) -> Iterator[Event]:
        """Reads one record, and counts the records inside it."""
        value = as_dict(record.value)
        where = "" if record.where == "file" else record.where
        if isinstance(value.get("span_data"), dict):
            yield from self._span(where or record.where, value)
        else:
            listed = next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
            is_trace = value.get("object") == "trace" or "workflow_name" in value
            if is_trace:
                facts = self.trace(name_of(value, "id", "trace_id") or "")
                facts.session = facts.session or as_str(value.get("group_id"))
            known = is_trace or listed is not None
            code = ("trace" if is_trace else "page") if known else unknown_code(value.get("object"))
            yield Ignored(code)
            for item in self.source.counted(as_list(listed), f"{where}[{{}}]"):
                yield from self.take(item)

    def _span(self, where: str, span: dict[str, Json]) -> Iterator[Event]:
        data = as_dict(span["span_data"])
        kind, name = as_str(data.get("type")), name_of(span, "id", "span_id")
        trace = as_str(span.get("trace_id"))
        where = unique_name(f"span {name[:200]}" if name else where, self.names)
        error = as_dict(span.get("error"))
        unknown = as_str(error, "data", "tool_name")
        message = as_str(error.get("message"))
        if unknown and (message == "Tool not found" or says_unknown(message, unknown)):
            self.undefined.add((trace, unknown))
        call = _model_call(where, data, error) if kind in _MODELS else None
        if kind in _MODELS and call is None:
            detail = "the exporter left the texts out (Responses API, or without sensitive data)"
            yield Problem("no_content", where, detail)
            return
        order = as_str(span.get("started_at"))
        if kind == "function" and data.get("input") is not None:
            tool, content = as_str(data.get("name")), text_or_data(data.get("output"))
            result = ToolResult(content, name=tool, is_error=bool(error))
            made = ToolCall(tool, data.get("input"))
            self.runs.add(ToolRun(where, where, trace, made, result, failed=bool(error)))
            return
        if kind == "agent" and data.get("tools") == [] and not data.get("handoffs") and name:
            self.bare.add(name)
        if call is not None:
            self.origins[where] = trace
        nests = kind in ("agent", "function")
        code = kind if kind in _KINDS else unknown_code(data.get("type"))
        step = Step(where, name, name_of(span, "parent_id"), order, code, nests=nests, call=call)
        yield from self.add(trace, "", step)

    def _take(self, trace_id: str, steps: Sequence[Step]) -> Iterator[Event]:
        parents = {step.id: step.parent for step in steps}
        completed = [self._completed_step(trace_id, step, parents) for step in steps]
        for event in super()._take(trace_id, completed):
            yield self._completed(event)

    def rest(self) -> Iterator[Event]:
        """Yields the events that are still open, then runs of tools that no request contains."""
        for event in super().rest():
            yield self._completed(event)
        yield from self.runs.events()

    def _completed_step(
        self, trace: str, step: Step, parents: dict[str | None, str | None]
    ) -> Step:
        """Returns the step, its request with failed results and with what its agent offered."""
        if step.call is None:
            return step
        is_bare = any(one in self.bare for one in upwards(step.parent, parents.get, {step.id}))
        tools = () if step.call.tools is None and is_bare else step.call.tools
        answers = [one.message for one in step.call.outcome.answers]
        self.runs.note(trace, [*step.call.messages, *answers])
        # A later trace continues the conversation: its requests have results of earlier ones.
        messages = self.runs.with_errors(None, step.call.messages)
        return replace(step, call=replace(step.call, tools=tools, messages=messages))

    def _completed(self, event: Event) -> Event:
        """Adds results that no further request sent back, from function spans."""
        if not isinstance(event, Conversation) or not event.messages:
            return event
        trace = self.origins.get(event.record.rpartition(" to ")[2], "")
        if any((trace, call.name) in self.undefined for call in calls(event.messages[-1])):
            last = replace(event.messages[-1], untrained="undefined_tool")
            event = replace(event, messages=(*event.messages[:-1], last))
        completed = self.runs.results(trace, event.messages[-1])
        if not completed:
            return event
        changes = {**event.changes, "results_from_tool_spans": len(completed)}
        messages = (*event.messages, Message("tool", completed))
        return replace(event, messages=messages, changes=changes)


READER = declared(_NAME, recognise=_recognise, read=_read, item_sizes=_item_sizes)
