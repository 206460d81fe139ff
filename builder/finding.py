"""A fault of a sample: what a check found, and where."""

from __future__ import annotations

from dataclasses import dataclass

CONTEXT = 40
"""Code points shown on either side of a difference."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: code of the check, what it is, and where (message index, offset in code points).

    `expected` and `found` are the two contexts of a difference.
    """

    code: str
    message: str
    turn: int | None = None
    offset: int | None = None
    expected: str | None = None
    found: str | None = None


def differ(code: str, message: str, expected: str, found: str) -> Finding:
    """The finding of a difference: its first offset and both contexts."""
    offset = next(
        (at for at, (one, two) in enumerate(zip(expected, found, strict=False)) if one != two),
        min(len(expected), len(found)),
    )
    return Finding(
        code,
        message,
        offset=offset,
        expected=context(expected, offset),
        found=context(found, offset),
    )


def context(text: str, offset: int) -> str:
    """What stands on either side of a place."""
    return text[max(0, offset - CONTEXT) : offset + CONTEXT]
