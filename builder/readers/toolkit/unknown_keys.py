"""Counts what a reader does not know: keys of messages and columns of rows.

They are read past, and named in `meta.changes`, so that nothing with text is lost silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from builder.conversation import Json
from builder.readers.toolkit.narrow import unknown_code
from builder.readers.toolkit.thoughts import THOUGHT_KEYS

LONG = 20
"""A text without a space that is no longer is an id, a name or a state."""

MESSAGE_KEYS = THOUGHT_KEYS | {
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
    "annotations", "weight", "loss", "prefix", "id", "timestamp", "created_at", "model", "type",
    "images", "videos", "audios", "cache_control", "parsed", "executed_tools", "from", "value",
    "loss_weight", "provider_specific_fields", "encrypted_content", "thought_signature", "usage",
    "phase", "status", "citations", "reasoning_signature", "token_ids", "logprobs", "uuid",
}  # fmt: skip
"""Keys of chat messages that readers know, or that hold no words of the conversation."""

ROW_COLUMNS = frozenset({
    "messages", "conversations", "input", "preferred_output", "non_preferred_output", "prompt",
    "completion", "chosen", "rejected", "kto_tag", "label", "system", "tools", "tool_defs",
    "functions", "function_call", "tool_choice", "parallel_tool_calls", "response_format",
    "logit_bias", "stop", "stream_options", "reasoning", "provider", "extra_body", "modalities",
    "audio", "prediction", "web_search_options", "thinking", "chat_template_kwargs", "usage",
    "plugins", "models", "transforms", "metadata", "extra_info", "reward_model", "info", "metrics",
    "ground_truth", "data_source", "ability", "answer", "task", "id", "uuid", "model", "license",
    "source", "dataset", "category", "images", "image", "videos", "video", "audios", "reward",
    "rewards", "score", "success", "resolved", "passed", "correct", "error", "labels",
    "exit_status", "feedback", "benchmark", "completed", "partial", "timestamp", "created",
    "is_correct", "split", "index", "agent_name", "trajectory", "url", "user", "cache_control",
})  # fmt: skip
"""Columns that readers know, or that describe the row: verl's and TRL's, and a request's fields."""


def count_unknown(
    code: str, value: Mapping[str, Json], known: Collection[str], changes: Counter[str]
) -> None:
    """Counts each key with a text, list or object that is not known, as `CODE:KEY`."""
    for key, item in value.items():
        if key not in known and _has_content(item):
            changes[unknown_code(key).replace("unknown", code, 1)] += 1


def _has_content(item: Json) -> bool:
    if isinstance(item, str):
        return len(item) > LONG or " " in item.strip()
    return isinstance(item, list | dict) and bool(item)
