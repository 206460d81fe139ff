"""How rules are written so that Python's `re` searches them fast, each with its condition."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from builder.scrub.prefilter import necessary

_ESCAPES = (r"\\[nrt]", r"%[0-9A-Fa-f]{2}", r"\dm")
ESCAPE = f"(?:{'|'.join(_ESCAPES)})"
"""After it a word begins: a newline in JSON text, a URL's escape, a terminal's colour."""


def behind_none_of(listed: str, then: str = "") -> str:
    """Where none of some characters stands before `then`, or an escape does."""
    escaped = "|".join(f"(?<={escape}{then})" for escape in _ESCAPES)
    return f"(?:(?<![{listed}]{then})|{escaped})"


class Rule(NamedTuple):
    """A pattern, and what must stand in a text for it to match (see `builder.scrub.prefilter`)."""

    pattern: re.Pattern[str]
    condition: str


def anywhere(pattern: str) -> Rule:
    """A rule of a pattern that tells itself what stands before it."""
    return Rule(re.compile(pattern), necessary(pattern))


_ATOM = re.compile(r"(\[(?:\\.|[^]\\])+\]|\\.|[^\\\[(])(?![{*+?])(.*)")


def after_none_of(listed: str, *patterns: str, end: str = "") -> Rule:
    """A rule of patterns before which none of some characters stands, unless as an escape.

    Each pattern begins with a character or a set: `re` skips to where one of these stands, and only
    there looks back.
    """
    parts = [part.groups() for part in map(_ATOM.fullmatch, patterns) if part is not None]
    assert len(parts) == len(patterns), "each begins with one character"
    first = "".join(first[1:-1] if len(first) > 2 else first for first, _ in parts)
    rest = "|".join(f"(?<={first}){rest}" if len(parts) > 1 else rest for first, rest in parts)
    return Rule(
        re.compile(f"[{first}]{behind_none_of(listed, '.')}(?:{rest}){end}"),
        necessary(rf"(?:\A|[^{listed}]|{ESCAPE})(?:{'|'.join(patterns)})"),
    )


_FIRST = re.compile(r"(?:\[(?P<set>[A-Za-z0-9]{1,8})\]|(?P<one>[^\\[(]|\\\W))(?![{*+?])")


def has_first(pattern: str) -> bool:
    """Does a pattern begin with one character, or one of a few?"""
    return _FIRST.match(pattern) is not None


def by_first(patterns: Iterable[str]) -> str:
    """A pattern for any of them, in order: of many branches `re` looks at no more than the first.

    Each pattern begins with one character, or one of a few (`has_first`).
    """
    groups: dict[str, list[str]] = {}
    for pattern in patterns:
        begin = _FIRST.match(pattern)
        assert begin is not None, f"{pattern} has no first character"
        for first in begin["set"] or (begin["one"],):
            groups.setdefault(first, []).append(pattern[begin.end() :])
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in groups.items())
