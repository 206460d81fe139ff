"""Turns spans into conversations: each request repeats the history, so the last one is complete.

Spans of agents and tools supply only what requests lack: results of the last calls, definitions,
and runs whose requests were not logged. Spans may come in any order.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from builder.conversation import Context, Conversation, Event, Ignored, Json, Message, Used
from builder.problem import Problem
from builder.readers import Evidence, Reader
from builder.readers.api.codec import ApiAnswer, History
from builder.readers.api.exchanges import Exchange
from builder.readers.api.histories import Histories
from builder.readers.toolkit.comparison import (
    LoggedAnswers,
    calls,
    digests,
    is_same_turn,
    with_request_keys,
)
from builder.readers.toolkit.history import upwards
from builder.readers.toolkit.narrow import as_dict
from builder.readers.traces import mlflow, openinference, otel_genai, vercel_spans
from builder.readers.traces.otel_genai import SpanReading
from builder.readers.traces.spans import (
    MLFLOW,
    OPENINFERENCE,
    OTEL,
    VERCEL,
    Span,
    first_dialect,
    open_spans,
)
from builder.readers.traces.tool_runs import ToolRun, ToolRuns
from builder.sources.source import Source

_SCHEMAS = frozenset(
    {"parameters", "input_schema", "inputSchema", "parameters_json_schema", "arguments"}
)
"""Keys of a definition's parameters, which the conventions advise against logging."""


class _AgentTools:
    """Looks up the definitions in agents' spans, for requests below them that have none."""

    def __init__(self) -> None:
        self._parents: dict[tuple[str, str], str] = {}  # ids, by trace and span
        self._tools: dict[tuple[str, str], tuple[Json, ...]] = {}  # by trace and span

    def take(self, span: Span, tools: tuple[Json, ...] | None) -> None:
        """Adds a span, with its definitions if it is an agent's."""
        if span.id and span.parent:
            self._parents[span.trace, span.id] = span.parent
        if span.id and tools is not None:
            self._tools[span.trace, span.id] = tools

    def of(self, trace: str, span: str) -> tuple[Json, ...] | None:
        """Returns the tools of the nearest agent above a span; None if nothing is known."""
        above = upwards(span, lambda one: self._parents.get((trace, one)))
        found = (self._tools.get((trace, one)) for one in above if one != span)
        return next((tools for tools in found if tools is not None), None)


_READERS: dict[str, Callable[[Span], SpanReading | None]] = {
    VERCEL: vercel_spans.read_span,
    MLFLOW: mlflow.read_span,
    OPENINFERENCE: openinference.read_span,
    OTEL: otel_genai.read_span,
}
"""The span reader of each instrumentation."""

_MAX_GROUPS = 200
"""Maximum number of requests waiting for more log records; then the least recent is closed."""

_MAX_ANSWERED = 10_000
"""Maximum number of requests whose answers are kept to detect rewritten histories."""

_MAX_SESSION = 200
"""Maximum length of a session's name in characters."""


def read_spans(source: Source) -> Iterator[Event]:
    """Yields the events of a source of spans from any instrumentation."""
    log = _Log()
    for item in open_spans(source):
        if isinstance(item, Span):
            yield from log.take(item)
        else:
            yield item
    yield from log.rest()


