"""Gemini's generateContent, streamGenerateContent and interactions: captured bodies.

References: docs/formats/gemini-api.md, docs/formats/http-captures.md.
"""

from __future__ import annotations

from builder.readers.api.capture.api_reader import api_reader
from builder.readers.api.capture.dialect import GEMINI
from builder.readers.api.gemini.bodies import is_generate_row

READER = api_reader(
    GEMINI,
    is_generate_row,
    "Gemini API and Vertex AI: captures of generateContent and interactions, streams, Batch "
    "files, dumps of the Python SDK; known by contents with parts, candidates, or typed "
    "steps",
)
