"""Reads OpenInference spans (Arize Phoenix): OTLP, exported rows, data frames, bare attributes.

Source: docs/formats/openinference.md.
"""

from __future__ import annotations

from builder.readers.traces.otel.span_log import span_reader
from builder.readers.traces.otel.spans import OPENINFERENCE

READER = span_reader(
    OPENINFERENCE,
    "spans of OpenInference",
    "OpenInference spans (openinference.span.kind, llm.input_messages), as Arize Phoenix "
    "and its instrumentations export them: OTLP, rows, nested or flat",
    evidence=("documentation", "files"),
)
