"""Finds passphrases of words with spaces between them: "the passphrase is … … … …".

A word for passwords comes before them on the line, and a sign, a verb or the word itself introduces
them. Sentences about passwords are words, too; theirs are small, or end as verbs and adverbs do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.secrets.hits import Hit
from builder.secrets.passphrases import is_phrase, share_of_programs
from builder.secrets.prefilter import LinePrefilter, Lines
from builder.secrets.words import JOINS, PHRASE_PASSWORDS, STATEMENTS

LEAST = 4
"""Words of a passphrase."""
REACH = 80
"""Maximum code points between the word for passwords and the passphrase."""

_PHRASE = rf"[a-z]{{3,10}}(?: [a-z]{{3,10}}){{{LEAST - 1}}}"
LINES = LinePrefilter(rf"(?i:{PHRASE_PASSWORDS})[^\n]*[ \t\"'`*]{_PHRASE}")
"""Finds the lines with such a word and so many words after it."""
_WORD = re.compile(PHRASE_PASSWORDS, re.IGNORECASE | re.ASCII)
"""A word for passwords before a phrase: `passphrase`."""
_INTRODUCED = re.compile(
    rf"\w{{0,2}}(?:[^\n;{{}}()=<>]{{0,{REACH}}}?"
    r"(?P<sign>:|[ \t]?=|[ \t](?:is|was|ist|lautet|es|est|\u00e9|\u00e8))"
    r"|(?<=phrase))[ \t]{1,2}(?P<quote>\\{0,7}[\"'`*]{1,3})?"
    rf"(?P<words>{_PHRASE}(?: [a-z]{{3,10}}){{0,20}})"
)
"""The text from such a word to the end of the words: ` is river lamp stone oak`."""
_END = re.compile(r"[ \t]{0,4}(?:[\"'`*\\(\r\n]|$)|[.,;)!](?:\s|$)")
"""What ends a phrase: `, `."""
_VERBS = re.compile(r"\b\w+(?:ed|ing|ly|tion|able|ible|ment|ness|ful)\b")
"""Endings of verbs, adverbs and nouns of sentences: `changing`."""


def find_phrases(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the passphrases in lines of `LINES`, in order of the words before them."""
    for start, end in lines:
        done = start
        for word in _WORD.finditer(text, start, end):
            found = _INTRODUCED.match(text, word.end(), end) if word.start() >= done else None
            if found is None:
                continue
            begin, stop = found.start("words"), _end(text, found)
            if stop > begin and _is_passphrase(text[begin:stop], found):
                done = stop
                yield Hit(begin, stop, "secret", certain=False)


def _is_passphrase(phrase: str, found: re.Match[str]) -> bool:
    """Returns whether the words are no sentence; after a verb (`is`) none may look like one."""
    words = phrase.split(" ")
    is_stated = found["quote"] is not None or (found["sign"] or "").strip() in (":", "=")
    if not is_stated and _VERBS.search(phrase):
        return False
    return (
        (found["quote"] is not None or STATEMENTS.isdisjoint(words))
        and is_phrase(phrase, LEAST, len(words) // LEAST if is_stated else 0)
        and share_of_programs(words) <= (0.25 if is_stated else 0)
    )


def _end(text: str, found: re.Match[str]) -> int:
    """Returns where a passphrase ends: with its quotation, its line or the part of its sentence.

    That is where it starts if the words go on as a sentence does.
    """
    begin, stop = found.span("words")
    at = begin
    for number, word in enumerate(found["words"].split(" ")):
        if number >= LEAST and word in JOINS and not found["quote"]:
            return at - 1
        at += len(word) + 1
    return stop if _END.match(text, stop) else begin
