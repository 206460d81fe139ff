"""Reads the quotation marks and brackets of other scripts as those of ASCII, in the same places.

Every rule knows `"` and `'`; prose also has « … », „ … “, 「 … 」 and others. Spaces inside of
French ones change places with them, so that the text keeps its length.
"""

from __future__ import annotations

import re

_SPACED = re.compile(
    "[\u00ab\u2039\u201c\u201e][ \u00a0\u202f]([^\\s\u00ab\u00bb\u2039\u203a\u201c-\u201f]{4,200})"
    "[ \u00a0\u202f][\u00bb\u203a\u201d\u201c]"
)
"""A value without spaces in marks with spaces: `« hunter22 »`."""
_SINGLE = re.compile("[\u2018\u201a]([^\\s\u2018-\u201b]{4,200})[\u2018\u2019]")
"""A value without spaces in single marks, of which one is also the apostrophe."""
_ASCII = {
    '"': (
        "\u00ab\u00bb\u2039\u203a\u201c\u201d\u201e\u201f"
        "\u300a\u300b\u300c\u300d\u300e\u300f\u3010\u3011\uff02"
    ),
    "(": "\uff08",
    ")": "\uff09",
    ":": "\uff1a",
    "=": "\uff1d",
}
QUOTES = frozenset("".join(_ASCII.values()))
"""The marks that are read as those of ASCII."""
_PLAIN = tuple((mark, plain) for plain, marks in _ASCII.items() for mark in marks)
_MARKS = (*sorted(QUOTES), "\u2018", "\u201a")


def straight(text: str) -> str:
    """Returns the text with the marks of ASCII; a secret is at the same place in it."""
    if text.isascii() or not any(mark in text for mark in _MARKS):
        return text
    text = _SPACED.sub(r' "\1" ', text)
    text = _SINGLE.sub(r"'\1'", text)
    for mark, plain in _PLAIN:
        text = text.replace(mark, plain)
    return text
