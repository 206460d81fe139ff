"""MLflow's traces: Trace.to_json() of both versions, artifacts, rows of search_traces, OTLP.

Source: mlflow.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers._span_log import read_spans
from builder.readers._spans import MLFLOW, first_dialect
from builder.source import Source

NAME = MLFLOW
SUMMARY = (
    "MLflow traces (info, data.spans with mlflow.spanInputs and mlflow.spanOutputs): JSON of "
    "both versions, artifacts, rows of search_traces"
)


def recognise(source: Source) -> str | None:
    """Why the source holds such traces, or None."""
    return "spans of MLflow" if first_dialect(source) == MLFLOW else None


def read(source: Source) -> Iterator[Event]:
    """The conversations that the spans tell of; a span is a record."""
    yield from read_spans(source)
