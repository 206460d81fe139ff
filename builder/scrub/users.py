r"""Finds the names of users again that a path or a prompt of the same texts shows.

`/home/alice` shows a name, which stands alone in `ls -l`, and in `home/alice` or `Users/alice` of
an archive. A name that is a word as well is found only where a user's name stands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from builder.scrub.names import is_author
from builder.secrets.hits import Hit
from builder.secrets.words import LABEL_PARTS, OF_PROGRAMS, OF_RESOURCES

MIN_NAME = 3
"""Minimum characters of a name that is replaced as a word."""
_NAMES_OF_WORDS = frozenset((
    "amber", "angel", "april", "art", "august", "autumn", "bill", "buddy", "chase", "christian",
    "cliff", "crystal", "dale", "dawn", "dean", "drew", "duke", "earl", "eve", "faith", "frank",
    "gene", "grace", "grant", "guy", "happy", "hope", "hunter", "iris", "jade", "jay", "jean",
    "joy", "june", "king", "lane", "may", "max", "mercy", "miles", "norm", "olive", "page", "pat",
    "ray", "reed", "rich", "robin", "rob", "rose", "ruby", "sandy", "sky", "star", "storm",
    "summer", "sunny", "taylor", "trip", "violet", "young",
))  # fmt: skip
"""First names that are words of English as well."""
_ORDINARY = OF_PROGRAMS | OF_RESOURCES | frozenset(LABEL_PARTS) | _NAMES_OF_WORDS

_BEFORE = 24
_AT_ROOT = re.compile(
    r"(?:\A|[^\w./\\@~$)}\]*-]|(?<=\\)[nrt]|//|\d:)(?:/|%2[Ff])(?:home|Users)(?:/|%2[Ff])\Z"
    r"|[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)\Z"
)
"""The end of the text before a name in a path that begins at the root."""
_OF_USER = re.compile(
    r"(?:(?:(?<![\w.-])|(?<=\\[nrt]))(?:home|Users)[/\\]{1,4}"
    r"|[-dlbcps][rwxsStT-]{9}[.+@]?[ \t]+\d+[ \t]+(?:[\w.-]+[ \t]+)?)\Z"
)
"""The end of the text before a user's name: a home folder, or the mode and links of a file in
`ls -l`, and its owner before its group."""
_LINE = 96
"""Code points before a name in which these are."""


def known_users(texts: Sequence[str], hits_of: Iterable[Sequence[Hit]]) -> tuple[str, ...]:
    """Returns the names of users that show in paths from the root, prompts and commits.

    The longest is first. Of `Name <mail>` counts the name of an author (`Author:`, `From:`,
    `Signed-off-by:`) that has several words.

    `hits_of` has the hits in each of the texts.
    """
    names: dict[str, None] = {}
    for text, hits in zip(texts, hits_of, strict=True):
        for hit in hits:
            if hit.kind == "user_name" and (
                text[hit.end : hit.end + 1] == "@"
                or (" " in text[hit.start : hit.end] and is_author(text, hit.start))
                or _AT_ROOT.search(text[max(0, hit.start - _BEFORE) : hit.start])
            ):
                names[text[hit.start : hit.end]] = None
    return tuple(sorted(names, key=lambda name: (-len(name), name)))


class UserFinder:
    """Finds known names of users. `reserved` are names of tools and of their parameters."""

    def __init__(self, names: Sequence[str], reserved: Collection[str]) -> None:
        self._is_word = {
            name: len(name) >= MIN_NAME and name.lower() not in _ORDINARY and name not in reserved
            for name in names
        }

    def hits(self, text: str) -> Iterator[Hit]:
        """Yields the names in a text; some may overlap."""
        for name, is_word in self._is_word.items():
            at = text.find(name)
            while at >= 0:
                end = at + len(name)
                if _stands_alone(text, at, end) and (
                    is_word or _OF_USER.search(text[max(0, at - _LINE) : at])
                ):
                    yield Hit(at, end, "user_name")
                at = text.find(name, end)


def _stands_alone(text: str, start: int, end: int) -> bool:
    r"""Returns whether no letter, digit or underscore is beside a name; `\n` is an escape."""
    before, after = text[max(0, start - 3) : start], text[end : end + 1]
    if after == "_" or after.isalnum():
        return False
    is_escape = before.endswith(("\\n", "\\r", "\\t", "%2F", "%2f"))
    return is_escape or not (before[-1:] == "_" or before[-1:].isalnum())
