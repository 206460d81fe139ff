"""Tells the words of a person in a user message from text that an agent program inserted.

Judges by form alone, because a dataset does not say who wrote a text: nothing but the display
depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_OPENING = re.compile(
    r"<(?P<name>[A-Za-z]+(?:[-_][A-Za-z]+)+|instructions|INSTRUCTIONS)(?:\s[^<>]{0,400})?>"
)
"""`<command-name>`, `<ide_selection>`, `<system-reminder>`, …"""
_OPENING_OR_CLOSING = re.compile(rf"{_OPENING.pattern}|</[A-Za-z][A-Za-z_-]*>")
_LINES = re.compile(
    r"^(?:Caveat: The messages below|\[Request interrupted by user|\[Image: source:"
    r"|# AGENTS\.md instructions for )[^\n]*$",
    re.MULTILINE,
)
_WHOLE = (
    "This session is being continued from a previous conversation",
    "Base directory for this skill:",
)
"""Beginnings of text that a program wrote to its end."""
_WRAPPERS = re.compile(
    r"</?(?:user_query|user_request|user_message|user_prompt|user_input|task|feedback)>"
)
"""Tags that agent programs put around the words of a person."""
_READ = 20_000
"""Characters of a message that are searched for the words of a person."""


def pieces(content: str) -> Iterator[tuple[str, str]]:
    """Yields (name, text) of consecutive pieces: the name is "" for the words of a person."""
    done = 0
    for start, end in (*_inserted(content), (len(content), len(content))):
        between = content[done:start]
        if between.strip() or start == end:
            is_program = between.lstrip().startswith(_WHOLE)
            if between or not done:
                yield shown_name(between) if is_program else "", between
            done = start
        if end > start:
            yield shown_name(content[done:end]), content[done:end]
            done = end


def shown_name(inserted: str) -> str:
    """Returns the name of inserted text: that of its element, or its first words."""
    opening = _OPENING.match(inserted.lstrip())
    return opening[1] if opening else f"{' '.join(inserted[:200].split()[:5])} …"


def words_of_person(messages: Iterable[str]) -> str:
    """Returns the first words of a person in user messages; "" if there are none.

    If no message has any, returns the first message without inserted lines and names of elements.
    """
    first: str | None = None
    for content in messages:
        first = content if first is None else first
        read = _WRAPPERS.sub("", content[:_READ])
        words = "".join(text for name, text in pieces(read) if not name).strip()
        if words:
            return words
    bare = _LINES.sub("", _OPENING_OR_CLOSING.sub(" ", first or "")).strip()
    return bare or first or ""


def _inserted(content: str) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of inserted texts in order.

    An element without an end counts only where no words of a person precede it: its end was cut.
    """
    unclosed: set[str] = set()
    matches = sorted(
        (*_OPENING.finditer(content), *_LINES.finditer(content)), key=lambda item: item.start()
    )
    done = 0
    for match in matches:
        start, end = match.span()
        if start < done or _WRAPPERS.match(content, start):
            continue
        if name := match.groupdict().get("name"):
            closing = f"</{name}>"
            last = -1 if name in unclosed else content.find(closing, end)
            if last < 0:
                unclosed.add(name)
                if content[done:start].strip():
                    continue
            end = last + len(closing) if last >= 0 else len(content)
        yield start, end
        done = end
