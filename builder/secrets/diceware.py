"""Recognises passwords made of words: `marble-thunder-badger-walnut`, `CobaltGardenPirate`.

Names in programs consist of words, too, but theirs name the things of programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from builder.secrets.words import LABEL_PARTS, OF_PROGRAMS, OF_RESOURCES

_WORDS = re.compile(r"([a-z]{4,9}(?:([-_.])[a-z]{4,9})(?:\2[a-z]{4,9}){2,6})[0-9]{0,4}")
_MARKED = re.compile("[A-Z]?[a-z]{3,9}[0-9]{0,4}(?:[-_.][A-Z]?[a-z]{3,9}[0-9]{0,4}){3,6}")
_HAS_DIGIT = re.compile("[0-9]")
_LETTERS = re.compile("[A-Za-z]+")
_HUMPS = re.compile("(?:[a-z]{4,12}|[A-Z][a-z]{3,11})(?:[A-Z][a-z]{3,11}){1,6}")
_HUMP = re.compile("[A-Z]?[a-z]+")
_RUN_TOGETHER = re.compile(
    "[A-Z][a-z]{15,29}|(?=[A-Za-z]{16,40}$)[A-Za-z][a-z]{4,19}[A-Z][a-z]{4,19}"
)
_SIMPLE = re.compile(
    r"(?:[A-Z]?[a-z]{3,12}(?:[A-Z][a-z]{2,11}|[-_.][a-z]{3,12}){1,4}[-_.]?\d{2,6}"
    r"|[A-Z]?[a-z]{4,12}\d{4,6})(?:[!?.-]|[A-Za-z])?"
)
_NUMBERED = re.compile(
    r"[.!]?(?:[A-Z]?[a-z]{3,12}[-_.!]?){2,6}[-_.]?[0-9]{2,8}(?:[-_.!][0-9]{2,8})?[!?*#$%&+@]?"
)
_PARTS = (*LABEL_PARTS, *sorted(word for word in OF_PROGRAMS if len(word) > 4))


def is_diceware(value: str) -> bool:
    """Returns whether it is four words or more of which hardly one is a word of programs.

    A number may follow. One in four may be: lists of words for passphrases contain such words, too.
    But between dots the last one names the thing of a program.
    """
    match = _WORDS.fullmatch(value[:100])
    if match is None or len(value) > 100:
        return False
    words = re.split("[-_.]", match[1])
    is_path = "." in value and words[-1] in OF_PROGRAMS
    is_repeated = len(set(words)) < len(words) - 1
    return not is_repeated and share_of_programs(words) <= 0.25 and not is_path


def is_marked_phrase(value: str) -> bool:
    """Returns whether it is four words or more, some with a number: `bicycle27.Island.bramble.elm`.

    Hardly one of the words is one of programs.
    """
    if len(value) > 100 or _MARKED.fullmatch(value) is None or not _HAS_DIGIT.search(value):
        return False
    return share_of_programs([word.lower() for word in _LETTERS.findall(value)]) <= 0.25


def share_of_programs(words: Sequence[str]) -> float:
    """Returns which part of some words in lower case are words of programs, from 0 to 1."""
    return sum(word in OF_PROGRAMS for word in words) / len(words)


def is_camel_phrase(value: str, least: int = 3) -> bool:
    """Returns whether it is `least` words or more like `CobaltGardenPirate`, none of programs."""
    if len(value) > 64 or _HUMPS.fullmatch(value) is None:
        return False
    words = [word.lower() for word in _HUMP.findall(value)]
    return len(set(words)) == len(words) >= least and OF_PROGRAMS.isdisjoint(words)


def is_simple(value: str, least: int = 1) -> bool:
    """Returns whether it is `least` words or more and a number: `plutoWillow291`, `river4471`.

    None of the words is one of programs, except `secret` after two others.
    """
    if len(value) > 64 or _SIMPLE.fullmatch(value) is None:
        return False
    words = [word.lower() for word in _HUMP.findall(value)]
    if len(words) > 2 and words[-1] == "secret":
        words.pop()
    is_foreign_to_programs = OF_PROGRAMS.isdisjoint(words) and OF_RESOURCES.isdisjoint(words)
    return len(words) >= least and is_foreign_to_programs


def is_numbered_phrase(value: str) -> bool:
    """Returns whether it is words and a number with signs between them: `PebbleOnyx51_2694`.

    Two words suffice if one is capitalised; in lower case it takes four, and names of programs have
    underscores. None of the words is one of programs.
    """
    is_lower = value == value.lower()
    if len(value) > 64 or _NUMBERED.fullmatch(value) is None:
        return False
    if is_lower and "_" in value:
        return is_diceware(value)
    words = [word.lower() for word in _HUMP.findall(value)]
    is_foreign_to_programs = OF_PROGRAMS.isdisjoint(words) and OF_RESOURCES.isdisjoint(words)
    return is_foreign_to_programs and len(words) >= (4 if is_lower else 2)


def is_run_together(value: str) -> bool:
    """Returns whether it is long words written as one or two, like `autumnwizardSaffron`."""
    return len(value) <= 40 and _RUN_TOGETHER.fullmatch(value) is not None and is_foreign(value)


def is_foreign(value: str) -> bool:
    """Returns whether none of the longer words of programs is within the value."""
    lower = value.lower()
    return not any(part in lower for part in _PARTS)
