"""OpenAI chat completions: captured requests and responses, streams, fine-tuning rows, lists.

References: docs/formats/openai-chat.md, docs/formats/http-captures.md.
"""

from __future__ import annotations

from builder.readers.api.capture.api_reader import api_reader
from builder.readers.api.capture.dialect import OPENAI_CHAT
from builder.readers.api.openai_chat.rows import is_row

READER = api_reader(
    OPENAI_CHAT,
    is_row,
    "OpenAI chat completions: request/response captures (pair lines, VCR, HAR, Batch, "
    "nock), chunks, answers of Ollama's own API, rows with messages and tools, lists of messages",
)
