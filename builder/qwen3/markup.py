"""Where the markup of calls and responses stands in a message, and which message asks.

Both the renderer and its inverse go by these rules. All of them are linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.qwen3.constants import TOOL_CALL, TOOL_RESPONSE, TOOL_RESPONSE_END

# The white space of the specification's expression, which is JavaScript's: Python's \s has other
# members (U+001C to U+001F and U+0085 are in it, U+FEFF is not).
_SPACE = "[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
CALL_PATTERN = re.compile(rf"<tool_call>{_SPACE}*(\{{[\s\S]*?\}}){_SPACE}*</tool_call>")
r"""The specification's `/<tool_call>\s*(\{[\s\S]*?\})\s*<\/tool_call>/g`, to the letter."""

_CALL_OPENS = re.compile(rf"<tool_call>{_SPACE}*(?=\{{)")
_CALL_CLOSES = re.compile(rf"\}}{_SPACE}*</tool_call>")

_RESPONSE_OPENS = f"{TOOL_RESPONSE}\n"
_RESPONSE_CLOSES = f"\n{TOOL_RESPONSE_END}"
RESPONSE_BREAK = f"{_RESPONSE_CLOSES}\n{_RESPONSE_OPENS}"
"""What stands between two responses of one turn."""


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A call found in a text: `text[start:end]` with its tags, `json` is what is between them."""

    start: int
    end: int
    json: str


def call_blocks(text: str, start: int = 0) -> Iterator[CallBlock]:
    """What `CALL_PATTERN` finds from `start` on, without its cost on many unclosed tags.

    The expression's lazy part ends at the first `}` that a closing tag follows, so an opening tag
    without one means that no later opening tag has one either.
    """
    if TOOL_CALL not in text:
        return
    while opening := _CALL_OPENS.search(text, start):
        closing = _CALL_CLOSES.search(text, opening.end() + 1)
        if closing is None:
            return
        json = text[opening.end() : closing.start() + 1]
        yield CallBlock(opening.start(), closing.end(), json)
        start = closing.end()


def looks_like_responses(content: str) -> bool:
    """The template's own test: a user message that passes it is no query."""
    return content.startswith(TOOL_RESPONSE) and content.endswith(TOOL_RESPONSE_END)


def read_responses(content: str) -> tuple[str, ...] | None:
    """The responses of a tool turn; None if the content is not exactly what the template writes."""
    opens, closes = len(_RESPONSE_OPENS), len(_RESPONSE_CLOSES)
    if not (content.startswith(_RESPONSE_OPENS) and content.endswith(_RESPONSE_CLOSES)):
        return None
    if len(content) < opens + closes:
        return None
    return tuple(content[opens:-closes].split(RESPONSE_BREAK))


def write_responses(responses: Sequence[str]) -> str:
    """The content of the user turn that carries the responses. Inverse: `read_responses`."""
    return _RESPONSE_OPENS + RESPONSE_BREAK.join(responses) + _RESPONSE_CLOSES


def last_query(messages: Sequence[tuple[str, str]]) -> int:
    """The template's last_query_index: thoughts after it are kept, thoughts before it dropped.

    It is the index of the last user message that does not look like tool responses; where there
    is none, of the last message, so that no thought is kept at all.
    """
    for index in range(len(messages) - 1, -1, -1):
        role, content = messages[index]
        if role == "user" and not looks_like_responses(content):
            return index
    return len(messages) - 1
