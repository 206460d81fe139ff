"""Reads rows of fine-tuning files: messages with tools, and preference pairs (openai-finetune.md).

This project writes rows of this form, with calls and results in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from builder.conversation import Conversation, Event, Json
from builder.problem import Problem
from builder.readers.api.anthropic import rows as anthropic_rows
from builder.readers.api.capture.dialect import ROLES
from builder.readers.api.capture.rows import row_conversation
from builder.readers.api.openai_chat.bodies import TOOL_ROLES, history
from builder.readers.toolkit.media_columns import with_media
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.unknown_keys import ROW_COLUMNS, count_unknown

_KEYS = frozenset({
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
    "annotations", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks",
    "weight", "id", "timestamp",
})  # fmt: skip
"""Keys of a message, including those added by programs that keep lists of messages."""


def is_chat(value: dict[str, Json]) -> bool:
    """Returns whether an object's `messages` are in the form of OpenAI chat."""
    messages = as_list(value.get("messages"))
    return bool(messages) and all(_is_chat_message(as_dict(item)) for item in messages)


def _is_completion(value: dict[str, Json]) -> bool:
    """Returns whether an object has the messages of a prompt and of its completion."""
    lists = [as_list(value.get(key)) for key in ("prompt", "completion")]
    return all(items and is_chat({"messages": items}) for items in lists)


def _is_chat_message(message: dict[str, Json]) -> bool:
    body = message.get("content")
    if as_str(message.get("role")) not in ROLES | TOOL_ROLES or not isinstance(
        body, str | list | None
    ):
        return False
    if isinstance(body, list):
        parts = [as_dict(part) for part in body]
        if any("value" in part for part in parts):
            return False  # LLaMA-Factory's typed parts
        if message["role"] != "tool" and parts and not any("type" in part for part in parts):
            return False  # Bedrock's blocks
    # SWE-agent and OpenHands write calls into the text in a format of their own.
    return not (message["role"] == "assistant" and "<function=" in as_str(body))


def is_list(values: Sequence[Json]) -> bool:
    """Returns whether values are all messages, at least one with a call or a result."""
    messages = [as_dict(value) for value in values]
    if not all(_is_chat_message(message) and message.keys() <= _KEYS for message in messages):
        return False
    return any("tool_calls" in message or message["role"] == "tool" for message in messages)


def is_row(value: Json) -> bool:
    """Returns whether a record is a row, without a model or with an answer at the end."""
    if not isinstance(value, dict):
        return False
    if "preferred_output" in value:
        return is_chat(as_dict(value.get("input")))
    if _is_completion(value):
        return True
    if not is_chat(value) or anthropic_rows.is_body(value):
        return False
    last = as_dict(as_list(value.get("messages"))[-1])
    return "model" not in value or (last.get("role") == "assistant" and not last.get("prefix"))


def read_row(where: str, row: dict[str, Json]) -> Iterator[Event]:
    """Yields the row's conversation; of a preference pair, with the preferred output.

    The other output becomes a rejected conversation (`dispreferred`).
    """
    if _is_completion(row):
        before = [_context(as_dict(item)) for item in as_list(row["prompt"])]
        whole = _conversation(where, where, {**row, "messages": before}, as_list(row["completion"]))
        yield replace(whole, recorded=True) if isinstance(whole, Conversation) else whole
        return
    if "preferred_output" not in row:
        yield _conversation(where, where, row, ())
        return
    body = as_dict(row.get("input"))
    yield _conversation(where, where, body, as_list(row.get("preferred_output")))
    other = as_list(row.get("non_preferred_output"))
    found = _conversation(f"{where} not preferred", where, body, other) if other else None
    if isinstance(found, Conversation):
        problem = Problem("dispreferred", where, "the output that was not preferred", records=0)
        yield replace(found, records=0, problems=(problem,))


def _context(message: dict[str, Json]) -> Json:
    """Returns a message of a prompt, whose answers are not trained."""
    return {**message, "weight": 0} if message.get("role") == "assistant" else message


def _conversation(
    name: str, where: str, body: dict[str, Json], output: list[Json] | tuple[()]
) -> Conversation | Problem:
    messages = [*as_list(body.get("messages")), *output]
    system = as_str(body.get("system"))
    if system and as_dict(messages[0]).get("role") not in ("system", "developer"):
        messages = [{"role": "system", "content": system}, *messages]
    read = history({**body, "messages": messages})
    count_unknown("unknown_column", body, ROW_COLUMNS, read.changes)
    return row_conversation(
        name, where, replace(read, messages=tuple(with_media(read.messages, body)))
    )