def _reading_of(span: Span) -> SpanReading | None:
    read = (_READERS[name](span) for name in span.dialects)
    readings = [reading for reading in read if reading is not None]
    found = next((one for one in readings if one.history is not None), next(iter(readings), None))
    return found.with_compact_results() if found is not None and span.compact else found


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a request was logged, and the tool definitions that it lists."""

    place: str
    trace: str
    span: str
    session: str
    tools: tuple[Json, ...] | None


class _Log:
    """Collects the spans of one source into conversations: call `take` for each, then `rest`."""

    def __init__(self) -> None:
        self._logged = LoggedAnswers()
        self._histories = Histories(self._logged)
        self._origins: dict[str, _Origin] = {}  # by where
        self._logged_traces: set[str] = set()  # traces with requests whose content is logged
        self._silent: list[tuple[str, tuple[str, str]]] = []  # requests without content
        self._answered: OrderedDict[bytes, list[Message]] = OrderedDict()  # by the request's digest
        self._partial: set[str] = set()  # sessions whose history the server keeps
        self._agents = _AgentTools()
        self._tools = ToolRuns("tool_span")
        self._runs: list[tuple[Span, SpanReading]] = []  # agent spans that may replace requests
        self._run_traces: set[str] = set()  # traces of the agent spans that did
        self._sent: set[bytes] = set()  # digests of requests, without their session
        self._calls: set[tuple[str, str | None]] = set()  # names and ids of calls in answers
        self._groups: OrderedDict[tuple[str, str], list[Span]] = OrderedDict()  # log records
        self._grouped: set[tuple[str, str]] = set()  # the keys of all groups

    def take(self, span: Span) -> Iterator[Event]:
        """Adds a span or log record; yields the events that it completes."""
        if span.log and otel_genai.is_message(span):
            yield from self._message(span)
            return
        reading = _reading_of(span) or SpanReading("other")
        self._agents.take(span, reading.tools if reading.kind == "agent" else None)
        if reading.kind == "model":
            yield from self._request(span, reading)
        elif reading.kind == "tool":
            failed = span.failed and reading.call is not None
            run = ToolRun(
                span.where, span.place, span.trace, reading.call, reading.result, failed=failed
            )
            self._tools.add(run)
        elif reading.kind == "other":
            yield Ignored("other_log" if span.log else reading.code)
        elif reading.history is None or span.trace in self._logged_traces:
            yield Ignored("agent_span")
        else:
            self._runs.append((span, reading))

    def rest(self) -> Iterator[Event]:
        """Yields the events that are still open at the end of the source."""
        while self._groups:
            yield from self._group(next(iter(self._groups)))
        logged = frozenset(self._logged_traces)
        for span, reading in self._runs:
            if span.trace in logged or self._repeats(reading):
                yield Ignored("agent_span")
            else:
                self._run_traces.add(span.trace)
                yield from self._request(span, self._as_request(span, reading))
        for event in self._histories.rest():
            yield self._completed(event)
        for where, key in self._silent:
            if key in self._grouped:
                yield Ignored("logged_in_events")
            elif key[0] in self._run_traces:
                yield Ignored("logged_by_agent")
            else:
                detail = "the log did not capture the content of messages"
                yield Problem("no_content", where, detail)
        yield from self._tools.events(self._logged_traces)

    def _as_request(self, span: Span, reading: SpanReading) -> SpanReading:
        """Returns an agent's span as a request, for a run whose requests were not logged.

        A span without all turns of its run may lack tool calls, so it gets a problem. Of a span
        that holds an exchange, in a log without runs of tools, only the context is not known.
        """
        history = reading.history
        if history is None or reading.whole:
            return reading
        if reading.is_exchange and not self._tools.runs:
            known = {message.role for message in history.messages}
            lacks = {"history", "tools", *({"system"} - known)}
            answers = tuple(answer.in_context(Context.lacking(lacks)) for answer in reading.answers)
            return replace(reading, answers=answers)
        detail = "the agent's requests to the model were not logged"
        problem = Problem("no_model_span", span.where, detail, records=0)
        return replace(reading, history=replace(history, problems=(*history.problems, problem)))

    # -- requests --------------------------------------------------------------------------------

    def _request(self, span: Span, reading: SpanReading) -> Iterator[Event]:
        if reading.history is None:
            self._silent.append((span.where, (span.trace, span.id)))
            return
        self._logged_traces.add(span.trace)
        session = (reading.session or span.trace)[:_MAX_SESSION]
        history = replace(reading.history, session=session)
        self._origins[span.where] = _Origin(span.place, span.trace, span.id, session, history.tools)
        if not history.messages and history.problems:
            yield from self._unread(span, history, reading.answers)
            return
        if history.messages:
            self._remember(history, reading.answers)
            self._logged.add(answer.message for answer in reading.answers)
            self._logged.add(history.messages[reading.own :] if reading.own is not None else ())
            if not any(answer.usable for answer in reading.answers):
                # Only the request is logged, so the model need not have written its last message.
                history = replace(history, messages=tuple(map(self._logged.mark, history.messages)))
            roles = {message.role for message in history.messages}
            if session and "tool" in roles and "assistant" not in roles:
                self._partial.add(session)
        error: dict[str, Json] | None = {"error": {"type": "of the span"}} if span.failed else None
        exchange = Exchange(span.where, response=error)
        for event in self._histories.take(exchange, history, reading.answers, own=reading.own):
            yield self._completed(event)

    def _remember(self, history: History, answers: Sequence[ApiAnswer]) -> None:
        marks = self._histories.marks
        self._sent.add(marks.of(history.messages)[-1])
        sent = marks.of(history.messages, history.session)[-1]
        for answer in answers:
            self._calls.update((call.name, call.id) for call in calls(answer.message))
            if answer.usable:
                self._answered.setdefault(sent, []).append(answer.message)
        if len(self._answered) > _MAX_ANSWERED:
            self._answered.popitem(last=False)

    def _unread(
        self, span: Span, history: History, answers: Sequence[ApiAnswer]
    ) -> Iterator[Event]:
        """Yields the answers to a request without readable messages: their calls were made."""
        if not answers:
            yield replace(history.problems[0], records=1)
        for number, answer in enumerate(answers):
            yield self._completed(
                Conversation(
                    id=f"{span.where} answer {number}" if number else span.where,
                    record=span.where,
                    messages=with_request_keys([answer.message]),
                    model=answer.model,
                    records=0 if number else 1,
                    problems=history.problems,
                )
            )

    def _repeats(self, reading: SpanReading) -> bool:
        """Returns whether an agent's span repeats a request of another trace."""
        history = reading.history
        if history is None or not self._sent.intersection(digests(history.messages)[-1:]):
            return False
        made = (call for answer in reading.answers for call in calls(answer.message))
        return {(call.name, call.id) for call in made} <= self._calls

    # -- log records of one message each ---------------------------------------------------------

    def _message(self, span: Span) -> Iterator[Event]:
        key = (span.trace, span.id)
        group = self._groups.get(key, [])
        is_choice = otel_genai.is_choice(span)
        if group and otel_genai.is_choice(group[-1]) and not is_choice:
            yield from self._group(key)  # another request, in a log without span ids
        self._groups.setdefault(key, []).append(span)
        self._groups.move_to_end(key)
        if len(self._groups) > _MAX_GROUPS:
            yield from self._group(next(iter(self._groups)))

    def _group(self, key: tuple[str, str]) -> Iterator[Event]:
        records = self._groups.pop(key)
        self._grouped.add(key)
        events = tuple(event for record in records for event in record.events)
        span = replace(records[0], events=events)
        yield from self._request(span, _reading_of(span) or SpanReading("model"))
        if len(records) > 1:
            yield Used(len(records) - 1)

    # -- conversations ---------------------------------------------------------------------------

    def _completed(self, event: Event) -> Event:
        """Adds its session to a conversation's id, and tools and results from other spans."""
        if not isinstance(event, Conversation):
            return event
        first, _, last = event.record.partition(" to ")
        origin = self._origins[last or first]
        messages = self._tools.with_errors(origin.trace, event.messages)
        changes = Counter(event.changes)
        self._tools.note(origin.trace, messages)
        if results := self._tools.results(origin.trace, messages[-1]):
            messages = (*messages, Message("tool", results))
            changes["results_from_tool_spans"] += len(results)
        tools = event.tools
        if origin.tools is None:
            tools = self._agents.of(origin.trace, origin.span)
        functions = (as_dict(tool, "function") or as_dict(tool) for tool in tools or ())
        if bare := sum("name" in one and _SCHEMAS.isdisjoint(one) for one in functions):
            changes["tools_without_parameters"] += bare
        return replace(
            event,
            id=f"{origin.session}/{event.id}" if origin.session else event.id,
            record=_records(self._origins[first].place, origin.place),
            messages=messages,
            tools=tools,
            problems=(*event.problems, *self._contradictions(event, origin.session)),
            changes=changes,
        )

    def _contradictions(self, conversation: Conversation, session: str) -> Iterator[Problem]:
        """Yields a problem if a turn differs from the model's logged answer.

        In a session with results but without their calls, no request has the whole history.
        """
        if session in self._partial:
            detail = "requests of the session continue a history that was not logged"
            yield Problem("broken_history", conversation.record, detail, records=0)
            return
        messages = conversation.messages
        before: bytes | None = None
        for at, mark in enumerate(digests(messages, session)):
            asked = before if messages[at].role == "assistant" else None
            answers = self._answered.get(asked) if asked is not None else None
            turn = messages[at]
            if answers and not any(
                answer.parts == turn.parts or is_same_turn(answer, messages[at:])
                for answer in answers
            ):
                detail = f"message {at} is not what the model answered"
                yield Problem("broken_history", conversation.record, detail, records=0)
                return
            before = mark


