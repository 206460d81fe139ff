"""In what the templates of the family differ where the format is the same.

All of them write calls, tool responses and the tools block alike (qwen3-template-pitfalls.md,
conformance-vectors.md "Template texts"). They differ in thoughts and in what stands in a system
turn that the sample does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Thoughts(StrEnum):
    """What a template does with the thoughts in assistant text."""

    hybrid = "hybrid"
    """Shows those after the last query, and gives a last answer without one an empty block (Qwen3,
    Thinking-2507, VL-Thinking)."""
    verbatim = "verbatim"
    """Knows none: every assistant text as it is (Instruct-2507, VL-Instruct, Qwen2.5)."""
    last = "last"
    """Drops those of all turns but the last, whose text stays as it is (QwQ)."""
    dropped = "dropped"
    """Drops those of all turns (QwQ's early text)."""


@dataclass(frozen=True, slots=True)
class Style:
    """One template's ways. The defaults are those of the specification.

    default_system  the system text where a sample has neither system nor tools; None: no turn
    tools_lead      what stands before the tools block where a sample has tools and no system
    """

    thoughts: Thoughts = Thoughts.hybrid
    default_system: str | None = None
    tools_lead: str = ""


SPECIFIED = Style()
