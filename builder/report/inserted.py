"""Tells the words of a person in a user message from text that an agent program inserted.

Judges by form alone, because a dataset does not say who wrote a text: nothing but the display
depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_NAME = (
    r"[A-Za-z]+(?:[-_:][A-Za-z]+)+"  # command-name, ide_selection, qwen:user-prompt-submit-context
    r"|[a-z]+(?:Context|Memory|Instructions|Info|Reminders?|Rules|State)"
    r"|instructions|INSTRUCTIONS|permissions|skill|system"
)
_MATERIAL = r"context|attachments?|rules|environment|memory|memories|documents?|reminder"
"""Elements that a person may have written, too, but not to say what they want."""


def _opening(names: str) -> re.Pattern[str]:
    return re.compile(rf"<(?P<name>{names})(?:\s[^<>]{{0,400}})?>")


_OPENING = _opening(_NAME)
_OPENING_IN_TITLE = _opening(f"{_NAME}|{_MATERIAL}")
_OPENING_OR_CLOSING = re.compile(rf"{_OPENING.pattern}|</[A-Za-z][A-Za-z_:-]*>")
_LINES = re.compile(
    r"^(?:Caveat: The messages below|\[Request interrupted by user|\[Image: source:"
    r"|\[Response interrupted by|# (?:AGENTS|CLAUDE|GEMINI)\.md instructions\b)[^\n]*$"
    r"|^The following is an? (?=<[A-Z_]+>)",
    re.MULTILINE,
)
_WHOLE = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
    "Some of the conversation history has been summarized",
    "This is an automatically generated checkpoint condensing",
    "Your response above was cut off mid-stream",
    "Output token limit hit.",
    "Base directory for this skill:",
    "[TASK RESUMPTION]",
    "[ERROR] You did not use a tool",
    "# task_progress",
    "# TODO LIST",
)
"""Beginnings of text that a program wrote to its end: summaries, notices, reminders."""
_REMINDER = re.compile(
    r"^<(?P<name>system[-_](?:reminder|warning|message|notification|note))>", re.MULTILINE
)
"""The beginning of what an agent program adds to the results of tools."""
_WRAPPERS = re.compile(
    r"</?(?:user_?(?:query|request|message|prompt|input)|task|feedback|answer)(?:\s[^<>]{0,400})?>",
    re.IGNORECASE,
)
"""Tags that agent programs put around the words of a person."""
_BEFORE_WORDS = re.compile(r"\A(?:(?:\[(?:image|Image #\d+|document|file)\]|</[\w:-]+>)\s*)+(?=\S)")
"""What stands for media before the words of a person, and ends of elements that were cut."""
_REQUEST = re.compile(r"Primary Request and Intent:?[\s*-]*")
"""Stands before the user's request in a summary of a conversation."""
_READ = 20_000
"""Characters of a message that are searched for the words of a person."""


def pieces(content: str, opening: re.Pattern[str] = _OPENING) -> Iterator[tuple[str, str]]:
    """Yields (name, text) of consecutive pieces: the name is "" for the words of a person."""
    done = 0
    for start, end in (*_inserted(content, opening), (len(content), len(content))):
        between = content[done:start]
        if between.strip() or start == end:
            is_program = between.lstrip().startswith(_WHOLE)
            if between or not done:
                yield shown_name(between) if is_program else "", between
            done = start
        if end > start:
            yield shown_name(content[done:end]), content[done:end]
            done = end


def pieces_of_result(content: str) -> Iterator[tuple[str, str]]:
    """Yields (name, text) of consecutive pieces: the name is "" for what the tool returned.

    Only reminders on lines of their own are inserted; other elements may be a page or a program.
    """
    done = 0
    unclosed: set[str] = set()
    for match in _REMINDER.finditer(content):
        start, name = match.start(), match["name"]
        if start < done or name in unclosed:
            continue
        closing = f"</{name}>"
        last = content.find(closing, match.end())
        if last < 0:
            unclosed.add(name)
            continue
        if content[done:start].strip():
            yield "", content[done:start]
        done = last + len(closing)
        yield name, content[start:done]
    if not done or content[done:].strip():
        yield "", content[done:]


def shown_name(inserted: str) -> str:
    """Returns the name of inserted text: that of its element, or its first words."""
    opening = _OPENING.match(inserted.lstrip())
    return opening[1] if opening else f"{' '.join(inserted[:200].split()[:5])} …"


def words_of_person(messages: Iterable[str]) -> str:
    """Returns the first words of a person in user messages; "" if there are none.

    If no message has any, returns the request that a summary of an earlier conversation states, or
    else the first message without inserted lines and names of elements.
    """
    first: str | None = None
    for content in messages:
        first = content if first is None else first
        read = _WRAPPERS.sub("", content[:_READ])
        own = pieces(read, _OPENING_IN_TITLE)
        words = "".join(text for name, text in own if not name).strip()
        if words:
            return _BEFORE_WORDS.sub("", words, count=1)
    if stated := _REQUEST.search((first or "")[: 3 * _READ]):
        return (first or "")[stated.end() :]
    bare = _LINES.sub("", _OPENING_OR_CLOSING.sub(" ", first or "")).strip()
    return bare or first or ""


def _inserted(content: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of inserted texts in order.

    An element without an end counts only where no words of a person precede it: its end was cut.
    """
    unclosed: set[str] = set()
    matches = sorted(
        (*opening.finditer(content), *_LINES.finditer(content)), key=lambda item: item.start()
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
