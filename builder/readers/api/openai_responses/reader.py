"""OpenAI's Responses API: captured requests and responses, streams, Batch files, lists of items.

References: openai-responses.md, http-captures.md. `capture.envelope` opens the envelopes,
`capture.histories` joins the exchanges of a conversation, `bodies` reads the contents, `rows` reads
rows and lists of items.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.api.capture.batch import is_store
from builder.readers.api.capture.captures import first_api, read_captures
from builder.readers.api.capture.dialect import OPENAI_RESPONSES
from builder.readers.api.openai_responses.rows import is_row
from builder.sources.source import Source

NAME = OPENAI_RESPONSES


def recognise(source: Source) -> str | None:
    """Bodies of Responses in the first records, and no other API or row before them."""
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
        "OpenAI Responses: request/response captures (pair lines, VCR, HAR, Batch, nock), "
        "streams, histories kept by the server (previous_response_id, conversation), and lists "
        "of items"
    ),
    recognise=recognise,
    generic=True,
    read=read,
    is_store=is_store,
    splits=splits,
)
