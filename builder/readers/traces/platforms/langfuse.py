"""Reads Langfuse: traces with their observations, pages of its API, blob exports.

Source: docs/formats/langfuse.md. A record is an observation, or the trace or page that contains
observations; only generations are model calls. Exports are unordered, so traces are sorted by time.
Generations whose messages extend one another become one conversation.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event, Ignored, Json
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, first_of, name_of, unknown_code
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import collected, objects
from builder.readers.traces.any_vendor.parts import decoded
from builder.readers.traces.platforms.langfuse_calls import read_step
from builder.readers.traces.platforms.steps import TraceBuffer
from builder.sources.csv_file import csv_header, csv_rows
from builder.sources.source import Record, Source

TYPES = frozenset(
    {
        "GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR",
        "EMBEDDING", "GUARDRAIL",
    }
)  # fmt: skip
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


def recognise(source: Source) -> str | None:
    """Claims sources with the platform's observations, traces or scores, or its view of them."""
    header = csv_header(source)
    if _COLUMNS[0] <= set(header) or _COLUMNS[1] <= set(header):
        return "a table of observations"
    kinds = map(_kind, source.peek.objects[:_PEEKED])
    return next((_REASONS[kind] for kind in kinds if kind is not None), None)


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of the source's traces and the outcome of its other records."""
    records = csv_rows(source) if csv_header(source) else source.records()
    return collected(records, _Collector(source))


def _kind(value: dict[str, Json]) -> str | None:
    """Returns the kind of an object, a key of `_REASONS`, or None."""
    trace_id = name_of(value, "traceId", "trace_id")
    started = value.get("startTime") or value.get("start_time")
    if trace_id and started and as_str(value.get("type")) in TYPES:
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
    return "view" if value and all(map(_is_view, value.values())) else None


def _is_view(value: Json) -> bool:
    """Returns whether a value is the platform's view of an observation's input and output."""
    sides = as_dict(value)
    return bool(sides) and all(
        key in ("input", "output") and isinstance(as_dict(side).get("success"), bool)
        for key, side in sides.items()
    )


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
        step = read_step(where, value, kind.lower() if kind in TYPES else unknown_code(kind))
        trace_id = as_str(first_of(value, "traceId", "trace_id"))
        session = as_str(first_of(value, "sessionId", "session_id"))
        yield from self.add(trace_id, session, step)


READER = Reader(
    name="langfuse",
    summary="Langfuse traces: trace and observations, API pages, exported rows (JSON, CSV)",
    evidence=("documentation", "files"),
    recognise=recognise,
    read=read,
)
