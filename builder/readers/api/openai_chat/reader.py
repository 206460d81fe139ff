"""OpenAI chat completions: captured requests and responses, streams, fine-tuning rows, lists.

References: openai-chat.md, openai-finetune.md, http-captures.md. The envelopes are opened by
`_envelope`, exchanges of one conversation are found by `_histories`, bodies are read by
`_chat_bodies` and rows by `_chat_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.agents.openhands.views import is_dump
from builder.readers.api.capture.batch import is_store
from builder.readers.api.capture.captures import first_api, read_captures
from builder.readers.api.capture.dialect import OPENAI_CHAT
from builder.readers.api.openai_chat.rows import is_row
from builder.readers.datasets.chat_rows import is_owned
from builder.readers.traces.vercel_ai_sdk.ui import has_sdk_messages
from builder.sources.source import Source

NAME = OPENAI_CHAT


def recognise(source: Source) -> str | None:
    """Chat bodies, rows or messages in the first records, and no other API or dataset before."""
    if any(map(is_owned, source.peek.objects)) or any(map(has_sdk_messages, source.peek.records)):
        return None
    if is_dump(source):
        return None
    name, reason = first_api(source)
    return reason if name == NAME else None


def splits(source: Source) -> bool:
    """A line is a row; captured requests are joined to those before them."""
    return source.peek.kind == "jsonl" and all(map(is_row, source.peek.records))


def read(source: Source) -> Iterator[Event]:
    """The source's conversations, and what became of its other records."""
    return read_captures(source, NAME)


READER = Reader(
    name=NAME,
    summary=(
        "OpenAI chat completions: request/response captures (pair lines, VCR, HAR, Batch, "
        "nock), chunks, rows with messages and tools, and lists of messages"
    ),
    recognise=recognise,
    read=read,
    is_store=is_store,
    splits=splits,
)
