"""Recognises rows: whole conversations in the form of a request to Anthropic's Messages API.

A sent request has a model and a limit. A row made for training may lack both, and ends with the
assistant's answer. Source: docs/formats/anthropic-messages.md "Request", "Blocks".
"""

from __future__ import annotations

from collections.abc import Sequence

from builder.conversation import Json
from builder.readers.api.anthropic.blocks import blocks, has_blocks
from builder.readers.api.capture.dialect import ANTHROPIC, request_dialect
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str

_NESTED = frozenset({
    "messages", "tools", "system", "metadata", "thinking", "tool_choice", "stop_sequences",
    "context_management", "mcp_servers", "container", "betas", "output_config", "output_format",
    "cache_control",
})  # fmt: skip
"""Keys of a request or row whose values are lists or objects."""
_KEYS = frozenset({"role", "content", "id", "timestamp"})
"""Keys of a message, including those added by programs that keep lists of messages."""
_ROLES = frozenset({"user", "assistant", "system"})


def is_body(value: dict[str, Json]) -> bool:
    """Returns whether an object's `messages` are in Anthropic's form."""
    if "messages" not in value or request_dialect(value) != ANTHROPIC:
        return False
    messages = as_dicts(value.get("messages"))
    if not messages or not all(map(_is_message, messages)):
        return False
    nested = {key for key, item in value.items() if isinstance(item, list | dict)}
    return nested <= _NESTED or has_blocks(messages)


def _is_message(message: dict[str, Json]) -> bool:
    if as_str(message.get("role")) not in _ROLES or "tool_calls" in message:
        return False
    content = message.get("content")
    typed = all(isinstance(block.get("type"), str) for block in blocks(content))
    return isinstance(content, str | list) and typed


def is_list(values: Sequence[Json]) -> bool:
    """Returns whether values are all messages, at least one with a call or a result."""
    messages = [as_dict(value) for value in values]
    if not all(_is_message(message) and message.keys() <= _KEYS for message in messages):
        return False
    return has_blocks(messages)


def is_row(value: Json) -> bool:
    """Returns whether a record is a row: without a model, or with an answer but without a limit.

    The API requires both; a request with both may end with the beginning of its answer.
    """
    if not isinstance(value, dict) or not is_body(value):
        return False
    last = as_dict(as_list(value.get("messages"))[-1])
    return "model" not in value or ("max_tokens" not in value and last.get("role") == "assistant")
