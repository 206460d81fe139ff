"""Gemini's generateContent, streamGenerateContent and interactions: captured bodies.

Reference: gemini-api.md, http-captures.md. `capture.envelope` opens the envelopes,
`capture.histories` joins the exchanges of a conversation, `bodies` reads the contents.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.api.capture.captures import first_api, read_captures
from builder.readers.api.capture.dialect import GEMINI
from builder.sources.source import Source

NAME = GEMINI


def recognise(source: Source) -> str | None:
    """Returns a reason if the first exchange whose API is known is of Gemini."""
    return "bodies of generateContent or interactions" if first_api(source)[0] == NAME else None


def read(source: Source) -> Iterator[Event]:
    """Returns the source's conversations and the events of its other records."""
    return read_captures(source, NAME)


READER = Reader(
    name=NAME,
    summary=(
        "Gemini API and Vertex AI: captures of generateContent and interactions, streams, Batch "
        "files, dumps of the Python SDK; known by contents with parts, candidates, or typed "
        "steps"
    ),
    recognise=recognise,
    generic=True,
    read=read,
)
