"""Options of the normaliser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from builder.conversation import Json
from builder.options import SUPPLIED
from builder.qwen3.constants import ADDED_TOKENS

Unit = Literal["conversation", "query", "turn"]


@dataclass(frozen=True, slots=True)
class NormalizeOptions:
    """Options of `normalize:` in the configuration (configs/default.yaml describes each key).

    The last three are not keys: `supplied_tools` and `supplied_system` come from the input, for
    logs that record neither; `added_tokens` are the control tokens of the target tokenizer.
    """

    unit: Unit = "conversation"
    system: Literal["keep", "drop", "replace"] = "keep"
    reasoning: Literal["drop", "keep"] = "drop"
    unanswered_calls: Literal["trim", "reject"] = "trim"
    parallel_calls: Literal["keep", "split", "reject"] = "keep"
    control_tokens: Literal["reject", "neutralise"] = "reject"
    missing_tools: Literal["infer", "reject"] = "infer"
    media: Literal["placeholder", "reject"] = "placeholder"
    allow_eval: bool = False
    supplied_tools: tuple[Json, ...] | None = field(default=None, metadata=SUPPLIED)
    supplied_system: str | None = field(default=None, metadata=SUPPLIED)
    added_tokens: tuple[str, ...] = field(default=ADDED_TOKENS, metadata=SUPPLIED)
