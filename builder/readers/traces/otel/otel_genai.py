"""Spans and log records of OpenTelemetry's GenAI conventions, as OTLP JSON or dumped by an SDK.

Source: otel-genai.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.traces.otel.span_log import read_spans
from builder.readers.traces.otel.spans import OTEL, first_dialect
from builder.sources.source import Source


def recognise(source: Source) -> str | None:
    """Returns why the source holds such spans, or None."""
    return "spans with gen_ai attributes" if first_dialect(source) == OTEL else None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations in the spans; a span or log record is a record."""
    yield from read_spans(source)


READER = Reader(
    name=OTEL,
    summary=(
        "OpenTelemetry GenAI spans and events (gen_ai.* attributes), OpenLLMetry's too: OTLP "
        "JSON, dumps of the SDKs, lists and rows of spans"
    ),
    recognise=recognise,
    generic=True,
    read=read,
)
