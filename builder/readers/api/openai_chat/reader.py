"""OpenAI chat completions: captured requests and responses, streams, fine-tuning rows, lists.

References: openai-chat.md, openai-finetune.md, http-captures.md. `capture.envelope` opens the
envelopes, `capture.histories` joins the exchanges of a conversation, `bodies` and `rows` read the
contents.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.api.capture.batch import is_store
from builder.readers.api.capture.captures import first_api, read_captures
from builder.readers.api.capture.dialect import OPENAI_CHAT
from builder.readers.api.openai_chat.rows import is_row
from builder.sources.source import Source

NAME = OPENAI_CHAT


def recognise(source: Source) -> str | None:
    """Returns a reason if the first known record is a chat body, a row or a list of messages."""
    name, reason = first_api(source)
    return reason if name == NAME else None


def splits(source: Source) -> bool:
    """Tells whether lines are independent: rows are, captured requests build on earlier ones."""
    return source.peek.kind == "jsonl" and all(map(is_row, source.peek.records))


def read(source: Source) -> Iterator[Event]:
    """Returns the source's conversations and the events of its other records."""
    return read_captures(source, NAME)


READER = Reader(
    name=NAME,
    summary=(
        "OpenAI chat completions: request/response captures (pair lines, VCR, HAR, Batch, "
        "nock), chunks, rows with messages and tools, and lists of messages"
    ),
    recognise=recognise,
    generic=True,
    read=read,
    is_store=is_store,
    splits=splits,
)
