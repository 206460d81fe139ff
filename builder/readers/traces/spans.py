"""Reads OpenTelemetry spans and log records from every file format in which they are exported.

These are OTLP JSON (a request for each line or file), dumps of the SDKs, lists of spans, rows of
data frames, and bare attributes (docs/formats/otel-genai.md).
A span is a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from builder.conversation import Ignored, Json
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, first_of
from builder.readers.toolkit.rows import not_object
from builder.readers.traces.span_values import any_value, attributes, decoded, dotted, identifier
from builder.sources.sniff import PEEK_BYTES
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import once

VERCEL = "vercel-ai-sdk"
MLFLOW = "mlflow"
OPENINFERENCE = "openinference"
OTEL = "otel-genai"

_PEEK_SPANS = 2000
"""Maximum number of spans that recognition reads."""

_PREFIXES = (
    (VERCEL, ("ai.prompt", "ai.response", "ai.operationId", "ai.toolCall")),
    (MLFLOW, ("mlflow.span", "mlflow.chat", "mlflow.trace")),
    (OPENINFERENCE, ("openinference.", "llm.input_messages", "llm.output_messages")),
    (
        OTEL,
        (
            "gen_ai.", "llm.request.", "traceloop.", "llm.prompts", "llm.completions",
            "pydantic_ai.all_messages", "all_messages_events",
        ),
    ),
)  # fmt: skip
"""Prefixes of attribute names that identify an instrumentation, most specific first: the first
three also write attributes of the last."""
_ALL_PREFIXES = tuple(prefix for _, prefixes in _PREFIXES for prefix in prefixes)


@dataclass(frozen=True, slots=True)
class Span:
    """One span, or one log record.

    where       the place of the span in the source, unique
    place       the place of the record that contains it
    trace       id of the trace: lower-case hex, as logged if it is not hex, or ""; `id` and
                `parent` (the ids of the span and its parent) likewise
    attributes  by name, with decoded values; nested ones stay nested
    events      name and attributes of each event, in order; a log record is one event
    dropped     number of attributes and events dropped by a limit of the SDK
    failed      whether the status is an error
    log         whether it is a log record
    compact     whether its program writes JSON text without spaces, as JavaScript does
    """

    where: str
    place: str
    trace: str
    id: str
    parent: str
    name: str
    attributes: dict[str, Json]
    events: tuple[tuple[str, dict[str, Json]], ...] = ()
    dropped: int = 0
    failed: bool = False
    log: bool = False
    compact: bool = False

    @property
    def dialects(self) -> list[str]:
        """Returns the conventions that its attributes and events follow, most reliable first."""
        return _dialects(self.attributes, self.events)


def _dialects(
    attributes: dict[str, Json], events: Iterable[tuple[str, dict[str, Json]]]
) -> list[str]:
    names = [*attributes]
    for name, inner in events:
        names += [name, *inner]
    for key in ("llm", "openinference"):  # nested, not dotted
        names += [f"{key}.{name}" for name in as_dict(attributes.get(key))]
    known = [name for name in names if name.startswith(_ALL_PREFIXES)]
    return [
        dialect
        for dialect, prefixes in _PREFIXES
        if any(name.startswith(prefixes) for name in known)
    ]


@once
def first_dialect(source: Source) -> str | None:
    """Returns the most specific dialect of the source's first spans, for `recognise`, or None."""
    order = [name for name, _ in _PREFIXES]
    items = islice(_peeked(source), _PEEK_SPANS)
    read = (_read_item(value, log) for _, value, log in items)
    dialects = {name for _, inner, events, _ in read for name in _dialects(inner, events)[:1]}
    return min(dialects, key=order.index, default=None)


def _peeked(source: Source) -> Iterator[_Item]:
    values: list[Json] = list(source.peek.records)
    if source.peek.kind == "text" and _is_console(source):
        lines = source.first(PEEK_BYTES).decode("utf-8", "replace").splitlines()
        values = [decoded(text) for _, text in _documents(lines)]
    for value in values:
        if isinstance(value, dict) and _may_be_spans(tuple(value)):
            yield from _items(value)


_SPAN_KEYS = frozenset(
    {
        "attributes", "tags", "SpanAttributes", "span_kind", "events", "otel_events", "body",
        "severityNumber", "severity_number", "gen_ai", "llm", "openinference",
    }
)  # fmt: skip
"""Keys of a span or log record whose values may identify an instrumentation."""


@lru_cache(maxsize=4096)
def _may_be_spans(names: tuple[str, ...]) -> bool:
    return not (_SPAN_KEYS | _CONTAINERS).isdisjoint(names) or any(
        name.removeprefix("attributes.").startswith(_ALL_PREFIXES) for name in names
    )


