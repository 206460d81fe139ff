"""Reads spans and log records of OpenTelemetry's GenAI conventions, from OTLP JSON or SDK dumps.

Source: docs/formats/otel-genai.md.
"""

from __future__ import annotations

from builder.readers.traces.otel.span_log import span_reader
from builder.readers.traces.otel.spans import OTEL

READER = span_reader(
    OTEL,
    "spans with gen_ai attributes",
    "OpenTelemetry GenAI spans and events (gen_ai.* attributes), OpenLLMetry's too: OTLP "
    "JSON, dumps of the SDKs, lists and rows of spans",
    evidence=("documentation", "files"),
    generic=True,
)
