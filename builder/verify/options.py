"""Defines the options of the verifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["non-thinking", "thinking"]
SchemaPolicy = Literal["report", "reject"]
ParityPolicy = Literal["report", "require"]
ContextPolicy = Literal["report", "logged", "rendered", "proven"]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Options of `verify:` in the configuration.

    schema   what to do with arguments that violate their tool's schema
    parity   `require`: reject samples with a trained turn that is not in parity in `mode`
    mode     the inference mode that spans and parity are measured against (`enable_thinking`)
    context  the level (`Context.level`) that the context of each target must have, or `report`
    """

    schema: SchemaPolicy = "report"
    parity: ParityPolicy = "report"
    mode: Mode = "non-thinking"
    context: ContextPolicy = "report"
