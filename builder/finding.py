"""Defines a finding: a fault that a check found in a sample, and its location."""

from __future__ import annotations

from dataclasses import dataclass

CONTEXT = 40
"""Code points of context on either side of a difference."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One fault: the code of the check, a message, and the location.

    `turn` is the index of a message, `offset` counts code points; `expected` and `found` are the
    texts around a difference.
    """

    code: str
    message: str
    turn: int | None = None
    offset: int | None = None
    expected: str | None = None
    found: str | None = None


def differ(code: str, message: str, expected: str, found: str) -> CheckFinding:
    """Returns the finding for two texts that differ, with the text around the first difference."""
    offset = next(
        (at for at, (one, two) in enumerate(zip(expected, found, strict=False)) if one != two),
        min(len(expected), len(found)),
    )
    return CheckFinding(
        code,
        message,
        offset=offset,
        expected=context(expected, offset),
        found=context(found, offset),
    )


def context(text: str, offset: int) -> str:
    """Returns the text around an offset."""
    return text[max(0, offset - CONTEXT) : offset + CONTEXT]
