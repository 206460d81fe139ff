r"""Finds values that can hardly be anything but secrets, on the lines around a word for secrets.

No syntax, no distance and no order connects word and value: this finds what stands in layouts and
sentences that no rule knows. The value must therefore look like a secret by itself, more so than
anywhere else: generated from letters and digits, drawn from all signs, or chosen as sites demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.secrets.grade import grade, is_generated
from builder.secrets.hits import Hit
from builder.secrets.nearby import is_word
from builder.secrets.passphrases import is_leet, is_numbered_phrase, is_simple, is_titled
from builder.secrets.prefilter import LinePrefilter, Lines
from builder.secrets.values import has_cases, is_drawn, is_stand_in, is_wordlike
from builder.secrets.words import AROUND, NO_VALUE_AFTER

MAX_LINE = 2000
"""Code points of a line above which its words say nothing about its values."""
FOLLOWING = 2
"""Lines after that of the word that are searched as well."""
REACH = 30
"""Code points before a value in which a word may say that it is no secret."""

_NAMES = r"(?:Password|Token|Secret|ApiKey|Key|Credentials?)"
_SHAPE = (
    r"[0-9][A-Za-z]+[0-9]|[a-z][A-Z][a-z]+[0-9]{2}|[a-z][-_.!][A-Za-z]+[0-9]{2}"
    r"|[0-9][A-Za-z]*-[A-Za-z0-9]{6}|[A-Za-z0-9]{6}-[A-Za-z]*[0-9]|[a-z][-_.!][0-9]{2}"
    r"|[A-Za-z0-9._-][!#$%^*@&~?+][A-Za-z0-9]*[0-9]|[0-9][A-Za-z0-9]*[!#$%^*@&~?+]"
)
"""What every such value contains."""
_EDGE = r"[A-Za-z!#$%^*@&~?+._-][0-9]|[0-9][A-Za-z!#$%^*@&~?+._-]"
"""What every `_SHAPE` contains: with it RE2 needs a quarter of the states before a word."""
LINES = LinePrefilter(
    rf"(?:(?:^|[^A-Za-z])(?i:{AROUND})|[a-z]{_NAMES})[^A-Za-z][^\n]*?"
    rf"(?:\n[^\n]*?){{0,{FOLLOWING}}}?(?:{_SHAPE})"
    rf"|(?:{_EDGE})[^\n]*?(?:[^A-Za-z](?i:{AROUND})|[a-z]{_NAMES})(?:[^A-Za-z]|$)"
)
"""Finds the lines with such a word, if such a value is on them or follows shortly after."""
_WORD = re.compile(
    rf"(?:(?<![A-Za-z])(?:{AROUND})|(?<=[a-z])(?-i:{_NAMES}))(?![A-Za-z])",
    re.IGNORECASE | re.ASCII,
)
"""A word for secrets, for what they open, or for logging in: `sudo`."""
_SHAPED = re.compile(_SHAPE)
"""What every such value contains: `3J9`."""

_RUN_OF_SIGNS = re.compile(r"[^\s\"'`|,;<>()\[\]{}\\]{8,}")
"""Characters without those that end a value: `Canyon!7river`."""
_ENDS_CODE, _BEGINS_CODE = frozenset(";<>)[]{}\\"), frozenset("><([{\\")
"""What stands before and after parts of code, of binary data and of escaped text."""
_ESCAPED = re.compile(r"\\{1,4}[nr](?![A-Za-z0-9])|\\{1,4}[\"']")
r"""The end of a line or a quotation mark in an escaped text, which may follow a value: `\n`."""
_NAME = re.compile(r"(?:[\w.-]{1,80}[=:](?=\S{8})){1,3}")
"""Names of a value, with no space after them: `PASS=Canyon!7river`."""
_NOT_BEFORE = re.compile(
    rf"{NO_VALUE_AFTER}|(?:https?:|://)\S*$|ssh-\w+ $"
    r"|(?:revision|version|trace|span|index|request|message|(?<!pro)file|image|build|pod|name|branch|tag"
    r"|kid|jti)\w{0,8}[^\w\n]{1,6}$",
    re.IGNORECASE,
)
"""What says that the value after it is none: `commit `."""
_CODE = re.compile(
    r"[=/\\:]|(?<![a-z]{3})[&*]|[&*](?![a-z]{3})(?!$)|(?<![0-9])[*+]$|->|\.\.|\+\+|^[@#^~+$%-]"
    r"|@[\w-]+\.|@\d|\w\.\w+\.\w|^\w+\.\w+$|%[sd]|%[0-9A-F]{2}"
    r"|^[a-z.]+#|^[\w.]+#\d+$|^pkcs\d|^(?-i:[A-Z0-9]+)_|^(?:token|secret|key|pass|user|test)[_-]",
    re.IGNORECASE,
)
"""Parts of code, addresses, packages with a version, options, and names: `lodash@4`."""
_SURELY_CODE = re.compile(r"//|->|::|\.\.|%[sd]|%[0-9A-F]{2}|^[-$/@]|/\w+/")
"""Parts of code that no drawn value has: `std::vec`."""
_SIGN = re.compile(r"[!#$%^~@?&*]")
_ANY_SIGN = re.compile("[^A-Za-z0-9]")
_DIGIT = re.compile("[0-9]")
_PAIR = re.compile("[A-Za-z0-9]+[-_.](?=[A-Za-z]*[0-9])[A-Za-z0-9]+")
"""Two parts, of which the second has a number: `An0uk_th1mbl3`."""
_INNER_DIGIT = re.compile("(?<=[A-Za-z])[013457](?=[A-Za-z])")
"""A digit that stands for a letter: `c4t`."""
_RUN = re.compile("[A-Z]?[a-z]{3,}|[A-Z]{4,}")
"""Letters that may be words: `Token`."""
_GROUPS = re.compile("[A-Za-z0-9]{6}(?:-[A-Za-z0-9]{6}){2,3}")
"""What Apple's password manager makes: `fegfo9-jywkaj-devTyg`."""
_GENERATED = re.compile("[A-Za-z0-9+/_~=-]{16,100}")
"""Characters of a generated value: `k3J9sPq0Zx7LmT2v`."""
_DIGEST = re.compile("(?:0x)?[0-9a-fA-F]+|(?:sha|md)[0-9]{1,3}[-=].+")
"""A digest: `sha256-k3J9sPq0`."""


