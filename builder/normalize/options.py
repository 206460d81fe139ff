"""Defines the options of the normaliser."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

from builder.conversation import Json
from builder.normalize.shared import SharedTools
from builder.options import SUPPLIED
from builder.qwen3.constants import ADDED_TOKENS

Unit = Literal["conversation", "query", "turn"]
Training = Literal["keep", "mask"]


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Options of `train:`: turns that are trained (keep) or are context only (mask).

    errors       a call of the turn failed
    denied       the user or a policy refused a call of the turn
    interrupted  a call of the turn was interrupted before it ended
    repeated     the turn makes exactly the calls of the preceding assistant turn
    rewound      the user took the turn back
    """

    errors: Training = "keep"
    denied: Training = "keep"
    interrupted: Training = "keep"
    repeated: Training = "keep"
    rewound: Training = "mask"

    @property
    def masked(self) -> tuple[str, ...]:
        """The keys whose value is `mask`."""
        return tuple(item.name for item in fields(self) if getattr(self, item.name) == "mask")


@dataclass(frozen=True, slots=True)
class LengthOptions:
    """Options of `limits:` on the lengths of samples (`builder.normalize.windows`).

    max_tokens            the maximum length of a sample
    too_long              a longer one is rejected, split into windows, or cut at its end
    tool_response_tokens  the maximum length of a tool response; a longer one is cut in the middle
    """

    max_tokens: int | None = None
    too_long: Literal["reject", "split", "cut"] = "reject"
    tool_response_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class NormalizeOptions:
    """Options of `normalize:` in the configuration (configs/default.yaml describes each key).

    The last five are not keys: `train` is a section of its own; `supplied_tools` and
    `supplied_system` come from the input, for logs that record neither; `shared_tools` are from
    other sessions of the same agent (None: not known); `added_tokens` are the control tokens of the
    target tokenizer.
    """

    unit: Unit = "conversation"
    system: Literal["keep", "drop", "replace"] = "keep"
    late_system: Literal["user", "keep", "reject"] = "user"
    harness: Literal["keep", "drop"] = "keep"
    reasoning: Literal["drop", "keep"] = "drop"
    end: Literal["call", "answer"] = "call"
    unanswered_calls: Literal["trim", "reject"] = "trim"
    untrained_turns: Literal["split", "weight", "reject"] = "split"
    server_tools: Literal["cut", "untrained"] = "cut"
    parallel_calls: Literal["keep", "split", "reject"] = "keep"
    control_tokens: Literal["context", "neutralise", "reject"] = "context"
    tools: Literal["all", "called"] = "all"
    missing_tools: Literal["infer", "reject"] = "infer"
    tool_scope: Literal["agent", "conversation"] = "agent"
    media: Literal["placeholder", "reject"] = "placeholder"
    allow_eval: bool = False
    train: TrainOptions = field(default_factory=TrainOptions, metadata=SUPPLIED)
    supplied_tools: tuple[Json, ...] | None = field(default=None, metadata=SUPPLIED)
    supplied_system: str | None = field(default=None, metadata=SUPPLIED)
    shared_tools: SharedTools | None = field(default=None, metadata=SUPPLIED)
    added_tokens: tuple[str, ...] = field(default=ADDED_TOKENS, metadata=SUPPLIED)
