"""Spans of OpenInference (Arize Phoenix): OTLP, exported rows and data frames, attributes alone.

Source: openinference.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.traces.otel.span_log import read_spans
from builder.readers.traces.otel.spans import OPENINFERENCE, first_dialect
from builder.sources.source import Source


def recognise(source: Source) -> str | None:
    """Returns why the source holds such spans, or None."""
    return "spans of OpenInference" if first_dialect(source) == OPENINFERENCE else None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations in the spans; a span is a record."""
    yield from read_spans(source)


READER = Reader(
    name=OPENINFERENCE,
    summary=(
        "OpenInference spans (openinference.span.kind, llm.input_messages), as Arize Phoenix "
        "and its instrumentations export them: OTLP, rows, nested or flat"
    ),
    recognise=recognise,
    read=read,
)
