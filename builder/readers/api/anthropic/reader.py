"""Anthropic's Messages API: captured requests and responses, streams, Batch files, rows, lists.

References: docs/formats/anthropic-messages.md, docs/formats/http-captures.md.
"""

from __future__ import annotations

from builder.readers.api.anthropic.rows import is_row
from builder.readers.api.capture.api_reader import api_reader
from builder.readers.api.capture.dialect import ANTHROPIC

READER = api_reader(
    ANTHROPIC,
    is_row,
    "Anthropic Messages: request/response captures (pair lines, VCR, HAR, Batch, nock), "
    "streams, rows and lists of messages; known by its blocks (tool_use, tool_result) and "
    "input_schema",
)