def open_spans(source: Source) -> Iterator[Span | Problem | Ignored]:
    """Yields the spans and log records of a source in order, and counts them as records."""
    for item in _records(source):
        if isinstance(item, Problem | Ignored):
            yield item
        elif not isinstance(item.value, dict):
            yield not_object(item, "a record that is ")
        else:
            spans = [_span(item.where, *one) for one in _items(item.value)]
            source.count_records(max(len(spans) - 1, 0))
            yield from spans
            if not spans:
                yield Ignored("no_spans")


def _records(source: Source) -> Iterator[Record | Problem | Ignored]:
    if source.peek.kind == "text" and _is_console(source):
        yield from _console(source)
    else:
        yield from source.records()


# -- concatenated documents ----------------------------------------------------------------------


def _is_console(source: Source) -> bool:
    return re.search(rb"^\{\r?$", source.head, re.MULTILINE) is not None


def _console(source: Source) -> Iterator[Record | Problem | Ignored]:
    """Yields the documents of a console exporter: concatenated, pretty-printed JSON."""
    lines: list[str] = []
    for item in source.lines():
        if isinstance(item, Problem):
            yield item
        else:
            source.count_records(-1)  # the document is the record, not each line
            lines.append(item[1].decode("utf-8", "replace"))
    for number, text in _documents(lines):
        source.count_records()
        where = f"document {number}"
        if not text.startswith("{"):
            yield Ignored("printed_text")
            continue
        try:
            yield source.seen(where, loads(text))
        except JsonFault as fault:
            yield fault.at(where)


