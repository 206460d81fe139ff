"""Builds patterns that Python's `re` searches fast, each with its condition for RE2."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from builder.secrets.prefilter import necessary

_ESCAPES = (r"\\[nrt]", r"%[0-9A-Fa-f]{2}", r"\dm")
ESCAPE = f"(?:{'|'.join(_ESCAPES)})"
"""Escapes that a word may directly follow: a newline in JSON, a URL's, a terminal's colour."""


def behind_none_of(listed: str, then: str = "") -> str:
    """Returns a lookbehind: none of some characters before `then`, unless as part of an escape."""
    escaped = "|".join(f"(?<={escape}{then})" for escape in _ESCAPES)
    return f"(?:(?<![{listed}]{then})|{escaped})"


class Rule(NamedTuple):
    """A pattern, and a condition for a text to match it (see `builder.secrets.prefilter`)."""

    pattern: re.Pattern[str]
    condition: str


def anywhere(pattern: str) -> Rule:
    """Returns the rule of a pattern that includes its own condition on the preceding text."""
    return Rule(re.compile(pattern), necessary(pattern))


_ATOM = re.compile(r"(\[(?:\\.|[^]\\])+\]|\\.|[^\\\[(])(?![{*+?])(.*)")


def after_none_of(listed: str, *patterns: str, end: str = "") -> Rule:
    """Returns a rule of patterns that do not follow some characters, but may follow an escape.

    Each pattern begins with a character or a set: `re` skips to the next of these, and looks back
    only there.
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


def by_first(patterns: Iterable[str]) -> str:
    """Returns a pattern for any of them, in order, grouped by their first character.

    Each pattern begins with one character, or one of a few.
    """
    groups: dict[str, list[str]] = {}
    for pattern in patterns:
        begin = _FIRST.match(pattern)
        assert begin is not None, f"{pattern} has no first character"
        for first in begin["set"] or (begin["one"],):
            groups.setdefault(first, []).append(pattern[begin.end() :])
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in groups.items())
