r"""Finds names of people: before a mail address, of users that a path shows, under keys of JSON.

What stands before an address in running text may be a heading, a field or a type
(`Contact Us <…>`, `x: string <…>`), so words of interfaces and programs alone are no name. The
user of `/home/alice` stands alone in `ls -l`, and in `home/alice` of an archive; a name that is a
word as well is found only where a user's name stands.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.resources import files

from builder.secrets.hits import Hit

TABLES = tomllib.loads((files("builder.scrub") / "tables.toml").read_text(encoding="utf-8"))
WORDS = {name: frozenset(words.split()) for name, words in TABLES.items() if isinstance(words, str)}
"""Words that name nobody, by what they are."""
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
_VERBS = WORDS["verb"]
"""Words with which a sentence names somebody: `Ask Ann Lee <…>`."""
_NO_NAMES = (_VERBS | WORDS["program"] | WORDS["interface"]) - {
    "bill",
    "grant",
    "mark",
    "page",
    "rich",
    "will",
}
"""Words of interfaces and programs, and names of agents: alone, they name no person."""
_NAMES_OF_WORDS = WORDS["first_name"]
"""First names that are words of English as well."""


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
    named = (
        word
        for word in (word.lower().strip(".") for word in words)
        if any(map(str.isalpha, word)) and not {word, word.removesuffix("s")} & _NO_NAMES
    )
    return (first, end) if any(named) else None


_AT_ROOT = re.compile(TABLES["at_root"])
_OF_USER = re.compile(TABLES["of_user"])


def known_users(texts: Sequence[str], hits_of: Iterable[Sequence[Hit]]) -> tuple[str, ...]:
    """Returns the names of users that show in paths from the root, prompts and commits.

    The longest is first. Of `Name <mail>` counts the name of an author (`Author:`, `From:`,
    `Signed-off-by:`) that has several words. `hits_of` has the hits in each of the texts.
    """
    names: dict[str, None] = {}
    for text, hits in zip(texts, hits_of, strict=True):
        for hit in hits:
            if hit.kind != "user_name":
                continue
            name = text[hit.start : hit.end]
            is_author = " " in name and _LABEL.search(text, max(0, hit.start - 24), hit.start)
            is_path = _AT_ROOT.search(text[max(0, hit.start - 24) : hit.start])
            if text[hit.end : hit.end + 1] == "@" or is_author or is_path:
                names[name] = None
    return tuple(sorted(names, key=lambda name: (-len(name), name)))


class UserFinder:
    """Finds known names of users, or of another `kind`; `reserved` are names of the tools."""

    def __init__(
        self, names: Sequence[str], reserved: Collection[str], kind: str = "user_name"
    ) -> None:
        self._kind = kind
        ordinary = WORDS["program"] | _NAMES_OF_WORDS
        self._is_word = {
            name: len(name) > 2 and name.lower() not in ordinary and name not in reserved
            for name in names
        }

    def hits(self, text: str) -> Iterator[Hit]:
        """Yields the names in a text; some may overlap."""
        for name, is_word in self._is_word.items():
            at = text.find(name)
            while at >= 0:
                end = at + len(name)
                if _stands_alone(text, at, end) and (
                    is_word or _OF_USER.search(text[max(0, at - 96) : at])
                ):
                    yield Hit(at, end, self._kind)
                at = text.find(name, end)


def _stands_alone(text: str, start: int, end: int) -> bool:
    r"""Returns whether no letter, digit or underscore is beside a name; `\n` is an escape."""
    before, after = text[max(0, start - 3) : start], text[end : end + 1]
    if after == "_" or after.isalnum():
        return False
    is_escape = before.endswith(("\\n", "\\r", "\\t", "%2F", "%2f"))
    return is_escape or not (before[-1:] == "_" or before[-1:].isalnum())


_KEY = re.compile("|".join(f"(?P<{kind}>{form['key']})" for kind, form in TABLES["keys"].items()))
_VALUES = {kind: re.compile(form["value"]) for kind, form in TABLES["keys"].items()}
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
KEYED = re.compile(TABLES["keyed"])


def named_person(key: str, value: str) -> Hit | None:
    """Returns the whole value, if a key of JSON says that it is personal data, or None."""
    found = _KEY.fullmatch(_HUMP.sub("_", key).lower()) if 0 < len(key) <= 24 else None
    kind = found.lastgroup if found is not None else None
    return Hit(0, len(value), kind) if kind and _VALUES[kind].fullmatch(value) else None
