"""Reads Langfuse: traces with their observations, pages of its API, blob exports.

Only generations are model calls (docs/formats/langfuse.md). Exports are unordered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Event, Ignored, Json, Message
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.codec import ApiAnswer
from builder.readers.toolkit.chat_messages import has_unknown_parts
from builder.readers.toolkit.narrow import (
    as_dict,
    as_list,
    as_str,
    first_of,
    name_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import collected, objects
from builder.readers.traces import openinference, otel_genai
from builder.readers.traces.any_vendor import (
    calls_by_columns,
    definitions,
    fault_of,
    read_outcome,
    read_request,
    system_text,
    tools_of,
    with_system,
)
from builder.readers.traces.parts import PartNotes, decoded, is_empty
from builder.readers.traces.steps import ModelCall, Step, TraceBuffer
from builder.sources.source import Record, Source

_ENCLOSING = frozenset({"SPAN", "CHAIN"})
"""Types of enclosing steps that may log a model call's answer as their own output."""
_SYSTEMS = ("gen_ai.system_instructions", "gen_ai.request.instructions", "instructions")


def _read_step(where: str, row: dict[str, Json], code: str) -> Step:
    kind = as_str(row.get("type"))
    called = kind == "GENERATION"
    agent = kind == "AGENT"
    metadata = as_dict(decoded(row.get("metadata"))) if called or agent else {}
    attributes = as_dict(decoded(metadata.get("attributes")))
    call = _call(row, metadata, attributes) if called else None
    texts = (system_text(attributes.get(key)) for key in _SYSTEMS)
    return Step(
        where=where,
        id=name_of(row, "id"),
        parent=name_or_none(first_of(row, "parentObservationId", "parent_observation_id")),
        order=as_str(first_of(row, "startTime", "start_time")),
        code=code,
        nests=agent or kind == "TOOL",
        agent=agent,
        system=next((text for text in texts if text), ""),
        call=call,
        output=row.get("output") if kind in _ENCLOSING else None,
    )


def _call(
    row: dict[str, Json], metadata: dict[str, Json], attributes: dict[str, Json]
) -> ModelCall:
    notes, answer_notes = PartNotes(), PartNotes()
    parameters = as_dict(decoded(first_of(row, "modelParameters", "model_parameters")))
    request = read_request(row.get("input"), notes)
    readable = request.messages and not notes.unreadable
    if (not readable or has_unknown_parts(request.messages)) and (
        flat := openinference.entries(attributes, openinference.INPUT)
    ):
        # Instrumentations that log a Python repr as input (Agno) also log these attributes. A
        # number that is left out is an answer with calls only, which they do not log.
        notes = PartNotes()
        request = replace(request, messages=tuple(openinference.read_entries(flat, notes)))
        if None in flat:
            notes.unreadable.append("a message that was not logged")
    outcome = read_outcome(row.get("output"), answer_notes)
    answers = outcome.answers
    if not answers:
        names = first_of(row, "toolCallNames", "tool_call_names")
        made = calls_by_columns(first_of(row, "toolCalls", "tool_calls"), names)
        answers = (ApiAnswer(Message("assistant", tuple(made))),) if made else ()
    offers: tuple[Json, ...] = (
        list(request.tools or ()),
        [*notes.tools, *answer_notes.tools],
        list(outcome.tools or ()),
        metadata.get("tools"),
        list(otel_genai.tools_in(attributes) or ()),
        attributes.get("ai.prompt.tools"),
        list(openinference.tools_in(attributes) or ()),
        first_of(row, "toolDefinitions", "tool_definitions"),
    )
    listed = next(filter(None, map(definitions, offers)), [])
    none = request.tools if request.tools is not None else outcome.tools
    ends = decoded(attributes.get("gen_ai.response.finish_reasons"))
    reasons = list(ends) if isinstance(ends, list) else [ends]
    reasons += [attributes.get("ai.response.finishReason"), parameters.get("finishReason")]
    fault = next((code for reason in reasons if (code := fault_of(reason))), None)
    failed = row.get("level") == "ERROR"
    fault = fault or ("error" if failed else None)
    answers = tuple(answer.with_fault(fault) for answer in answers)
    return ModelCall(
        messages=with_system(request.messages, outcome.instructions),
        outcome=replace(outcome, answers=answers),
        notes=notes,
        answer_notes=answer_notes,
        tools=tuple(listed) or tools_of(parameters) or none,
        model=name_of(row, "model", "provided_model_name") or request.model,
        failed=failed,
        error=as_str(first_of(row, "statusMessage", "status_message")) if failed else "",
        is_empty=is_empty(row.get("output")),
        response=outcome.id or name_of(attributes, "gen_ai.response.id"),
        previous=outcome.previous or name_of(attributes, "gen_ai.conversation.id"),
    )