def _documents(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yields (number, text) of each document, which begins and ends with a brace in column 0.

    Other output between two documents is yielded as a document, too.
    """
    start = number = 0
    for at, line in enumerate(lines):
        begins = line.rstrip() == "{" and at > start
        if begins or line.startswith("}"):
            end = at if begins else at + 1
            yield number, "\n".join(lines[start:end])
            start = end
            number += 1
    if start < len(lines):
        yield number, "\n".join(lines[start:])


# -- envelopes -----------------------------------------------------------------------------------

_RESOURCES = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")
_SCOPES = (
    "scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs",
    "instrumentationLibraryLogs",
)  # fmt: skip
_LOGS = ("logRecords", "log_records")
_ORIGIN = ("resource", "scope", "instrumentationScope")
_CONTAINERS = frozenset({*_RESOURCES, "trace", "data", "spans"})
"""Keys of which a record that contains spans has at least one."""

_Item: TypeAlias = tuple[int | None, dict[str, Json], bool]
"""(index in its record, or None if it is the record; fields; whether it is a log record)."""


def _items(value: dict[str, Json]) -> Iterator[_Item]:
    """Yields the spans and log records in a record, or the record itself."""
    if _CONTAINERS.isdisjoint(value):
        yield None, value, False
        return
    column = as_dict(decoded(value.get("trace")))
    if any(key in column for key in (*_RESOURCES, "data")):  # a trace in a column of a table
        value = column
    if any(key in value for key in _RESOURCES):
        yield from _scoped([item for key in _RESOURCES for item in as_list(value.get(key))])
        return
    data = decoded(value.get("data"))
    inner = decoded(value.get("spans")) or as_dict(data).get("spans") or data
    if not isinstance(inner, list):
        yield None, value, False
        return
    info = as_dict(value.get("info"))
    trace = info.get("trace_id") or info.get("request_id")
    common: dict[str, Json] = {"trace_id": trace, "trace_info": info} if info else {}
    for number, item in enumerate(_nested(inner)):
        yield number, {**common, **as_dict(item)}, False


def _nested(items: list[Json]) -> Iterator[Json]:
    for item in items:
        inside = as_dict(item).get("spans")
        yield from inside if isinstance(inside, list) else [item]


def _scoped(resources: list[Json]) -> Iterator[_Item]:
    scopes = [
        {**as_dict(scope), "resource": as_dict(resource).get("resource")}
        for resource in resources
        for key in _SCOPES
        for scope in as_list(resource, key)
    ]
    spans = [(item, scope, False) for scope in scopes for item in as_list(scope.get("spans"))]
    logs = [
        (item, scope, True) for scope in scopes for key in _LOGS for item in as_list(scope.get(key))
    ]
    for number, (item, scope, is_log) in enumerate(spans + logs):
        origin = {key: scope[key] for key in _ORIGIN if key in scope}
        yield number, {**origin, **as_dict(item)}, is_log


# -- one span ------------------------------------------------------------------------------------


_Events: TypeAlias = tuple[tuple[str, dict[str, Json]], ...]


def _read_item(value: dict[str, Json], log: bool) -> tuple[str, dict[str, Json], _Events, bool]:
    """Returns the name, attributes and events of a span, and whether it is a log record."""
    log = log or "body" in value or "severityNumber" in value or "severity_number" in value
    inner = _attributes_of(value)
    name = as_str(first_of(value, *_NAMES)) or as_str(inner.get("event.name"))
    if log:
        return name, inner, ((name, {**inner, "body": any_value(value.get("body"))}),), log
    return name, inner, tuple(_events(first_of(value, "events", "otel_events"))), log


def _span(place: str, number: int | None, value: dict[str, Json], log: bool) -> Span:
    name, inner, events, log = _read_item(value, log)
    where = place if number is None else f"{place} [{number}]"
    keys = ("context", "spanContext", "_spanContext")
    context = next((nested for key in keys if (nested := as_dict(value.get(key)))), {})
    own = first_of(value, "spanId", "span_id", "context.span_id", "spanID", "SpanId")
    own = identifier(own or first_of(context, "span_id", "spanId") or (not log and value.get("id")))
    trace = first_of(value, "traceId", "trace_id", "context.trace_id", "traceID", "TraceId")
    parent = first_of(
        value, "parentSpanId", "parent_span_id", "parent_id", "parentId", "ParentSpanId"
    )
    parent = parent or as_dict(value.get("parentSpanContext")).get("spanId")
    return Span(
        where=f"{where} span {own}" if _PLAIN.fullmatch(own) and not log else where,
        place=place,
        trace=identifier(trace or first_of(context, "trace_id", "traceId")),
        id=own,
        parent=identifier(parent),
        name=name,
        attributes=inner,
        events=events,
        dropped=sum(count for key in _DROPPED if isinstance(count := value.get(key), int)),
        failed=_failed(value),
        log=log,
        compact=_is_compact(value),
    )


def _is_compact(value: dict[str, Json]) -> bool:
    """Returns whether a program in JavaScript wrote a span: it names its language or the AI SDK."""
    resource = attributes(as_dict(value, "resource").get("attributes"))
    scope = as_dict(value.get("scope")) or as_dict(value.get("instrumentationScope"))
    language = as_str(resource.get("telemetry.sdk.language"))
    return language in _JAVASCRIPT or as_str(scope.get("name")) in _AI_SDK


_JAVASCRIPT = frozenset({"nodejs", "webjs"})
_AI_SDK = frozenset({"gen_ai", "ai"})
"""Names of the scopes of its spans, in version 7 and before."""


_PLAIN = re.compile(r"[\w-]{1,40}")
_NAMES = ("name", "operationName", "span_name", "SpanName", "eventName", "event_name")
_DROPPED = (
    "droppedAttributesCount", "dropped_attributes_count", "droppedEventsCount",
    "dropped_events_count",
)  # fmt: skip


def _failed(value: dict[str, Json]) -> bool:
    status = value.get("status")
    code = as_dict(status).get("code", as_dict(status).get("status_code", status))
    code = first_of(value, "status_code", "status.status_code") or code
    return code == 2 or as_str(code).upper().endswith("ERROR")


_KINDS = frozenset(
    {
        "LLM", "CHAIN", "AGENT", "TOOL", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL",
        "EVALUATOR", "PROMPT", "UNKNOWN",
    }
)  # fmt: skip
"""Values of Phoenix's column `span_kind`; OpenTelemetry's column of that name has others."""


def _attributes_of(value: dict[str, Json]) -> dict[str, Json]:
    found = decoded(first_of(value, "attributes", "tags", "SpanAttributes"))
    if isinstance(found, dict | list):
        result = attributes(found)
    else:  # rows of a data frame, or bare attributes
        result = {key.removeprefix("attributes."): item for key, item in value.items()}
    if isinstance(result.get("gen_ai"), dict):
        result = {**result, **dotted("gen_ai", result["gen_ai"])}
    kind = as_str(value.get("span_kind"))
    if kind in _KINDS and "openinference.span.kind" not in result:
        result["openinference.span.kind"] = kind
    if value.get("kind") == "pending_span":  # Logfire's column
        result["logfire.span_type"] = "pending_span"
    info = value.get("trace_info")
    return {**result, "trace_info": info} if isinstance(info, dict) else result


def _events(value: Json) -> Iterator[tuple[str, dict[str, Json]]]:
    for item in as_list(decoded(value)):
        event = as_dict(item)
        name = as_str(first_of(event, "name", "event_name"))
        yield name, attributes(decoded(first_of(event, "attributes", "event_attributes")))
