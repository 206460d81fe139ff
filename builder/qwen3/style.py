"""Describes the differences between the chat templates of the Qwen3 family.

They write calls, tool responses and the tools block alike (qwen3-template-pitfalls.md,
conformance-vectors.md "Template texts"). They differ in the treatment of thoughts and in the system
turn that they add to a sample without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Thoughts(StrEnum):
    """How a template treats the thoughts in assistant text."""

    hybrid = "hybrid"
    """Shows thoughts after the last query; adds an empty block to a last answer without one (Qwen3,
    Thinking-2507, VL-Thinking)."""
    verbatim = "verbatim"
    """Keeps every assistant text unchanged (Instruct-2507, VL-Instruct, Qwen2.5)."""
    last = "last"
    """Drops the thoughts of all turns but the last, whose text it keeps unchanged (QwQ)."""
    dropped = "dropped"
    """Drops the thoughts of all turns (the early QwQ template)."""


@dataclass(frozen=True, slots=True)
class Style:
    """The behaviour of one template. The defaults are those of the specification.

    default_system  the system text of a sample with neither system nor tools; None: no turn
    tools_lead      the text before the tools block in a sample with tools but no system text
    """

    thoughts: Thoughts = Thoughts.hybrid
    default_system: str | None = None
    tools_lead: str = ""


SPECIFIED = Style()