_PLACES = ((re.compile(r"line (\d+)"), "lines {}-{}"), (re.compile(r"\[(\d+)\]"), "[{}]-[{}]"))


def _records(first: str, last: str) -> str:
    for pattern, form in _PLACES:
        one, other = pattern.fullmatch(first), pattern.fullmatch(last)
        if one and other and first != last:
            return form.format(*sorted((int(one[1]), int(other[1]))))
    return first if first == last else f"{first} to {last}"


_FORMATS: tuple[tuple[str, str, str, tuple[Evidence, ...]], ...] = (
    (
        MLFLOW,
        "spans of MLflow",
        (
            "MLflow traces (info, data.spans with mlflow.spanInputs and mlflow.spanOutputs): JSON "
            "of both versions, artifacts, rows of search_traces"
        ),
        ("source",),
    ),
    (
        OPENINFERENCE,
        "spans of OpenInference",
        (
            "OpenInference spans (openinference.span.kind, llm.input_messages), as Arize Phoenix "
            "and its instrumentations export them: OTLP, rows, nested or flat"
        ),
        ("documentation", "files"),
    ),
    (
        OTEL,
        "spans with gen_ai attributes",
        (
            "OpenTelemetry GenAI spans and events (gen_ai.* attributes), OpenLLMetry's too: OTLP "
            "JSON, dumps of the SDKs, lists and rows of spans"
        ),
        ("documentation", "files"),
    ),
)
"""The dialect, the reason to claim a file whose most specific dialect it is, summary, evidence."""


def _recognise(dialect: str, reason: str, source: Source) -> str | None:
    return reason if first_dialect(source) == dialect else None


READERS = tuple(
    Reader(
        name=name,
        summary=summary,
        evidence=evidence,
        recognise=partial(_recognise, name, reason),
        read=read_spans,
        generic=name == OTEL,
    )
    for name, reason, summary, evidence in _FORMATS
)
