"""Judges a value by itself: generated, a password, a placeholder or code.

The engine asks this of what a context or a name marks as secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

from builder.secrets.tables import NAMES, VALUES

LOOKED_AT = 200
"""Code points of a value that are examined: a hostile text may have a long one at every word."""

_FOLLOWING = (
    "abcdgilmnprst bel caehiklortu daeios eacdeflmnprstvx fefio ger haeio iabcdefglmnoprstvz ke"
    " laeilosty maeiop nacdefgiost ocdlmnoprstuw paeiloprt qu racdeimorst sacehiopstu"
    " taehiorstuy ubelmnprst vaei wai ze"
)
"""A letter, followed by those that often come after it: `qu` is the pair "qu"."""
_PAIRS = frozenset(group[0] + second for group in _FOLLOWING.split() for second in group[1:])
"""The 160 most frequent pairs of letters in the words of CPython's standard library.

84 % of the pairs in its identifiers and docstrings are among them, and 24 % of random pairs.
"""
_WORDLIKE = 0.55
"""Minimum share of such pairs for letters to count as words: 1.7 % of twelve random letters do."""
_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_MEAN_HUMP = 2.7
"""Average letters per hump of camelCase below which the case counts as random."""
_WORDS = re.compile(
    r"(?:[A-Za-z]{2,}\d{0,3}|\d{1,4}|[a-z]\d+)(?:[^A-Za-z0-9]+(?:[A-Za-z]{1,}\d{0,3}|\d{1,4}))*\}?"
)
"""Words and numbers with signs between them: `release-2024.1`."""
_LONG_RUN = re.compile(r"[A-Za-z]{12,}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
SIGN = re.compile(r"[!@#$%^&*+=?~]")

_STAND_IN = re.compile(
    f"^(?:{'|'.join(VALUES['stand_in_begins'])})|{'|'.join(VALUES['stand_in_has'])}", re.IGNORECASE
)
"""A variable, a type, a path, an example in documentation: `your_password`."""
_BASE64 = re.compile(r"(?=(?:\D*\d){3})(?=(?:[^A-Z]*[A-Z]){4})[A-Za-z0-9+/]{24,4000}={0,2}")
"""Base64, which may begin like a path: `/k3J9sPq0Zx7LmT2vQ8wE4rTy`."""
_OPEN = re.compile("|".join(VALUES["open"]))
"""Versions, public keys, ids of resources: `vpc-0a1b2c3d`, no secret."""
_STOP = frozenset(NAMES["stop"].split())
"""Types, states, algorithms and labels that follow the name of a secret and are none."""
_DOTTED = re.compile(r"[A-Za-z_$]\w*(?:(?:\??\.|::|->)[A-Za-z_$]\w*)*")
"""A name in a program, also with attributes: `config.db.password`."""
_GROUPS = re.compile("[a-z0-9]{4}(?: [a-z0-9]{4}){3}")
"""A password for one application, as mail providers print it: `abcd efgh ijkl mnop`."""
_CODE = re.compile(
    r"\w\(|\(\)|\[\w*\]|\{\w*\}|^[)},;:]|\);|=(?:null|true|false|this)\b|=>|->|::|&&|\|\||[!=]==?|\?\.|\$\{|\{\{|</|/>|\\[wds]|\[\^|\(\?|\[[^\]]{1,80}\][{*+?]|%[sd]\b|\+\w+\["
)
"""Calls, operators and tags: `f(x)`."""


def entropy(text: str) -> float:
    """Returns the Shannon entropy in bits per character, from the text's own frequencies."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def is_wordlike(text: str) -> bool:
    """Returns whether the letters look like words, as in an identifier, and not random.

    Compares adjacent letters with `_PAIRS`, and how often the case changes. A text with fewer than
    three pairs is not wordlike.
    """
    humps = _HUMP.findall(text)
    if len(humps) > 3 and sum(map(len, humps)) < _MEAN_HUMP * len(humps):
        return False
    if _is_paired(text):
        return True
    in_words = sum(len(hump) for hump in humps if len(hump) > 3 and _is_paired(hump))
    return len(humps) > 2 and text.isalpha() and in_words >= _WORDLIKE * len(text)


def _is_paired(text: str) -> bool:
    lower = text.lower()
    pairs = [a + b for a, b in pairwise(lower) if (a + b).isalpha()]
    return len(pairs) >= 3 and sum(pair in _PAIRS for pair in pairs) >= _WORDLIKE * len(pairs)


def is_stand_in(value: str) -> bool:
    """Returns whether it is a placeholder, a public value, or a word that names no secret."""
    begin = value[:LOOKED_AT]
    if begin.lower().strip("!?.") in _STOP or _OPEN.fullmatch(begin):
        return True
    found = _STAND_IN.search(begin)
    return found is not None and not (found[0].startswith("/") and _BASE64.fullmatch(value))


def is_random(value: str) -> bool:
    """Returns whether it looks generated: long and mixed enough for a token, not of words.

    Letters alone need 16 characters and no wordlike pairs; with digits among them 12 are enough.
    """
    begin = value[:LOOKED_AT]
    if len(value) < 12 or not value.isascii() or entropy(begin) < 2.8:
        return False
    letters = sum(map(str.isalpha, begin))
    if not any(map(str.isdigit, begin)):
        return len(value) >= 16 and begin.isalpha() and not is_wordlike(begin)
    if not letters:
        return False
    if len(value) < 60 and _WORDS.fullmatch(value) and (is_wordlike(value) or not value.isalnum()):
        return any(not is_wordlike(run) for run in _LONG_RUN.findall(value))
    is_identifier = letters >= 0.8 * len(begin) and not _HEX.fullmatch(begin)
    return not (is_identifier and is_wordlike(begin))


def is_name(value: str) -> bool:
    """Returns whether it is a name in a program: `other1`, `form.password.data`, `MyType2`."""
    if _DOTTED.fullmatch(value) is None:
        return False
    return len(value) < 10 or is_wordlike(value) or "." in value or "_" in value


def is_code(value: str) -> bool:
    """Returns whether it has calls, operators or tags of a program."""
    return _CODE.search(value[:LOOKED_AT].rstrip("=")) is not None


def is_password(value: str, *, quoted: bool, setting: bool) -> bool:
    """Returns whether a value after the name of a password is one.

    quoted   it is in quotation marks
    setting  its surroundings cannot be code: a line of settings, a member of JSON
    """
    if not 4 <= len(value) <= LOOKED_AT or not value.isascii() or is_stand_in(value):
        return False
    if is_code(value) or not any(map(str.isalnum, value)):
        return False
    if " " in value and not _GROUPS.fullmatch(value):
        return False  # a sentence
    has_digit = any(map(str.isdigit, value))
    if not any(map(str.isalpha, value)):
        is_counted = value in "01234567890123456789"
        return (quoted or setting) and len(value) >= (6 if setting else 8) and not is_counted
    if SIGN.search(value):
        return quoted or setting or has_digit or not is_name(value.strip("!@#$%^&*+=?~"))
    if has_digit:
        return quoted or setting or is_random(value) or not is_name(value)
    if value.isalpha():
        is_drawn = len(value) >= 8 and not value.istitle() and not is_wordlike(value)
        is_word = len(value) >= 6 and (value.islower() if quoted else setting)
        return is_drawn or ((quoted or setting) and is_word)
    return setting and not value.lower().endswith(("password", "token", "secret", "key", "pass"))
