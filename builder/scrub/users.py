r"""Finds the names of users again that a path or a prompt of the same texts shows.

`/home/alice` shows a name, which stands alone in `ls -l`, and in `home/alice` or `Users/alice` of
an archive. A name that is a word as well is found only where a user's name stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
_OWNER = r"[-dlbcps][rwxsStT-]{9}[.+@]?[ \t]+\d+[ \t]+"
"""Mode and links of a file in `ls -l`, which are followed by its owner and its group."""


def known_users(texts: Sequence[str], hits_of: Iterable[Sequence[Hit]]) -> tuple[str, ...]:
    """Returns the names of users that paths from the root and prompts show, the longest first.

    `hits_of` has the hits in each of the texts.
    """
    names: dict[str, None] = {}
    for text, hits in zip(texts, hits_of, strict=True):
        for hit in hits:
            if hit.kind == "user_name" and (
                text[hit.end : hit.end + 1] == "@"
                or _AT_ROOT.search(text[max(0, hit.start - _BEFORE) : hit.start])
            ):
                names[text[hit.start : hit.end]] = None
    return tuple(sorted(names, key=lambda name: (-len(name), name)))


class UserFinder:
    """Finds known names of users. `reserved` are names of tools and of their parameters."""

    def __init__(self, names: Sequence[str], reserved: Mapping[str, object]) -> None:
        words = [
            re.escape(name)
            for name in names
            if len(name) >= MIN_NAME and name.lower() not in _ORDINARY and name not in reserved
        ]
        every = "|".join(map(re.escape, names))
        places = (
            rf"(?:(?<![\w.-])|(?<=\\[nrt]))(?:home|Users)[/\\]{{1,4}}(?P<home>{every})(?![\w-])"
        )
        owner = rf"{_OWNER}(?:(?P<owner>{every})(?=[ \t])|[\w.-]+(?=[ \t]+(?:{every})[ \t]))"
        group = rf"(?:[ \t]+(?P<group>{every})(?=[ \t]))?"
        self._names = tuple(names)
        self._places = re.compile(rf"{places}|{owner}{group}")
        word = rf"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))(?:{'|'.join(words)})(?![A-Za-z0-9_])"
        self._words = re.compile(word) if words else None

    def hits(self, text: str) -> Iterator[Hit]:
        """Yields the names in a text; some may overlap."""
        if not any(name in text for name in self._names):
            return
        for match in self._places.finditer(text):
            for part, name in match.groupdict().items():
                if name is not None:
                    yield Hit(*match.span(part), "user_name")
        for match in self._words.finditer(text) if self._words is not None else ():
            yield Hit(*match.span(), "user_name")
