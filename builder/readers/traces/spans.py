"""Reads OpenTelemetry spans and log records from every file format in which they are exported.

A span is a record (docs/formats/otel-genai.md).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from builder.conversation import Ignored, Json
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    first_of,
    json_in_text,
)
from builder.readers.toolkit.rows import not_object
from builder.sources.sniff import PEEK_BYTES
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import once

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")
_ANY = re.compile(r"(string|int|double|bool|array|kvlist|bytes)_?[vV]alue")
_DIGITS = re.compile(r"[0-9]{1,6}")
_BEGINNINGS = '{["-0123456789tfnNI\ufeff'
"""Characters with which a JSON text may begin."""
_MAX_STEPS = 12
"""Maximum depth of a dotted name; no convention needs more."""


def attributes(value: Json) -> dict[str, Json]:
    """Returns attributes by name, from an object or from OTLP's list of {key, AnyValue}."""
    if isinstance(value, dict):
        return dict(value)
    pairs = as_dicts(value)
    return {as_str(pair.get("key")): _any_value(pair.get("value")) for pair in pairs}


def _any_value(value: Json) -> Json:
    """Converts OTLP's AnyValue to a JSON value; returns any other value unchanged."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((key, inner),) = value.items()
    match = _ANY.fullmatch(key)
    kind = match[1] if match else ""
    if kind == "array":
        return [_any_value(item) for item in as_list(inner, "values")]
    if kind == "kvlist":
        return attributes(as_dict(inner).get("values"))
    if kind == "int" and isinstance(inner, str) and re.fullmatch(r"-?[0-9]{1,20}", inner):
        return int(inner)
    return inner if kind else value


def decoded(value: Json) -> Json:
    """Decodes a string that is JSON; returns other values and other text unchanged."""
    return json_in_text(value, beginnings=_BEGINNINGS)


def is_cut(value: Json) -> bool:
    """Returns whether a value is JSON text that a limit on the length of values truncated."""
    return isinstance(value, str) and value.lstrip()[:1] in ("[", "{") and decoded(value) is value


def identifier(value: Json) -> str:
    """Returns an id in lower-case hex, from hex or from base64 of 8 or 16 bytes.

    Returns "" for an id of zeros only, and any other string unchanged.
    """
    text = as_str(value)
    if match := _HEX.fullmatch(text):
        return "" if set(match[1]) == {"0"} else match[1].lower()
    if len(text) in (12, 24) and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return text
    return text


def dotted(name: str, value: Json) -> dict[str, Json]:
    """Flattens attributes that a store nested by the segments of their names.

    Objects below the third level stay values.
    """
    tree: dict[str, Json] = {name: value}
    for _ in range(3):
        below: dict[str, Json] = {}
        for start, item in tree.items():
            if isinstance(item, dict):
                below.update((f"{start}.{key}", inner) for key, inner in item.items())
            else:
                below[start] = item
        tree = below
    return tree


# -- names that are paths ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value of an attribute, in contrast to an object made from dotted names."""

    value: Json


_Node: TypeAlias = "dict[str, _Node] | _Leaf"


def branch(values: dict[str, Json], path: str, leaves: frozenset[str] = frozenset()) -> Json:
    """Returns the value at a path: dotted names become objects, numbered objects become lists.

    Flat names, nested objects and lists of objects with dotted names may be mixed. The value of a
    name in `leaves` stays as it is. A gap in the numbers of a list becomes one None.
    """
    steps = path.split(".")
    prefixes = {".".join(steps[:end]) for end in range(1, len(steps) + 1)}
    root: dict[str, _Node] = {}
    for name, value in values.items():
        if name in prefixes or name.startswith(path + "."):
            _insert(root, name, value, leaves, _MAX_STEPS)
    node: _Node | None = root
    for step in steps:
        node = node.get(step) if isinstance(node, dict) else None
    return None if node is None else _to_json(node)


def _insert(
    node: dict[str, _Node], name: str, value: Json, leaves: frozenset[str], levels: int
) -> None:
    *parents, last = name.split(".", _MAX_STEPS)
    for step in parents:
        node = _child(node, step)
    inner = value if last not in leaves and levels else None
    if isinstance(inner, list) and any(isinstance(item, dict) for item in inner):
        inner = {str(number): item for number, item in enumerate(inner)}
    if isinstance(inner, dict):
        node = _child(node, last)
        for key, item in inner.items():
            _insert(node, key, item, leaves, levels - 1)
    elif not isinstance(node.get(last), dict):
        node[last] = _Leaf(value)


def _child(node: dict[str, _Node], step: str) -> dict[str, _Node]:
    child = node.get(step)
    if not isinstance(child, dict):
        child = node[step] = {}
    return child


def _to_json(node: _Node) -> Json:
    if isinstance(node, _Leaf):
        return node.value
    if not node or not all(_DIGITS.fullmatch(key) for key in node):
        return {key: _to_json(item) for key, item in node.items()}
    return _in_order({int(key): _to_json(item) for key, item in node.items()})


def _in_order(items: dict[int, Json]) -> list[Json]:
    ordered: list[Json] = []
    due = 0
    for number in sorted(items):
        ordered += [None] if number > due else []
        ordered.append(items[number])
        due = number + 1
    return ordered


def listed(value: Json) -> list[Json]:
    """Returns the entries of a list that `branch` made, without keys that are not numbers."""
    fields = as_dict(value)
    numbered = {int(key): item for key, item in fields.items() if _DIGITS.fullmatch(key)}
    return _in_order(numbered) if numbered else as_list(value)


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


_SPAN_KEYS = frozenset({
    "attributes", "tags", "SpanAttributes", "span_kind", "events", "otel_events", "body",
    "severityNumber", "severity_number", "gen_ai", "llm", "openinference",
})  # fmt: skip
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
        return name, inner, ((name, {**inner, "body": _any_value(value.get("body"))}),), log
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
    resource = attributes(as_dict(value, "resource").get("attributes"))
    scope = as_dict(value.get("scope")) or as_dict(value.get("instrumentationScope"))
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
        compact=as_str(resource.get("telemetry.sdk.language")) in _JAVASCRIPT
        or as_str(scope.get("name")) in _AI_SDK,
    )


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


_KINDS = frozenset({
    "LLM", "CHAIN", "AGENT", "TOOL", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL",
    "EVALUATOR", "PROMPT", "UNKNOWN",
})  # fmt: skip
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
