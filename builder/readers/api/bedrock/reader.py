"""Amazon Bedrock: captures of Converse and ConverseStream, and model invocation logs.

Reference: bedrock-converse.md, http-captures.md. `capture.envelope` and `capture.gateway_logs` open
the envelopes, `capture.histories` joins the exchanges of a conversation, `bodies` reads the
contents. An invocation log also holds InvokeModel bodies, in the form of the model's own API.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event
from builder.readers import Reader
from builder.readers.api.capture.captures import first_api, read_captures
from builder.readers.api.capture.dialect import BEDROCK
from builder.sources.source import Source

NAME = BEDROCK


def recognise(source: Source) -> str | None:
    """Returns a reason if the first exchange with a known API is one of Converse."""
    return "Converse bodies or invocation logs" if first_api(source)[0] == NAME else None


def read(source: Source) -> Iterator[Event]:
    """Returns the source's conversations and the events of its other records."""
    return read_captures(source, NAME)


READER = Reader(
    name=NAME,
    summary=(
        "Amazon Bedrock: Converse captures (pair lines, VCR, HAR, nock), event streams, and "
        "model invocation logs of S3 and CloudWatch; known by blocks without a type, or by "
        "schemaType"
    ),
    recognise=recognise,
    generic=True,
    read=read,
)
