"""The choices a user has in verifying."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The choices of `verify:` in the configuration.

    schema  report or reject arguments that break their tool's schema
    parity  report, or require each taught turn to be in parity with inference in `mode`
    mode    non-thinking or thinking: the inference that spans and parity are measured against
    """

    schema: str = "report"
    parity: str = "report"
    mode: str = "non-thinking"
