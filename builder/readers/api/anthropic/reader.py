"""Anthropic's Messages API: captured requests and responses, streams, Batch files, rows, lists.

References: anthropic-messages.md, http-captures.md. `capture.envelope` opens the envelopes,
`capture.histories` joins the exchanges of a conversation, `bodies` and `rows` read the contents.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.api.anthropic.rows import is_row
from builder.readers.api.capture.batch import is_store
from builder.readers.api.capture.captures import first_api, read_captures
from builder.readers.api.capture.dialect import ANTHROPIC
from builder.sources.source import Source

NAME = ANTHROPIC


def recognise(source: Source) -> str | None:
    """Bodies of Messages or rows in the first records, and no other API before them."""
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
        "Anthropic Messages: request/response captures (pair lines, VCR, HAR, Batch, nock), "
        "streams, rows and lists of messages; known by its blocks (tool_use, tool_result) and "
        "input_schema"
    ),
    recognise=recognise,
    generic=True,
    read=read,
    is_store=is_store,
    splits=splits,
)
