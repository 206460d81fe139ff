"""Classifies a value: generated, made of words, code, or a placeholder of documentation."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

from builder.secrets.letters import has_drawn_letters
from builder.secrets.passphrases import is_diceware

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
"""Minimum share of such pairs for letters to count as words.

Of random lower-case letters 1.7 % reach it at length 12 and 0.05 % at length 32; 2.3 % of the
library's words of eight letters or more do not.
"""

_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_MEAN_HUMP = 2.7
"""Average letters per hump of camelCase below which the case counts as random."""

_INNER_DIGIT = re.compile(r"[A-Za-z]\d{1,4}[A-Za-z]")
_WORDS = re.compile(
    r"(?:[A-Za-z]{2,}\d{0,3}|\d{1,4}|[a-z]\d+)(?:[^A-Za-z0-9]+(?:[A-Za-z]{1,}\d{0,3}|\d{1,4}))*\}?"
)
"""Words and numbers with signs between them: `release-2024.1`."""
_NO_SEPARATORS = str.maketrans("", "", "_-+/=")
_LONG_RUN = re.compile(r"[A-Za-z]{12,}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_ANY_SIGN = re.compile(r"[^\w\s.'\"`/-]")
_SURELY_CODE = re.compile(
    r"[aA0]-[zZfF9]|\(\?|\?[!=:P]|\(0,|[+:]\(|;(?:let|var|if|for|return|const)?$|[+]\d+\*\w|\]\);|^\(\w+\)$|\)\(|`"
)
"""Regular expressions and minified scripts: `[a-z]`."""
_MISPLACED = re.compile(
    r"[A-Za-z0-9][!@#][A-Za-z0-9({[]|[)}\]][@#][A-Za-z0-9]|[({[][@#^]|[@#^][)}\]]"
    r"|[A-Za-z0-9]\?[A-Za-z0-9]+$"
)
"""Signs where code has none: `a!b`."""
_RARE = re.compile(r"[@#^%~$*?]|[A-Za-z0-9]!")
_SYNTAX = frozenset("()[]{}<>;,|&")
_LETTER_RUN = re.compile("[A-Za-z]{4,}")
_CODE_LIKE = re.compile(
    r"\(\)|\[\d*\]|\{\}|&&|\|\||=>|->|::|\$\{|\{\{|</|/>|\w\([\w.,:]*\)|\w\[\w+\]|<\w+>|\{\w+\}|[!=]=|:\[|,\w+[:=]"
    r"|\)[.;,]|\},|\],|\(\?|\[\^|\w-\w.*\w-\w|\\|\)\)|\}\)|\)\}|\}\}|;\w+[=(]|^[\w$.]+[(=]|&\w+;|%[sd]|\?\w+:|,\w,|\(\w,|^<|>$"
)
"""Brackets, operators and tags: `f(x)`."""

_STAND_IN = re.compile(
    r"^(?:\$[{(]|\$[\w:.]+(?:-|->.*)?$|\$\w+/|\$\w+\[|=\{\{|__\w+__$|0x(?:[0-9a-f]{1,16}|[0-9a-f]{40})$|\[%"
    r"|%\w+%$|%[sdvqT(]|<(?=[^<>]*>|[\w .:/-]*$)|\{|@[A-Za-z_.-]+\d{0,2}$|&[A-Za-z_]\w*$"
    r"|[a-z]{1,14}=$|\*(?:$|\*|[^*]*\*$|[a-z*]+\*$)|#\{|your|my[_-]|the[_-]|some[_-]|fake|dummy"
    r"|sample|test[_-]?(?:key|token|secret|pass)|(?:insert|replace|enter)[_ -]|arn:|file:|https?:|(?:op|bws|keeper|secretref|ref\+\w{2,20})://|keychain:"
    r"|(?:null|none|true|false|undefined|string|todo|process|os|env|config|settings|self|this|options"
    r"|args|params|request|res|response|await|new|function|get|fetch|load|vault)(?![A-Za-z0-9])"
    r"|![a-z][a-z_.]*$|\[{0,2}[a-z][a-z _-]{2,40}\]{1,2}$|\[[\w-]+[~^$*|]?=[^\]]*\]$"
    r"|/[a-z][a-z0-9_.-]*/|//|\.(?!(?-i:[A-Z])[a-z]{2,30}[-_!]?\d{2,6}[-_!]?[a-z]{0,15}$)|~/"
    r"|\d+[ui](?:8|16|32|64|128|size)$|[-+]?\d+\.\d+e[-+]\d+$|\d\*[a-z]+$|\d{1,4}/[smhd](?:/|$)"
    r"|\*(?:const|mut)$|_{0,2}u?int\d{1,3}(?:_t)?$|urn:|user(?:name)?:pass|base64[_-]"
    r"|[a-z_$](?![\w$]*\d\d)[\w$.]*\?\?$|projects/[\w-]+/secrets/|[a-z]{1,8}[-_]your[-_]|[\w$]+(?:\.[\w$]+)*\?\.[\w$.]+$"
    r"|(?:client|api|app|access|refresh|auth)[_-]?(?:secret|key|token)$|(?-i:[A-Z]{2,}(?:_[A-Z]{2,}){1,5}$)"
    r"|(?:rfc|pep)[ -]?\d{1,5}$|pb(?:kdf2|e)with[\w-]{3,60}$|x{3}$|\d{3,5}(?:_[a-z0-9]{1,30}){2,8}$"
    r"|[\w./-]{0,80}/[\w./-]{0,80}(?:\$?\{|%s)|[a-z]\w{0,20}\{\d{0,2}\}$|[\w/.-]{1,80}\.(?:png|jpe?g|gif|svg|webp|ico|css|html?)(?:\?\w{0,20})?$"
    r"|[0-9a-f:]{0,20}::[0-9a-f:]{1,20}$|(?=\d+[.:TZ+-])[\d.:TZ+-]+$|enc\[[a-z0-9_]{3,12},|\*{1,8}@|@microsoft\.keyvault\()"
    r"|\*{3}|x{4}|[\u2022\u25cf\u2217]{3}|=%(?-i:[sd])|\.{3}|…|example|placeholder|change[_-]?(?:me|this)|redacted|not[_-]?a[_-]?real",
    re.IGNORECASE,
)
"""A variable, a type, a path, an example in documentation: `your_password`."""

_BASE64 = re.compile(
    r"(?=(?:[^A-Z]*[A-Z]){4})(?=(?:[^a-z]*[a-z]){4})(?=(?:\D*\d){3})[A-Za-z0-9+/]{24,4000}={0,2}"
)
"""Base64 that may begin like a path: `/k3J9sPq0Zx7LmT2vQ8wE4rTy`."""

_UNLIKE_CHOSEN = re.compile(
    r"[\s\"'`<>(){}\[\],;|=/\\]|\$[A-Za-z_{]|%[sd(]|%[0-9A-Fa-f]{2}|@[\w-]+\.[a-z]{2}"
)
"""What chosen passwords do not contain: quotation marks, brackets, `${HOME}`."""
_SEED = re.compile("(?:[a-z]{3,8} ){11,23}[a-z]{3,8}")
"""A seed phrase of a wallet: `enter oak elm fir ash yew tea rye hay oat nut fig`."""
_INTERPOLATED = re.compile(r"\$\{[^{}]{1,80}\}|\{\{[^{}]{1,80}\}\}")
"""A variable in a text: `${token}`."""
_SIGNS = frozenset("!#%^*+&~|;@=,")
"""Of these a drawn value has several, and what begins with a brace or a dot otherwise has none."""
_FEW = 8
"""Characters beside variables up to which they are only a prefix: `oauth2:${token}`."""


def is_stand_in(value: str) -> bool:
    """Returns whether it is a placeholder: a variable, a path, an example in documentation."""
    if _SEED.fullmatch(value):
        return False
    if "{" in value and len(_INTERPOLATED.sub("", value[:LOOKED_AT])) <= _FEW < len(value):
        return True
    if value.startswith(("{", ".")) and value[-1] != "}" and len(_SIGNS.intersection(value)) > 1:
        return False
    found = _STAND_IN.search(value[:LOOKED_AT])
    if found is None:
        return False
    is_base64 = found[0].startswith("/") and _BASE64.fullmatch(value)
    is_word = found.start() == 0 and found[0].isalpha() and is_diceware(value)
    return not (is_base64 or is_word)


def has_cases(text: str) -> bool:
    """Returns whether it has letters in upper and in lower case."""
    return text != text.lower() and text != text.upper()


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
    lower = text.lower()
    pairs = [a + b for a, b in pairwise(lower) if (a + b).isalpha()]
    if len(pairs) < 3:
        return False
    return sum(pair in _PAIRS for pair in pairs) >= _WORDLIKE * len(pairs)


def is_camel_case(text: str) -> bool:
    """Returns whether it is a name of three parts or more, whose letters are mostly in words."""
    parts = _HUMP.findall(text)
    in_words = sum(len(part) for part in parts if len(part) > 3 and is_wordlike(part))
    return text.isalpha() and text.isascii() and len(parts) > 2 and in_words >= 0.55 * len(text)


def has_drawn_part(text: str) -> bool:
    """Returns whether some of its letters were drawn at random, and it is no name."""
    return has_drawn_letters(text) and not is_camel_case(text)


def is_unpronounceable(value: str) -> bool:
    """Returns whether it has 8 or more characters, in both cases, whose letters form no words."""
    begin = value[:LOOKED_AT]
    return (
        len(value) >= 8 and has_cases(value) and (not is_wordlike(begin) or has_drawn_part(begin))
    )


def is_drawn(value: str) -> bool:
    """Returns whether it looks like a generated password, more strictly: for values in sentences.

    Names of programs may be unpronounceable too: `xmlGetNsByHref`, `LayoutLMv3Model`.
    """
    return len(value) >= 8 and (
        has_drawn_part(value[:LOOKED_AT])
        or (_INNER_DIGIT.search(value) is not None and is_unpronounceable(value))
    )


def is_chosen(value: str) -> bool:
    """Is it like a password that a site accepts: both cases, a digit, and a sign of no syntax?"""
    begin = value[:LOOKED_AT]
    return (
        8 <= len(value) <= 64
        and has_cases(begin)
        and any(map(str.isdigit, begin))
        and not _UNLIKE_CHOSEN.search(begin)
        and any(char in "!#$%^*~@?" for char in begin)
    )


def is_wild(value: str) -> bool:
    """Returns whether it was drawn from letters, digits and all signs: `u3X(eAj}TZ@9`.

    It has letters in both cases, and several signs, some of which are syntax in code. But code has
    words, pairs of brackets and calls.
    """
    begin = value[:LOOKED_AT]
    signs = _ANY_SIGN.findall(begin)
    return (
        8 <= len(value) <= 64
        and value.isascii()
        and has_cases(begin)
        and (len(set(signs)) > 2 or (len(set(signs)) > 1 and any(map(str.isdigit, begin))))
        and any(sign in _SYNTAX for sign in signs)
        and _SURELY_CODE.search(begin) is None
        and (_CODE_LIKE.search(begin) is None or _is_unlike_code(begin))
        and not any(is_wordlike(run) for run in _LETTER_RUN.findall(begin))
    )


def _is_unlike_code(text: str) -> bool:
    """Returns whether signs stand where code has none, or a bracket lacks its other half."""
    is_open = any(text.count(a) != text.count(b) for a, b in ("()", "[]", "{}"))
    return _MISPLACED.search(text) is not None or (is_open and _RARE.search(text) is not None)


def has_random_case(value: str) -> bool:
    """Returns whether its last part mixes upper and lower case as no name does: `velvet_ebDb`."""
    last = re.split("[-._]", value[:LOOKED_AT])[-1]
    humps = _HUMP.findall(last)
    is_mixed = len(humps) > 1 and last[:1].islower() and last != last.lower()
    return is_mixed and last.isalpha() and len(last) >= 4 and len(last) < _MEAN_HUMP * len(humps)


def is_strong(value: str) -> bool:
    """Returns whether it looks like a short generated password: with a digit, in both cases."""
    return (
        any(map(str.isdigit, value))
        and value.isascii()
        and _WORDS.fullmatch(value) is None
        and is_unpronounceable(value)
    )


def looks_random(value: str) -> bool:
    """Returns whether the value looks generated: long and mixed enough for a token, not of words.

    Letters alone need 16 characters and no wordlike pairs, or a part that was drawn; with digits
    among them 12 are enough.
    """
    begin = value[:LOOKED_AT]
    has_digit = any(map(str.isdigit, begin))
    has_letter = any(map(str.isalpha, begin))
    if not has_letter or not value.isascii() or len(value) < 12 or entropy(begin) < 2.8:
        return False
    if not has_digit:
        is_name = is_wordlike(begin) or is_camel_case(begin)
        is_long = len(value) >= 16 and begin.isalpha() and not is_name
        is_word = begin.translate(_NO_SEPARATORS).isalpha()
        return is_word and (is_long or has_drawn_part(begin))
    if len(value) < 60 and _WORDS.fullmatch(value) and (is_wordlike(value) or not value.isalnum()):
        return any(not is_wordlike(run) for run in _LONG_RUN.findall(value))
    letters = sum(map(str.isalpha, begin))
    is_identifier = letters >= 0.8 * len(begin) and not _HEX.fullmatch(begin)
    return not (is_identifier and is_wordlike(begin) and not has_drawn_part(begin))
