"""MLflow's traces: Trace.to_json() of both versions, artifacts, rows of search_traces, OTLP.

Source: mlflow.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.traces.otel.span_log import read_spans
from builder.readers.traces.otel.spans import MLFLOW, first_dialect
from builder.sources.source import Source


def recognise(source: Source) -> str | None:
    """Returns why the source holds such traces, or None."""
    return "spans of MLflow" if first_dialect(source) == MLFLOW else None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations in the spans; a span is a record."""
    yield from read_spans(source)


READER = Reader(
    name=MLFLOW,
    summary=(
        "MLflow traces (info, data.spans with mlflow.spanInputs and mlflow.spanOutputs): JSON "
        "of both versions, artifacts, rows of search_traces"
    ),
    recognise=recognise,
    read=read,
)
