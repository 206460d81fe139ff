"""The choices a user has in normalising."""

from __future__ import annotations

from dataclasses import dataclass

from builder.conversation import Json
from builder.qwen3.constants import ADDED_TOKENS


@dataclass(frozen=True, slots=True)
class NormalizeOptions:
    """The choices of `normalize:` in the configuration, and what an input supplies.

    `supplied_tools` and `supplied_system` are for logs that record neither. `added_tokens` are
    the control tokens of the tokenizer that the dataset is for.
    """

    unit: str = "conversation"
    system: str = "keep"
    reasoning: str = "drop"
    unanswered_calls: str = "trim"
    parallel_calls: str = "keep"
    control_tokens: str = "reject"
    missing_tools: str = "infer"
    media: str = "placeholder"
    allow_eval: bool = False
    supplied_tools: tuple[Json, ...] | None = None
    supplied_system: str | None = None
    added_tokens: tuple[str, ...] = ADDED_TOKENS
