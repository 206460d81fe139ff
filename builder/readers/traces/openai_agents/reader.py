"""Reads the OpenAI Agents SDK: spans as its exporters write them, and sessions in SQLite.

Source: docs/formats/openai-agents.md. A `generation` span has a whole request and its answer. A
`response` span (Responses API) has only ids, unless a processor added the texts. Function spans
repeat results; they have no id of the call, so they are found by name and arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from builder.conversation import Conversation, Event, Ignored, Json, Message, ToolResult
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.call_keys import with_request_keys
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.links import upwards
from builder.readers.toolkit.narrow import (
    as_dict,
    as_list,
    as_str,
    name_of,
    unknown_code,
)
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import collected
from builder.readers.traces.openai_agents.sessions import (
    item_sizes,
    read_sessions_of,
    session_table,
)
from builder.readers.traces.openai_agents.spans import (
    ToolRun,
    is_unknown_tool,
    model_call,
    run_of,
    with_errors,
)
from builder.readers.traces.platforms.model_call import Step
from builder.readers.traces.platforms.steps import TraceBuffer
from builder.sources.source import Record, Source

NAME = "openai-agents"

_LISTS = ("data", "spans", "items")
"""Keys of objects that hold spans: a request to the service, a dump of one trace."""
_MODELS = frozenset({"generation", "response"})


def recognise(source: Source) -> str | None:
    """Claims traces and spans, objects with a list of them, and tables of sessions."""
    if session_table(source):
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


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of the source's traces or sessions."""
    if source.peek.kind == "sqlite":
        yield from read_sessions_of(source)
    else:
        yield from collected(source.records(), _Collector(source))


class _Collector(TraceBuffer):
    """Collects spans into their traces; traces of one group are one session."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.runs: dict[str, list[ToolRun]] = {}  # by trace
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
        if unknown and is_unknown_tool(as_str(error.get("message")), unknown):
            self.undefined.add((trace, unknown))
        call = model_call(where, data, error) if kind in _MODELS else None
        if kind in _MODELS and call is None:
            detail = "the exporter left the texts out (Responses API, or without sensitive data)"
            yield Problem("no_content", where, detail)
            return
        order = as_str(span.get("started_at"))
        if kind == "function" and data.get("input") is not None:
            self.runs.setdefault(trace, []).append(run_of(where, trace, data, error))
            return
        if kind == "agent" and data.get("tools") == [] and not data.get("handoffs") and name:
            self.bare.add(name)
        if call is not None:
            self.origins[where] = trace
        nests = kind in ("agent", "function")
        step = Step(
            where,
            name,
            name_of(span, "parent_id"),
            order,
            _code(kind, data),
            nests=nests,
            call=call,
        )
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
        for run in (run for runs in self.runs.values() for run in runs):
            if run.known:
                yield Ignored("function")
                continue
            pair = [Message("assistant", (run.call,)), Message("tool", (run.result,))]
            detail = "a tool's run; the request that called it is not in the log"
            yield Conversation(
                id=f"{run.trace}/{run.where}",
                record=run.where,
                messages=with_request_keys(pair),
                records=1,
                problems=(Problem("no_request", run.where, detail, records=0),),
            )

    def _completed_step(
        self, trace: str, step: Step, parents: dict[str | None, str | None]
    ) -> Step:
        """Returns the step, its request with failed results and with what its agent offered."""
        if step.call is None:
            return step
        is_bare = any(one in self.bare for one in upwards(step.parent, parents.get, {step.id}))
        tools = () if step.call.tools is None and is_bare else step.call.tools
        runs = self.runs.get(trace, ())
        made = {one.id: one for message in step.call.messages for one in calls(message)}
        answers = (one.message for one in step.call.outcome.answers)
        for call in (*made.values(), *(one for message in answers for one in calls(message))):
            for run in runs:
                run.known = run.known or run.fits(call)
        # A later trace continues the conversation: its requests have results of earlier ones.
        failed = [run for own in self.runs.values() for run in own if run.result.is_error]
        messages = tuple(with_errors(one, made, failed) for one in step.call.messages)
        return replace(step, call=replace(step.call, tools=tools, messages=messages))

    def _completed(self, event: Event) -> Event:
        """Adds results that no further request sent back, from function spans."""
        if not isinstance(event, Conversation) or not event.messages:
            return event
        trace = self.origins.get(event.record.rpartition(" to ")[2], "")
        runs = list(self.runs.get(trace, ()))
        if any((trace, call.name) in self.undefined for call in calls(event.messages[-1])):
            last = replace(event.messages[-1], untrained="undefined_tool")
            event = replace(event, messages=(*event.messages[:-1], last))
        completed: list[ToolResult] = []
        for call in calls(event.messages[-1]):
            run = next((run for run in runs if run.fits(call) and run.result.content), None)
            if run is not None:
                runs.remove(run)
                completed.append(replace(run.result, call_id=call.id))
        if not completed:
            return event
        changes = {**event.changes, "results_from_tool_spans": len(completed)}
        messages = (*event.messages, Message("tool", tuple(completed)))
        return replace(event, messages=messages, changes=changes)


def _code(kind: str, data: dict[str, Json]) -> str:
    """Returns the code under which a span without a model call is ignored."""
    known = ("agent", "function", "handoff", "guardrail", "mcp_tools", "custom", "task", "turn")
    media = ("transcription", "speech", "speech_group")
    return kind if kind in (*known, *media) else unknown_code(data.get("type"))


READER = Reader(
    name=NAME,
    summary=(
        "OpenAI Agents SDK: traces and spans (object trace.span, span_data), "
        "sessions in SQLite (session_id, message_data)"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    read=read,
    item_sizes=item_sizes,
)
