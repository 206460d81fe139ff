"""OpenAI chat completions: captured requests and responses, streams, and fine-tuning rows.

References: openai-chat.md, openai-finetune.md, http-captures.md. The envelopes are opened by
`_envelope`, exchanges of one conversation are found by `_histories`, bodies are read by
`_chat_bodies` and rows by `_chat_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from builder.conversation import Event, Ignored
from builder.problem import Problem
from builder.readers._chat_bodies import CHAT
from builder.readers._chat_rows import is_chat, is_row, read_row
from builder.readers._dataset_rows import is_owned
from builder.readers._dialect import OPENAI_CHAT
from builder.readers._envelope import PEEK_EXCHANGES, Exchange, open_exchange, peeked, records
from builder.readers._histories import Log
from builder.source import Record, Source

NAME = OPENAI_CHAT
SUMMARY = (
    "OpenAI chat completions: request/response captures (pair lines, VCR, HAR, Batch, nock), "
    "chunks, and rows with messages and tools"
)


def recognise(source: Source) -> str | None:
    """Chat bodies or rows in the first records, and no other API or dataset before them."""
    if any(map(is_owned, source.peek.objects)):
        return None
    for value in islice(peeked(source), PEEK_EXCHANGES):
        if is_row(value):
            return "rows with messages of chat roles"
        if not isinstance(value, dict) or ("messages" in value and not is_chat(value)):
            continue  # another format's list of that name
        opened = open_exchange(Record("", value))
        name = opened.dialect if isinstance(opened, Exchange) else None
        if name is not None:
            return _reason(opened) if name == NAME and isinstance(opened, Exchange) else None
    return None


def _reason(exchange: Exchange) -> str:
    if exchange.request is not None:
        return "requests to chat completions"
    return "chunks of chat completions" if exchange.events else "responses of chat completions"


def splits(source: Source) -> bool:
    """A line is a row; captured requests are joined to those before them."""
    return source.peek.kind == "jsonl" and all(map(is_row, source.peek.records))


def read(source: Source) -> Iterator[Event]:
    """The source's conversations, and what became of its other records."""
    log = Log(CHAT)
    for item in records(source):
        if isinstance(item, Problem | Ignored):
            yield item
        elif isinstance(item.value, dict) and is_row(item.value):
            yield from read_row(item.where, item.value)
        else:
            opened = open_exchange(item)
            if isinstance(opened, Exchange):
                yield from log.take(opened)
            else:
                yield opened
    yield from log.rest()
