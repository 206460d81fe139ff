"""Collects what traces log outside requests: tool runs, and the tool definitions of agents."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from builder.conversation import (
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    ToolResult,
    Used,
)
from builder.problem import Problem
from builder.readers.toolkit.call_keys import looks_random, with_request_keys
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dict
from builder.readers.traces.otel.reading import SpanReading
from builder.readers.traces.otel.spans import Span

MAX_ANCESTORS = 50
"""Maximum number of levels above a span that are searched for its agent."""

_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "arguments")


def without_parameters(tools: Iterable[Json]) -> int:
    """Returns how many definitions lack parameters; the conventions advise against logging them."""
    functions = (as_dict(tool, "function") or as_dict(tool) for tool in tools)
    return sum(
        "name" in function and not any(key in function for key in _SCHEMAS)
        for function in functions
    )


class AgentTools:
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
        for _ in range(MAX_ANCESTORS):
            span = self._parents.get((trace, span), "")
            if (tools := self._tools.get((trace, span))) is not None:
                return tools
        return None


class ToolRuns:
    """Collects tool spans. Requests repeat them, except for last calls and unlogged requests."""

    def __init__(self) -> None:
        self._runs: list[tuple[str, str, str, SpanReading]] = []  # where, record, trace
        self._results: dict[_CallKey, ToolResult | None] = {}  # None: several different ones
        self._used: set[_CallKey] = set()  # results that completed a conversation
        self._called: set[_CallKey] = set()  # calls that requests contain
        self._failed: set[_CallKey] = set()  # calls whose run failed according to its span

    def take(self, span: Span, reading: SpanReading) -> None:
        """Adds a run of a tool."""
        self._runs.append((span.where, span.place, span.trace, reading))
        call_id = reading.call.id if reading.call is not None else None
        if call_id and span.failed:
            self._failed.add(_key(span.trace, call_id))
        if call_id and reading.result is not None:
            key = _key(span.trace, call_id)
            same = self._results.get(key, reading.result) == reading.result
            self._results[key] = reading.result if same else None

    def with_errors(self, trace: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Returns the messages with the results of failed runs marked as errors."""
        if not self._failed:
            return messages
        return tuple(
            replace(message, parts=tuple(self._with_error(trace, part) for part in message.parts))
            if message.role == "tool"
            else message
            for message in messages
        )

    def _with_error(self, trace: str, part: Part) -> Part:
        if not isinstance(part, ToolResult) or _key(trace, part.call_id or "") not in self._failed:
            return part
        return replace(part, is_error=True)

    def answers(self, trace: str, messages: tuple[Message, ...]) -> tuple[ToolResult, ...]:
        """Returns the known results of the calls in a conversation's last message."""
        made = (call for message in messages for call in calls(message))
        self._called.update(_key(trace, call.id) for call in made if call.id)
        results: dict[_CallKey, ToolResult] = {}
        for call in calls(messages[-1]):
            key = _key(trace, call.id or "")
            result = self._results.get(key)
            if result is not None and result.name in (None, call.name):
                results[key] = result
        self._used.update(results)
        return tuple(results.values())

    def events(self, traces: Container[str]) -> Iterator[Event]:
        """Yields an event for each run, once all requests are known; `traces` are their traces.

        A run whose call is in no request becomes a conversation, since the call was made.
        """
        for where, record, trace, reading in self._runs:
            call_id = reading.call.id if reading.call is not None else None
            key = _key(trace, call_id or "")
            known = key in self._called if call_id else trace in traces
            if key in self._used:
                yield Used()
            elif known or reading.call is None:
                yield Ignored("tool_span")
            else:
                self._called.add(key)
                messages = [Message("assistant", (reading.call,))]
                if reading.result is not None:
                    messages.append(Message("tool", (reading.result,)))
                detail = "a tool's run; the request that called it was not logged"
                yield Conversation(
                    id=f"{trace}/{where}" if trace else where,
                    record=record,
                    messages=with_request_keys(messages),
                    records=1,
                    problems=(Problem("no_request", where, detail, records=0),),
                )


_CallKey = tuple[str, str]


def _key(trace: str, call_id: str) -> _CallKey:
    """Returns the key of a call: its id, with its trace unless the id is random."""
    return ("" if looks_random(call_id) else trace), call_id
