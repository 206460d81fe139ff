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
    """Options of `verify:` (configs/default.yaml describes each key)."""

    mode: Mode = "non-thinking"
    require: tuple[Requirement, ...] = ()
