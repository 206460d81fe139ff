"""Runs of tools that a log has beside its requests, which repeat all but the last of them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from builder.conversation import (
    Conversation,
    Event,
    Ignored,
    Message,
    Part,
    ToolCall,
    ToolResult,
    Used,
)
from builder.problem import Problem
from builder.readers.toolkit.comparison import calls, looks_random, with_request_keys
from builder.readers.toolkit.narrow import json_in_text


@dataclass(slots=True, eq=False)
class ToolRun:
    """A run of a tool, whose call has an id if the log has it.

    is_known  whether a request contains the call
    is_used   whether the result completed a conversation
    """

    where: str
    record: str
    trace: str
    call: ToolCall | None
    result: ToolResult | None
    failed: bool = False
    is_known: bool = False
    is_used: bool = False


class ToolRuns:
    """Collects runs: `add` each, `note` the messages of requests, then ask for `events`.

    `code` is that of runs whose calls are known. `by_arguments`: calls without an id are those of
    the same name and arguments; otherwise they are known if their trace has a request.
    """

    def __init__(self, code: str, *, by_arguments: bool = False) -> None:
        self.code = code
        self.by_arguments = by_arguments
        self.runs: list[ToolRun] = []
        self._by_call: dict[tuple[str, str], list[ToolRun]] = {}  # trace and id, or "" and name
        self._has_failed = False

    def add(self, run: ToolRun) -> None:
        """Adds a run."""
        self.runs.append(run)
        self._has_failed = self._has_failed or run.failed
        if run.call is not None and (run.call.id or self.by_arguments):
            key = _key(run.trace, run.call.id) if run.call.id else ("", run.call.name)
            self._by_call.setdefault(key, []).append(run)

    def _of(self, trace: str | None, call: ToolCall) -> Iterator[ToolRun]:
        """Yields the runs of a call; of one without an id in this trace, None: in any."""
        if not self.by_arguments:
            yield from self._by_call.get(_key(trace or "", call.id or ""), ())
            return
        for run in self._by_call.get(("", call.name), ()):
            own = run.call.arguments if run.call is not None else None
            if trace in (None, run.trace) and json_in_text(own) == json_in_text(call.arguments):
                yield run

    def note(self, trace: str, messages: Iterable[Message]) -> None:
        """Notes the calls that a request and its answer contain."""
        for message in messages:
            for call in calls(message):
                for run in self._of(trace, call):
                    run.is_known = True

    def with_errors(self, trace: str | None, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the messages with the results of failed runs marked as errors."""
        if not self._has_failed:
            return tuple(messages)
        made = {call.id: call for message in messages for call in calls(message) if call.id}

        def marked(part: Part) -> Part:
            call = made.get(part.call_id or "") if isinstance(part, ToolResult) else None
            if call is None or not isinstance(part, ToolResult):
                return part
            failed = any(
                run.failed and (not self.by_arguments or _content(run) == part.content)
                for run in self._of(trace, call)
            )
            return replace(part, is_error=True) if failed else part

        return tuple(
            replace(one, parts=tuple(map(marked, one.parts))) if one.role == "tool" else one
            for one in messages
        )

    def results(self, trace: str, message: Message) -> tuple[ToolResult, ...]:
        """Returns the known results of the calls in a conversation's last message."""
        found: list[ToolRun] = []
        results: list[ToolResult] = []
        for call in calls(message):
            runs = [one for one in self._of(trace, call) if _content(one) and one not in found]
            if not self.by_arguments and any(one.result != runs[0].result for one in runs):
                continue  # several runs with one id
            run = next(iter(runs), None)
            if run is not None and run.result is not None and run.result.name in (None, call.name):
                found += [run] if self.by_arguments else runs
                results.append(replace(run.result, call_id=call.id))
        for run in found:
            run.is_used = True
        return tuple(results)

    def events(self, traces: Container[str] = ()) -> Iterator[Event]:
        """Yields an event for each run, once all requests are known; `traces` are their traces.

        A run whose call is in no request becomes a conversation, since the call was made.
        """
        for run in self.runs:
            has_id = run.call is not None and (run.call.id or self.by_arguments)
            if run.is_used:
                yield Used()
            elif run.call is None or (run.is_known if has_id else run.trace in traces):
                yield Ignored(self.code)
            else:
                if not self.by_arguments:
                    self.note(run.trace, [Message("assistant", (run.call,))])
                results = [] if run.result is None else [Message("tool", (run.result,))]
                detail = "a tool's run; the request that called it was not logged"
                yield Conversation(
                    id=f"{run.trace}/{run.where}" if run.trace else run.where,
                    record=run.record,
                    messages=with_request_keys([Message("assistant", (run.call,)), *results]),
                    records=1,
                    problems=(Problem("no_request", run.where, detail, records=0),),
                )


def _content(run: ToolRun) -> object:
    return run.result.content if run.result is not None else None


def _key(trace: str, call_id: str) -> tuple[str, str]:
    return ("" if looks_random(call_id) else trace), call_id
