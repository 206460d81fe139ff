"""Grades a value by itself, with no name before it: what kind of text it most likely is.

`builder.secrets.values` measures characters, `builder.secrets.passphrases` words; a place in which
the text says more about a value (`password = …`) asks them itself.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from builder.secrets.passphrases import (
    is_camel_phrase,
    is_diceware,
    is_joined,
    is_marked_phrase,
    is_run_together,
    is_titled,
)
from builder.secrets.values import (
    LOOKED_AT,
    entropy,
    has_cases,
    is_drawn,
    is_stand_in,
    is_wild,
    is_wordlike,
    looks_random,
)


class Grade(Enum):
    """What a value is."""

    GENERATED = "generated"
    """By a program, of letters and digits: `k3j9s2pq0zx7`."""
    DRAWN = "drawn"
    """At random, as password managers do: `u3X(eAj}TZ@9`, `quartzKfWpXbTz`."""
    CHOSEN = "chosen"
    """As sites demand, of digits with signs or both cases: `Canyon!7river`."""
    PHRASE = "phrase"
    """Of words put together: `marble-thunder-badger-walnut`."""
    WORD = "word"
    """Anything else."""
    CODE = "code"
    """A name, a path, an address, a version or another part of code: `utils.py`, `v2.1`."""
    STAND_IN = "stand_in"
    """A variable or an example in documentation: `${PASSWORD}`."""

    @property
    def is_secret(self) -> bool:
        """Whether programs, people and password managers make such values, to keep them secret."""
        return self in _SECRETS


_SECRETS = (Grade.GENERATED, Grade.DRAWN, Grade.CHOSEN, Grade.PHRASE)


_DIGITS = re.compile(r"\d+")
_LETTER = re.compile("[A-Za-z]")
_APART = re.compile(r"[A-Za-z][-_.][A-Za-z]|\d[-_.!]|[a-z]\d{4}[a-z]")
"""A sign, or a number of four digits, between the parts of a password: `river-7`, `a2024b`."""
_NAME = re.compile(
    r"[A-Za-z][a-z]{0,20}(?:\d{0,3}[A-Z][a-z]{0,20}){1,6}\d{0,3}"
    r"|[a-z0-9]+(?:_[a-z0-9]+)+(?<!\d{3})|[a-z]+(?:-[a-z]+)*-?v?\d[\d.]*(?:-[a-z0-9.]+)*|[%@&]?[A-Z0-9]+(?:_[A-Z0-9]+)+"
)
"""Names of classes, functions, packages with a version, and variables: `LayoutLMv3Model`."""
_NO_PASSWORD = re.compile(
    r"^(?-i:[A-Z][A-Za-z]*\?$)|^_\w+\.|^[a-z]+(?:\*[a-z]+){3,8}\*?$|^(?:call|toolu|tooluse|msg|req|run|resp|chatcmpl|fc|rs|item|thread)[_-]"
    r"|^[a-z]+:|://|@[\w-]+\.[a-z]|^[\w.-]+\.(?:com|net|org|io|de|dev|local|py|js|ts|md|sh|json|ya?ml|txt|conf|cfg|env|go|rs"
    r"|java|rb|php|html?|css|xml|toml|ini|log|sql|tsx|jsx|cpp|lock)(?:[:/].*)?$"
    r"|^(?:sha|md|utf-?|base|aes-?|argon|bcrypt|pbkdf|oauth|rfc|ipv|http|port)\d|^[vx]\d[\d.]{0,12}(?![a-z\d])"
    r"|^~[\w.]+$|\.__\w+__$|^[a-z_]+\+\d{1,3}$|^(?-i:[a-z]\w*(?:\.\w+)*\.[A-Z_]{3,}$)"
    r"|^(?-i:[a-z]\w*(?:\.\w+)+\.[A-Z][a-z]+(?:[A-Z][a-z]+)*$)"
    r"|\d#section|&\w+=|:\d{1,4}(?:\.\d{1,6})+|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\.(?-i:[a-z][A-Za-z]*)$|[\s\"'`\\<>|;,()\[\]{}/]|\$(?:[{(]|(?-i:[A-Z_]{2}))|^\d[\d.:TZ+-]*$",
    re.IGNORECASE,
)
"""What a password in a sentence does not contain, or is not: `https://h`, `utils.py`."""
_SIGNED = re.compile(
    r"(?=.*[!%^*~?+])[A-Za-z]{3,15}(?:[!#$%^*&~?+@._-]{1,2}[A-Za-z]{3,15}){1,5}\d{0,4}[!#$%^*&~?]{0,2}"
    r"|[A-Za-z]{3,15}(?:[!#$%^*&~][A-Za-z]{3,15}){2,4}\d{0,4}[!#$%^*&~?]?"
    r"|[A-Za-z][a-z]{2,12}(?:[A-Z][a-z]{2,12}){1,5}[!?#$%&*+@]{1,3}"
)
"""A password of words with signs between or after them: `Puzzle!engine#Planet`."""

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
"""A UUID: `0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0`."""
_RECORD = re.compile(r"(?:call|toolu|tooluse|msg|req|run|resp|chatcmpl|fc|rs|item|thread)[_-]")
"""The beginning of an id of a call or a message: `toolu_…`."""
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
"""A key in hexadecimal digits: `0f1e2d3c4b5a69788796a5b4c3d2e1f0`."""
_DIGEST = re.compile("[0-9a-f]+|[0-9A-F]+")
_ALTERNATES = re.compile("[0-9][A-Za-z]+[0-9]")
_SPLIT = re.compile("[-._/+=~]")
_SEGMENT = re.compile("[A-Z]?[a-z]{3,}|[A-Z]{4,}")
"""Letters that may be a word: `Token`."""
MIN_GENERATED = 16
"""Code points of a value that is generated beyond doubt."""


@lru_cache(maxsize=1 << 12)  # a hostile text repeats a word endlessly
def grade(value: str) -> Grade:
    """Returns what a value of 8 to 64 code points looks like; others are words.

    A secret has digits and signs or both cases, was drawn at random, or is made of words with signs
    between them. Names of programs, files, versions, paths and addresses do not look so.
    """
    if not 8 <= len(value) <= 64:
        return Grade.WORD
    if is_stand_in(value):
        return Grade.STAND_IN
    if _NO_PASSWORD.search(value):
        if is_diceware(value) or is_marked_phrase(value):
            return Grade.PHRASE
        return Grade.DRAWN if is_wild(value) else Grade.CODE
    has_sign = any(sign in value for sign in "!#$%^&*@&+~") or (value.find("=") == len(value) - 1)
    numbers = len(_DIGITS.findall(value))
    if numbers and _LETTER.search(value) and not _NAME.fullmatch(value):
        is_mixed = numbers > 1 or value[-2:].isdigit() or _APART.search(value) is not None
        if has_sign or (has_cases(value) and is_mixed):
            return Grade.CHOSEN
        if value.isalnum() and (numbers > 2 or (numbers > 1 and looks_random(value))):
            return Grade.GENERATED
    if is_drawn(value):
        return Grade.DRAWN
    is_phrase = (
        is_joined(value)
        or is_diceware(value)
        or is_marked_phrase(value)
        or is_camel_phrase(value)
        or (is_run_together(value) and not value.istitle())  # a label may be one long word
        or _SIGNED.fullmatch(value) is not None
        or is_titled(value.rstrip("!?"))
    )
    return Grade.PHRASE if is_phrase else Grade.WORD


def is_generated(value: str) -> bool:
    """Returns whether the value looks generated beyond doubt: letters and digits alternate."""
    begin = value[:LOOKED_AT]
    if is_stand_in(begin) or _RECORD.match(begin) or UUID.fullmatch(begin):
        return False
    if not looks_random(begin) or len(value) < MIN_GENERATED or entropy(begin) < 3:
        return False
    if _ALTERNATES.search(begin) is None:
        return False
    if _HEX.fullmatch(begin):
        return True
    if sum(part.isalpha() and part.islower() and len(part) > 2 for part in _SPLIT.split(begin)) > 2:
        return False
    words = [word for word in _SEGMENT.findall(begin) if is_wordlike(word)]
    if len(words) >= 3 or sum(map(len, words)) >= 0.4 * len(begin):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(begin))
    is_long = len(value) >= 20 and changes >= 4
    return (
        is_long
        or (has_cases(begin) and changes >= 3)
        or (changes >= 5 and not _DIGEST.fullmatch(begin))
    )
