"""Defines the options of the verifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from builder.options import options

Mode = Literal["non-thinking", "thinking"]
_MODES: tuple[Mode, ...] = get_args(Mode)


def mode_named(name: str) -> Mode:
    """Returns the mode of that name; the default mode if there is none."""
    return next((mode for mode in _MODES if mode == name), "non-thinking")


Requirement = Literal["schema", "match", "complete", "engine"]
"""What samples may be required to have."""


@options
@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Options of `verify:` in the configuration.

    mode     the mode of inference (`enable_thinking`) that trained turns should match
    require  samples without these are rejected: `schema`, arguments that fit the schema of their
             tool; `match`, all trained turns match inference in `mode`; `complete`, the context of
             each is known; `engine`, no argument has `</tool_call>`, at which engines end a call
    """

    mode: Mode = "non-thinking"
    require: tuple[Requirement, ...] = ()
