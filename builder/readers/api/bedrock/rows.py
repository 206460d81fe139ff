"""Rows of fine-tuning files for Bedrock: bodies of Converse that end with the assistant's answer.

Source: bedrock-converse.md "Fine-tuning" (`schemaVersion` bedrock-conversation-2024).
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event, Json
from builder.readers.api.bedrock.bodies import history
from builder.readers.api.capture.dialect import BEDROCK, request_dialect
from builder.readers.api.capture.rows import row_conversation
from builder.readers.toolkit.narrow import as_dict, as_list


def is_row(value: Json) -> bool:
    """Returns whether a record is a body of Converse whose last message is the assistant's."""
    if not isinstance(value, dict) or request_dialect(value) != BEDROCK:
        return False
    messages = as_list(value.get("messages"))
    return bool(messages) and as_dict(messages[-1]).get("role") == "assistant"


def read_row(where: str, row: dict[str, Json]) -> Iterator[Event]:
    """Yields the row's conversation."""
    yield row_conversation(where, where, history(row))
