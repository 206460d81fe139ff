"""Defines the options of the verifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from builder.options import check_values, refusing_unknown

Mode = Literal["non-thinking", "thinking"]
_MODES: tuple[Mode, ...] = get_args(Mode)


def mode_named(name: str) -> Mode:
    """Returns the mode of that name; the default mode if there is none."""
    return next((mode for mode in _MODES if mode == name), "non-thinking")


SchemaPolicy = Literal["report", "reject"]
ParityPolicy = Literal["report", "require"]
_BreaksPolicy = Literal["report", "reject"]
_ContextPolicy = Literal["report", "logged", "rendered", "proven"]


@refusing_unknown
@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Options of `verify:` in the configuration.

    schema              what to do with arguments that violate their tool's schema
    parity              `require`: reject samples with a trained turn that is not in parity in
                        `mode`
    mode                the inference mode that spans and parity are measured against
                        (`enable_thinking`)
    context             the level (`Context.level`) that the context of each target must have, or
                        `report`
    engine_breaks_call  what to do with calls whose arguments contain `</tool_call>`, at which
                        engines end the call
    """

    schema: SchemaPolicy = "report"
    parity: ParityPolicy = "report"
    mode: Mode = "non-thinking"
    context: _ContextPolicy = "report"
    engine_breaks_call: _BreaksPolicy = "report"

    def __post_init__(self) -> None:
        """Raises UsageError for a value that is none of the field's."""
        check_values(self)
