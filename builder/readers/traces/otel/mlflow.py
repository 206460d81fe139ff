"""Reads MLflow traces: Trace.to_json() of both versions, artifacts, search_traces rows, OTLP.

Source: docs/formats/mlflow.md.
"""

from __future__ import annotations

from builder.readers.traces.otel.span_log import span_reader
from builder.readers.traces.otel.spans import MLFLOW

READER = span_reader(
    MLFLOW,
    "spans of MLflow",
    "MLflow traces (info, data.spans with mlflow.spanInputs and mlflow.spanOutputs): JSON "
    "of both versions, artifacts, rows of search_traces",
    evidence=("source",),
)
