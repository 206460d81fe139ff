r"""Finds the name in `Name <mail>`, as in commits and mails, and tells authors from the rest.

What stands before an address in running text may be a heading, a field or a type
(`Contact Us <…>`, `x: string <…>`), so words of interfaces and programs alone are no name.
"""

from __future__ import annotations

import re

from builder.secrets.words import LABEL_PARTS, OF_PROGRAMS, OF_RESOURCES

_INITIAL = r"(?:[^\W\d_a-z]\.)+"
_CAPITALISED = rf"(?:{_INITIAL}|[^\W\d_a-z][\w'\u2019-]*(?:\.[\w'\u2019-]+)*)"
_NAME = re.compile(
    r"(?:(?<![\w.])|(?<=\\[nrt]))"
    rf"({_CAPITALISED}(?: (?:{_CAPITALISED}|de|la|van|von|der)){{0,4}}\.?) <\Z"
)
"""The end of the text before the mail address of `Name <mail>`; a dot followed by a space is in an
initial only, so no name goes beyond a sentence."""
_BY = r"(?:(?<![^\W_])(?:Author|From|Commit|Committer)|-by):[ \t]+|(?<![^\W_])(?:author|committer) "
_LABELLED = re.compile(rf"(?:{_BY})([\w.'\u2019-]+(?: [\w.'\u2019-]+){{0,4}}) <\Z")
"""The same after the label of an author, where any words are a name."""
_LABEL = re.compile(rf"(?:{_BY})\Z")
_LONGEST = 99
"""Code points of a name with its label."""

_VERBS = frozenset((
    "a", "and", "ask", "at", "by", "call", "cc", "contact", "dear", "email", "for", "from", "hello",
    "hey", "hi", "mail", "maintained", "message", "my", "our", "ping", "please", "reply", "see",
    "send", "thank", "thanks", "the", "to", "with", "write", "written",
))  # fmt: skip
"""Words with which a sentence names somebody: `Ask Ann Lee <…>`."""
_FIRST_NAMES = frozenset(("bill", "grant", "mark", "page", "rich", "will"))
_INTERFACES = frozenset((
    "address", "autofix", "billing", "bot",
    "feedback", "integer", "license", "list", "maintainer", "me", "newsletter",
    "no", "number", "office", "optional", "or", "owner", "param", "person", "press", "promise",
    "reader", "recipient", "record", "return", "sale", "security", "sender", "set", "string",
    "subject", "support", "team", "test", "tester", "tuple", "type", "us", "username", "value",
    "vector", "version", "writer", "you", "your",
))  # fmt: skip
_AGENTS = frozenset((
    "claude", "codex", "copilot", "cursor", "dependabot", "devin", "gemini", "mistral", "openhands",
    "renovate", "vibe",
))  # fmt: skip
_NO_NAMES = (
    _VERBS | _INTERFACES | _AGENTS | OF_PROGRAMS | OF_RESOURCES | {*LABEL_PARTS}
) - _FIRST_NAMES
"""Words of interfaces and programs, and names of agents: alone, they name no person."""


def name_before(text: str, start: int, at: int) -> tuple[int, int] | None:
    """Returns [start, end) of the name before the mail address at `at`, if there is one.

    The line begins at `start`.
    """
    begin = max(start, at - _LONGEST)
    found = _LABELLED.search(text, begin, at) or _NAME.search(text, begin, at)
    if found is None:
        return None
    first, end = found.span(1)
    words = text[first:end].split(" ")
    while words and words[0].lower() in _VERBS:
        first += len(words.pop(0)) + 1
    return None if all(map(_is_ordinary, words)) else (first, end)


def is_author(text: str, start: int) -> bool:
    """Returns whether the label of an author stands before the name at `start`."""
    return _LABEL.search(text, max(0, start - 24), start) is not None


def _is_ordinary(word: str) -> bool:
    plain = word.lower().strip(".")
    is_number = not any(map(str.isalpha, plain))
    return is_number or plain in _NO_NAMES or plain.removesuffix("s") in _NO_NAMES
