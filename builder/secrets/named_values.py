"""Judges whether a value after a name is a secret, by the keyword with which the name ends."""

from __future__ import annotations

import re

from builder.secrets.passphrases import (
    is_camel_phrase,
    is_diceware,
    is_foreign,
    is_joined,
    is_leet,
    is_marked_phrase,
    is_numbered,
    is_phrase,
    is_run_together,
    is_salted,
    is_simple,
    is_titled,
)
from builder.secrets.values import (
    has_drawn_part,
    has_random_case,
    is_chosen,
    is_drawn,
    is_stand_in,
    is_strong,
    is_unpronounceable,
    is_wild,
    is_wordlike,
    looks_random,
)
from builder.secrets.words import NO_PASSWORDS, PASSWORDS

_OF_TEXTS = ("token", "auth", "credential", "credentials", "_sk", "_pat", "_salt")
"""Keywords of values that may also be a word and a number: a token of a text."""
_NUMBERED_WORD = re.compile(
    r"^[^.]*$|^[A-Z][a-z]+[-_]?\d{2,4}\.(?!(?:cs|go|h|js|kt|md|pl|py|rb|rs|sh|ts)$)[a-z]{2,}\d*$|\.(?:[A-Z][a-z]{2,}\d{2,}"
    r"|(?!sha|b?float|u?int|utf|md|base|aes|hmac|crc|complex|win|python)[a-z]{4,}\d{3,})$"
)
"""No dot, or a word and a number after it that is no attribute: `sommer.Velvet32`."""
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z_.]*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
"""A name in a program, also with attributes: `config.db.password`."""
_REGEX = re.compile(r"\(\?|\[[^]]+\][{*+]|\w-\w[^]]*\]|[A-Z]{26}")
"""A regular expression or an alphabet: `[a-z]{8}`."""
_SPACE = re.compile("(?<![0-9])%20(?![a-z]?\\d)", re.IGNORECASE)
"""An encoded space between words: `my%20password`."""
_WORDS_AND_NUMBER = re.compile(
    r"(?P<words>[a-z]{3,12}(?:[._-][a-z]{3,12}){1,4}[._-]?\d{2,4})(?:[._-](?:jwt|secret|key|token))?"
)
"""Words and a number, perhaps with what they are for: `madrid-ember-rabbit-36-jwt`."""
_NAMED_IN_PROGRAMS = re.compile(
    "secret|cred|token|key|tls|cert|config|pass|prod|stag|test|app|svc|service"
)
"""Parts of the names of resources, which end in numbers, too: `app-svc-01`."""
_INDEXED = re.compile(r"\w+\[.*")
_HEADER = re.compile("x(?:-[a-z0-9]+)+")
"""The name of a header, which follows `authorization` in lists of names."""
_CLASS = re.compile(r"[a-z]+\.[A-Z][A-Za-z]+")
"""A module and a class: `jwt.PyJWK`."""
COUNTED = "0123456789" * 2
"""Digits in their order, which stand for a number in examples."""
_THREE_WORDS = re.compile(r"[a-z]{5,9}(?:\.[a-z]{5,9}){2}")
"""What may be a passphrase, if it is no path in a program: `granite.tundra.whisper`."""
_ADDRESS = re.compile(r"(?:localhost|[\w-]+(?:\.[\w-]+)+):\d{2,5}")
"""A host and a port: `db.internal:5432`."""

_LIKELY = (is_strong, is_chosen, is_drawn, is_salted, is_leet)


def is_value(keyword: str, value: str, *, quoted: bool, setting: bool) -> bool:
    """Returns whether the value of that keyword is a secret; `setting`: it cannot be code."""
    begin = value[:200]  # a hostile text may contain a value at every word
    if is_stand_in(begin) or (not quoted and _INDEXED.fullmatch(begin)):
        return False
    if " " in value:
        least = 3 if keyword == "passphrase" else 4
        return (
            quoted
            and keyword in PASSWORDS
            and (is_phrase(value, least) or ((setting or keyword == "psk") and is_numbered(value)))
        )
    if keyword in PASSWORDS:
        if keyword == "passphrase" and is_phrase(value):
            return quoted or setting
        return _is_password(value, quoted=quoted, setting=setting)
    if _REGEX.search(begin) or _SPACE.search(begin) or _HEADER.fullmatch(begin):
        return False
    if _CLASS.fullmatch(begin):
        return False
    is_code = not quoted and not setting and _DOTTED.fullmatch(begin) and is_wordlike(begin)
    return not is_code and (
        looks_random(value)
        or (
            keyword == "secret"
            and setting
            and (numbered := _WORDS_AND_NUMBER.fullmatch(value)) is not None
            and not _NAMED_IN_PROGRAMS.search(numbered["words"])
        )
        or (
            (quoted or setting)
            and is_simple(value, 2 if keyword in _OF_TEXTS and not setting else 1)
        )
        or ((quoted or setting) and any(is_like(value) for is_like in _LIKELY))
        or ((quoted or setting) and (keyword != "key" or "_" not in value) and is_diceware(value))
        or (value.isalpha() and _is_letters(value, quoted=quoted, setting=setting))
        or is_chosen(value)
        or is_titled(value, 1 if setting else 2)
    )


def _is_letters(value: str, *, quoted: bool, setting: bool) -> bool:
    """Returns whether letters were drawn at random, or are words of no program."""
    if not value.isascii() or value != value.lower():
        return setting and (is_run_together(value) or is_camel_phrase(value))
    is_long = len(value) >= (16 if is_wordlike(value) else 12)
    return (quoted or setting) and is_long and len(set(value)) > 6 and is_foreign(value)


def _is_password(value: str, *, quoted: bool, setting: bool) -> bool:
    lower = value.lower()
    if is_wild(value):
        return True
    if len(value) > 200 or lower.rstrip("!?") in NO_PASSWORDS or _ADDRESS.fullmatch(lower):
        return False
    has_letter = any(map(str.isalpha, value))
    if has_letter and any(char.isdigit() or char in "!@#$%^&*+=?~" for char in value):
        if is_marked_phrase(value):
            return True
        is_dotted = _DOTTED.fullmatch(value) is not None and not _NUMBERED_WORD.search(value)
        return quoted or setting or not is_dotted or not is_wordlike(value)
    if value.isdigit():
        is_counted = value in COUNTED
        return len(value) >= (6 if setting else 8) and (setting or quoted) and not is_counted
    if quoted and not value.isascii():
        return False  # the label of a field in another language
    if not value.isalpha():
        is_free = is_diceware(value) or ("pass" not in lower and "secret" not in lower)
        is_secret = (
            is_unpronounceable(value)
            or is_joined(value)
            or has_random_case(value)
            or is_diceware(value)
        )
        is_secret |= _THREE_WORDS.fullmatch(value) is not None and is_foreign(value)
        is_marked = quoted or (value.istitle() and is_joined(value))
        is_secret = (is_marked and is_secret) or is_diceware(value)
        return has_letter and is_free and (setting or is_secret)
    if len(value) >= 8 and (
        not is_wordlike(value)
        or has_drawn_part(value)
        or is_camel_phrase(value, 2 if quoted else 3)
        or ((quoted or setting) and is_run_together(value))
    ):
        return True
    return len(value) >= 6 and ((quoted and value == lower) or setting)
