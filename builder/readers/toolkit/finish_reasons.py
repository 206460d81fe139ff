"""Finish reasons of all providers that make an answer unfit as a target."""

from __future__ import annotations

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_str

_COMPLETE = frozenset({"stop", "end_turn", "stop_sequence", "tool_use", "tool_calls"})
_FAULTS = {
    "length": "truncated",
    "max_tokens": "truncated",
    "max_output_tokens": "truncated",
    "model_length": "truncated",
    "model_context_window_exceeded": "truncated",
    "incomplete": "truncated",
    "error": "truncated",
    "cancelled": "truncated",
    "pause_turn": "paused",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "model_armor": "content_filter",
    "image_safety": "content_filter",
    "malformed_function_call": "bad_call",
    "malformed_model_output": "bad_call",
    "malformed_response": "bad_call",
    "malformed_tool_use": "bad_call",
    "missing_thought_signature": "bad_call",
    "too_many_tool_calls": "bad_call",
    "unexpected_tool_call": "bad_call",
}
"""Sources: openai-chat.md, anthropic-messages.md "stop_reason", bedrock-converse.md "stopReason",
gemini-api.md "finishReason". Anthropic's `refusal` means that a filter cut the answer off; a paused
turn continues in the answer to the next request."""


def finish_fault(reason: Json, unknown: str | None = None) -> str | None:
    """Returns the code of the fault that a finish reason describes, or None for a complete answer.

    Ignores case and the name of an enumeration ("FinishReason.SAFETY"). `unknown` is the code for
    any other reason and for values that are not text: some servers use many names for a normal
    end, others only documented ones.
    """
    name = as_str(reason).lower().replace("-", "_").rpartition(".")[2]
    return None if name in _COMPLETE else _FAULTS.get(name, unknown)
