"""Describes what a chat template does: a `Style` has the behaviour of one template.

All templates here write turns, a tools block, calls and tool responses. They differ in the dialect
of the calls (`builder.qwen3.dialect`), in the treatment of thoughts, in the system turn, in the
whitespace around the parts, and in what they refuse. Everything else of this package is common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from builder.qwen3.constants import TOOLS_BEGIN, TOOLS_END
from builder.qwen3.dialect import Dialect
from builder.qwen3.json_calls import JSON


class Thoughts(StrEnum):
    """How a template treats the thoughts in assistant text."""

    hybrid = "hybrid"
    """Shows thoughts after the last query; adds an empty block to a last answer without one (Qwen3,
    Thinking-2507, VL-Thinking)."""
    current = "current"
    """Writes a block, empty or not, in every turn after the last query (Qwen3.5, 3.6)."""
    every = "every"
    """Writes a block, empty or not, in every turn (Qwen3.8; 3.6 with `preserve_thinking`)."""
    verbatim = "verbatim"
    """Keeps every assistant text unchanged (Instruct-2507, VL-Instruct, Coder, Qwen2.5)."""
    last = "last"
    """Drops the thoughts of all turns but the last, whose text it keeps unchanged (QwQ)."""
    dropped = "dropped"
    """Drops the thoughts of all turns (the early QwQ template)."""

    @property
    def has_blocks(self) -> bool:
        """Whether the template itself writes think blocks."""
        return self in (Thoughts.hybrid, Thoughts.current, Thoughts.every)


@dataclass(frozen=True, slots=True)
class Markers:
    """The texts around a turn: `begin` role `middle` content `end` and a newline."""

    begin: str = "<|im_start|>"
    middle: str = "\n"
    end: str = "<|im_end|>"

    @property
    def tokens(self) -> tuple[str, ...]:
        """The markers that must be tokens."""
        return tuple(text for text in (self.begin, self.middle, self.end) if text != "\n")

    def header(self, role: str) -> str:
        """Returns the header of a turn."""
        return f"{self.begin}{role}{self.middle}"


CHATML = Markers()


@dataclass(frozen=True, slots=True)
class ToolsText:
    """The tools block of the system turn: `begin`, one line or more per definition, `end`.

    write   returns the text of a definition, given its JSON text
    exact   whether the definitions can be read back from the block
    first   whether the block precedes the system text
    """

    begin: str = TOOLS_BEGIN
    end: str = TOOLS_END
    write: Callable[[str], str] = str
    exact: bool = True
    first: bool = False


@dataclass(frozen=True, slots=True)
class Style:
    """The behaviour of one template. The defaults are those of Qwen3.

    dialect         how calls are written and read back
    markers         the texts around turns
    tools           the tools block
    default_system  the system text of a sample with neither system nor tools; None: no turn
    tools_lead      the text before the tools block in a sample with tools but no system text
    preface         the text with which the template begins every system turn ("" if it has none)
    before_call     what separates the text of a turn from its first call
    between_calls   what separates two calls
    response_edges  what precedes and follows the blocks of a turn of tool responses
    trims           whose edges of white space the template removes: of no content, of all, or of
                    the text of a turn with calls
    fills           whether a block of thoughts is written where there is no thought
    beside          whether thoughts are read only from `reasoning_content`
    needs_query     whether it refuses a conversation without a query
    """

    thoughts: Thoughts = Thoughts.hybrid
    default_system: str | None = None
    tools_lead: str = ""
    dialect: Dialect = JSON
    markers: Markers = CHATML
    tools: ToolsText = ToolsText()
    preface: str = ""
    before_call: str = "\n"
    between_calls: str = "\n"
    response_edges: tuple[str, str] = ("", "")
    trims: Literal["none", "all", "called"] = "none"
    fills: bool = True
    beside: bool = False
    needs_query: bool = False

    @property
    def is_specified(self) -> bool:
        """Whether calls, responses, turns and definitions are written as Qwen3's template does."""
        own = (self.dialect, self.markers, self.tools, self.response_edges)
        return own == (JSON, CHATML, ToolsText(), ("", "")) and not self.beside

    @property
    def assistant(self) -> str:
        """The header of an assistant turn."""
        return self.markers.header("assistant")

    def strip(self, thought: str) -> str:
        """Removes what the template removes at both ends of a thought."""
        return thought.strip(None if self.trims == "all" else "\n")


SPECIFIED = Style()
