"""Judges whether a value looks like a password by itself, with no name before it."""

from __future__ import annotations

import re
from functools import lru_cache

from builder.secrets.diceware import is_camel_phrase, is_diceware, is_marked_phrase, is_run_together
from builder.secrets.values import (
    is_drawn,
    is_joined,
    is_stand_in,
    is_titled,
    is_wild,
    looks_random,
)

_DIGITS = re.compile(r"\d+")
_LETTER = re.compile("[A-Za-z]")
_APART = re.compile(r"[A-Za-z][-_.][A-Za-z]|\d[-_.!]|[a-z]\d{4}[a-z]")
"""A sign, or a number of four digits, between the parts of a password."""
_NAME = re.compile(
    r"[A-Za-z][a-z]{0,20}(?:\d{0,3}[A-Z][a-z]{0,20}){1,6}\d{0,3}"
    r"|[a-z0-9]+(?:_[a-z0-9]+)+(?<!\d{3})|[a-z]+(?:-[a-z]+)*-?v?\d[\d.]*(?:-[a-z0-9.]+)*|[%@&]?[A-Z0-9]+(?:_[A-Z0-9]+)+"
)
"""Names of classes, functions, packages with a version, and variables."""
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
"""What a password in a sentence does not contain, or is not."""
_SIGNED = re.compile(
    r"(?=.*[!%^*~?+])[A-Za-z]{3,15}(?:[!#$%^*&~?+@._-]{1,2}[A-Za-z]{3,15}){1,5}\d{0,4}[!#$%^*&~?]{0,2}"
    r"|[A-Za-z]{3,15}(?:[!#$%^*&~][A-Za-z]{3,15}){2,4}\d{0,4}[!#$%^*&~?]?"
    r"|[A-Za-z][a-z]{2,12}(?:[A-Z][a-z]{2,12}){1,5}[!?#$%&*+@]{1,3}"
)
"""A password of words with signs between or after them: `Puzzle!engine#Planet`."""


@lru_cache(maxsize=1 << 12)  # a hostile text repeats a word endlessly
def looks_chosen(value: str) -> bool:
    """Returns whether the value looks like a password.

    It has digits and signs or both cases, was drawn at random, or is made of words with signs
    between them. Names of programs, files, versions, paths and addresses do not look so.
    """
    if not 8 <= len(value) <= 64 or is_stand_in(value):
        return False
    if _NO_PASSWORD.search(value):
        return is_wild(value) or is_diceware(value) or is_marked_phrase(value)
    has_cases = value != value.lower() and value != value.upper()
    has_sign = any(sign in value for sign in "!#$%^*@&+~") or (value.find("=") == len(value) - 1)
    numbers = len(_DIGITS.findall(value))
    if numbers and _LETTER.search(value) and not _NAME.fullmatch(value):
        is_mixed = numbers > 1 or value[-2:].isdigit() or _APART.search(value) is not None
        if has_sign or (has_cases and is_mixed):
            return True
        if value.isalnum() and (numbers > 2 or (numbers > 1 and looks_random(value))):
            return True
    return (
        is_joined(value)
        or is_diceware(value)
        or is_marked_phrase(value)
        or is_camel_phrase(value)
        or (is_run_together(value) and not value.istitle())  # a label may be one long word
        or is_drawn(value)
        or _SIGNED.fullmatch(value) is not None
        or is_titled(value.rstrip("!?"))
    )