def find_strong(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields such values in lines of `LINES` and the lines after them, in order."""
    words = _Words(text)
    done = 0
    for first, last in lines:
        start, count = max(first, done), FOLLOWING + 1
        while start <= len(text) and (count or start <= last):
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            if end - start <= MAX_LINE:
                for at, stop in _values(text, start, end):
                    if words.are_around(start, end, at, stop):
                        yield Hit(at, stop, "secret", certain=False)
            done = start = end + 1
            count -= count > 0


class _Words:
    """The words for secrets in the lines of a text; each line is searched once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[int, list[tuple[int, int]]] = {}

    def are_around(self, start: int, end: int, at: int, stop: int) -> bool:
        """Returns whether one is around [at, stop) in the line [start, end), or shortly above."""
        own = self._of(start, end)
        if own and (own[0][1] < at or own[-1][0] >= stop):
            return True
        for _ in range(FOLLOWING):
            end = start - 1
            begin = self._text.rfind("\n", max(0, end - MAX_LINE), max(0, end)) + 1
            if end < 0 or (begin == 0 and end > MAX_LINE):
                return False
            start = begin
            if self._of(start, end):
                return True
        return False

    def _of(self, start: int, end: int) -> list[tuple[int, int]]:
        """Returns [start, end) of the words in a line."""
        if start not in self._found:
            spans = (word.span() for word in _WORD.finditer(self._text, start, end))
            self._found[start] = [span for span in spans if is_word(self._text, *span)]
        return self._found[start]


def _values(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of the values in a line that can hardly be anything but secrets."""
    for run in _RUN_OF_SIGNS.finditer(text, start, end):
        at, value = run.start(), run[0]
        if text[at - 1 : at] in _ENDS_CODE or (
            text[run.end() : run.end() + 1] in _BEGINS_CODE and not _ESCAPED.match(text, run.end())
        ):
            continue
        if _SHAPED.search(value) is None:
            continue
        if (name := _NAME.match(value)) is not None:
            at, value = at + name.end(), value[name.end() :]
        if value.startswith("*"):  # emphasis of Markdown
            bare = value.lstrip("*")
            at, value = at + len(value) - len(bare), bare.rstrip("*.,:;")
        value = value.rstrip(".,:;" if grade(value).is_secret else ".,:;!?")
        if _NOT_BEFORE.search(text, max(start, at - REACH), at) or is_stand_in(value):
            continue
        is_alone = text[start:end].strip() == value  # a line of a certificate, an image, a file
        is_secret = _is_chosen(value) or _is_drawn(value) or (not is_alone and _is_token(value))
        if is_secret and _SHAPED.search(value):
            yield at, at + len(value)


def _is_chosen(value: str) -> bool:
    """Returns whether people and password managers choose such values, and programs do not."""
    if not 8 <= len(value) <= 40 or not value.isascii():
        return False
    digits = len(_DIGIT.findall(value))
    if is_numbered_phrase(value) or (
        digits == 1 and has_cases(value) and _GROUPS.fullmatch(value) is not None
    ):
        return True
    if digits > 3 and has_cases(value) and _PAIR.fullmatch(value) and _is_respelt(value):
        return True
    if _CODE.search(value) or not grade(value).is_secret:
        return False
    has_sign = _SIGN.search(value) is not None
    if not has_cases(value):
        return has_sign and digits > 1 and value[0].isalnum()
    is_long = len(value) > 9 and digits > 2 and (is_drawn(value) or _is_respelt(value))
    return has_sign or is_long or (digits > 1 and (is_simple(value, 2) or is_titled(value, 2)))


def _is_respelt(value: str) -> bool:
    """Returns whether digits stand for letters in two places: `An0uk_th1mbl341`."""
    return is_leet(value) or len(_INNER_DIGIT.findall(value)) > 1


def _is_drawn(value: str) -> bool:
    """Returns whether it was drawn from letters, digits and all signs, and is no code."""
    digits = len(_DIGIT.findall(value))
    return (
        8 <= len(value) <= 40
        and value.isascii()
        and has_cases(value)
        and len(set(_ANY_SIGN.findall(value))) >= (2 if len(value) > 11 and digits > 2 else 3)
        and digits > 0
        and _SURELY_CODE.search(value) is None
        and not any(is_wordlike(run) for run in _RUN.findall(value))
    )


def _is_token(value: str) -> bool:
    """Returns whether it was generated from letters and digits, and is no digest."""
    return (
        _GENERATED.fullmatch(value) is not None
        and (has_cases(value) or (len(value) > 19 and value.isalnum() and value.islower()))
        and value.count("/") < 4
        and len(_DIGIT.findall(value)) > 1
        and _DIGEST.fullmatch(value) is None
        and is_generated(value)
    )
