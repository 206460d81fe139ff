"""OpenAI's Responses API: captured requests and responses, streams, Batch files, lists of items.

References: docs/formats/openai-responses.md, docs/formats/http-captures.md.
"""

from __future__ import annotations

from builder.readers.api.capture.api_reader import api_reader
from builder.readers.api.capture.dialect import OPENAI_RESPONSES
from builder.readers.api.openai_responses.rows import is_row

READER = api_reader(
    OPENAI_RESPONSES,
    is_row,
    "OpenAI Responses: request/response captures (pair lines, VCR, HAR, Batch, nock), "
    "streams, histories kept by the server (previous_response_id, conversation), and lists "
    "of items",
)