_TYPES = frozenset({
    "GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR",
    "EMBEDDING", "GUARDRAIL",
})  # fmt: skip
_COLUMNS = (
    frozenset({"traceId", "type", "startTime", "input", "output"}),
    frozenset({"trace_id", "type", "start_time", "input", "output"}),
)
_REASONS = {
    "observation": "observations with trace ids",
    "trace": "traces with trace ids",
    "score": "scores with trace ids",
    "page": "a page of observations or traces",
    "view": "messages by observation id, as the platform shows them",
}
"""The reason to claim an object, by its kind."""
_PEEKED = 20


def _recognise(source: Source) -> str | None:
    """Claims sources with the platform's observations, traces or scores, or its view of them."""
    names = set(source.csv_names) if source.is_csv else set()
    if _COLUMNS[0] <= names or _COLUMNS[1] <= names:
        return "a table of observations"
    kinds = map(_kind, source.peek.objects[:_PEEKED])
    return next((_REASONS[kind] for kind in kinds if kind is not None), None)


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of the source's traces and the outcome of its other records."""
    records = source.csv_rows() if source.is_csv else source.records()
    return collected(records, _Collector(source))


def _kind(value: dict[str, Json]) -> str | None:
    trace_id = name_of(value, "traceId", "trace_id")
    started = value.get("startTime") or value.get("start_time")
    if trace_id and started and as_str(value.get("type")) in _TYPES:
        return "observation"
    if trace_id and "value" in value and ("dataType" in value or "data_type" in value):
        return "score"
    inside = value.get("observations")
    if isinstance(inside, list) and (isinstance(value.get("trace"), dict) or "timestamp" in value):
        first = next((item for item in inside if isinstance(item, dict)), None)
        return "trace" if first is None or _kind(first) == "observation" else None
    named = ("sessionId" in value or "session_id" in value) and "timestamp" in value
    if named and ("userId" in value or "user_id" in value) and "release" in value:
        return "trace"
    listed = value.get("data")
    if isinstance(listed, list) and isinstance(value.get("meta"), dict):
        kinds = [_kind(item) for item in listed[:_PEEKED] if isinstance(item, dict)]
        return "page" if any(kind in ("observation", "trace", "score") for kind in kinds) else None
    views = [*map(as_dict, value.values())]
    is_view = (
        bool(views)
        and all(views)
        and all(
            key in ("input", "output") and isinstance(as_dict(side).get("success"), bool)
            for sides in views
            for key, side in sides.items()
        )
    )
    return "view" if is_view else None


class _Collector(TraceBuffer):
    """Collects observations into their traces."""

    def take(self, record: Record) -> Iterator[Event]:
        """Reads one record, and counts the records inside it."""
        value = as_dict(record.value)
        kind = _kind(value)
        where = "" if record.where == "file" else record.where
        if kind == "observation":
            yield from self._observation(record.where, value)
        elif kind == "trace":
            yield Ignored("trace")
            trace = as_dict(value.get("trace")) or value
            facts = self.trace(as_str(trace.get("id")))
            session = trace.get("sessionId") or trace.get("session_id")
            facts.session = facts.session or as_str(session)
            facts.add_scores(as_list(decoded(trace.get("scores"))))
            facts.add("labels", [tag for tag in as_list(decoded(trace.get("tags"))) if tag])
            inside = as_list(value.get("observations"))
            if not all(isinstance(item, str) for item in inside):  # ids of top-level records
                counted = self.source.counted(inside, f"{where}[{{}}]")
                for found in objects(counted, "an observation is "):
                    yield from [found] if isinstance(found, Problem) else self._observation(*found)
        elif kind == "page":
            yield Ignored("page")
            for item in self.source.counted(as_list(value.get("data")), f"{where}[{{}}]"):
                yield from self.take(item)
        elif kind == "view":
            yield Ignored("chatml_view")
        elif kind == "score":
            trace_id = as_str(first_of(value, "traceId", "trace_id"))
            self.trace(trace_id).add_scores([value])
            yield Ignored("score")
        else:
            yield Ignored(unknown_code(value.get("type", "record")))

    def _observation(self, where: str, value: dict[str, Json]) -> Iterator[Event]:
        name, kind = name_of(value, "id"), as_str(value.get("type"))
        where = unique_name(f"observation {name[:200]}" if name else where, self.names)
        step = _read_step(where, value, kind.lower() if kind in _TYPES else unknown_code(kind))
        trace_id = as_str(first_of(value, "traceId", "trace_id"))
        session = as_str(first_of(value, "sessionId", "session_id"))
        yield from self.add(trace_id, session, step)


READER = declared("langfuse", recognise=_recognise, read=read)
