"""Recognises items without a request: files that are one list of items, and rows with `input`.

Agents store sessions as such lists, which contain the messages, but not the instructions and tools
of each request. Source: docs/formats/openai-responses.md "Items".
"""

from __future__ import annotations

from collections.abc import Sequence

from builder.conversation import Json
from builder.readers.api.capture.dialect import ROLES
from builder.readers.api.openai_responses.items import ITEMS, item_type
from builder.readers.toolkit.narrow import as_dict, as_list, as_str

_PAIRED = frozenset({"function_call", "function_call_output"})
_ANSWERS = frozenset({"output", "response", "outputs"})


def is_list(values: Sequence[Json]) -> bool:
    """Returns whether values are all items, at least one a function call or its output."""
    if not all(_is_item(as_dict(value)) for value in values):
        return False
    return any(item_type(as_dict(value)) in _PAIRED for value in values)


def _is_item(item: dict[str, Json]) -> bool:
    kind = item_type(item)
    if kind == "message":
        return as_str(item.get("role")) in ROLES and isinstance(item.get("content"), str | list)
    if kind in _PAIRED:
        return isinstance(item.get("call_id"), str)
    return kind in ITEMS and kind != "item_reference"


def is_row(value: Json) -> bool:
    """Returns whether a record is a row: items under `input`, without a model and an answer."""
    if not isinstance(value, dict) or "model" in value or not _ANSWERS.isdisjoint(value):
        return False
    return is_list(as_list(value.get("input")))
