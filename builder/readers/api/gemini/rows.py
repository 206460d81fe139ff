"""Rows of tuning files for Gemini: bodies of generateContent that end with the model's answer.

Source: gemini-api.md "Tuning files".
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event, Json
from builder.readers.api.capture.dialect import GEMINI, request_dialect
from builder.readers.api.capture.rows import row_conversation
from builder.readers.api.gemini.bodies import history
from builder.readers.toolkit.narrow import as_dict, as_list


def is_row(value: Json) -> bool:
    """Returns whether a record is a body of generateContent whose last content is the model's."""
    if not isinstance(value, dict) or request_dialect(value) != GEMINI:
        return False
    contents = as_list(value.get("contents"))
    return bool(contents) and as_dict(contents[-1]).get("role") == "model"


def read_row(where: str, row: dict[str, Json]) -> Iterator[Event]:
    """Yields the row's conversation."""
    yield row_conversation(where, where, history(row))
