"""Finish reasons of all providers that make an answer unfit as a target."""

from __future__ import annotations

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_str

_COMPLETE = frozenset({
    "stop", "end_turn", "stop_sequence", "tool_use", "tool_calls", "complete",
    "tool_call",
})  # fmt: skip
_FAULTS = {
    "truncated": (
        "length", "max_tokens", "max_output_tokens", "model_length",
        "model_context_window_exceeded", "incomplete", "error", "cancelled", "timeout",
    ),
    "paused": ("pause_turn",),
    "content_filter": (
        "content_filter", "content_filtered", "guardrail_intervened", "refusal", "safety",
        "recitation", "blocklist", "prohibited_content", "spii", "model_armor", "image_safety",
    ),
    "bad_call": (
        "malformed_function_call", "malformed_model_output", "malformed_response",
        "malformed_tool_use", "missing_thought_signature", "too_many_tool_calls",
        "unexpected_tool_call",
    ),
}  # fmt: skip
"""Sources: the pages of the APIs in docs/formats. Anthropic's `refusal` means that a filter cut the
answer off; a paused turn continues in the answer to the next request."""
_CODES = {reason: code for code, reasons in _FAULTS.items() for reason in reasons}


def finish_fault(reason: Json, unknown: str | None = None) -> str | None:
    """Returns the code of the fault that a finish reason describes, or None for a complete answer.

    Ignores case and the name of an enumeration ("FinishReason.SAFETY"). `unknown` is the code for
    any other reason and for values that are not text: some servers use many names for a normal
    end, others only documented ones.
    """
    name = as_str(reason).lower().replace("-", "_").rpartition(".")[2]
    return None if name in _COMPLETE else _CODES.get(name, unknown)
