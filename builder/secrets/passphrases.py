"""Recognises passwords made of words: `marble-thunder-badger-walnut`, `plutoWillow291`.

Names in programs consist of words, too, but theirs name the things of programs: `OF_PROGRAMS`.
Phrases for passwords may have one such word in four, since lists of words for them contain some.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from builder.secrets.words import LABEL_PARTS, OF_PROGRAMS, OF_RESOURCES, SMALL_WORDS

MAX_PHRASE = 200
"""Code points of a phrase with spaces; longer ones are texts."""
FEW = 0.25
"""Share of words of programs that a phrase for passwords may have."""
_PARTS = (*LABEL_PARTS, *sorted(word for word in OF_PROGRAMS if len(word) > 4))

_HUMP = re.compile("[A-Z]?[a-z]+")
_JOINT = re.compile("[-._]")
_INNER_DIGIT = re.compile(r"[A-Za-z]\d{1,4}[A-Za-z]")
_DICEWARE = re.compile(r"([a-z]{4,9}(?:([-_.])[a-z]{4,9})(?:\2[a-z]{4,9}){2,6})[0-9]{0,4}")
"""Four words or more in lower case with one sign: `marble-thunder-badger-walnut`."""
_MARKED = re.compile(
    "(?=.*[0-9])[A-Z]?[a-z]{3,9}[0-9]{0,4}(?:[-_.][A-Z]?[a-z]{3,9}[0-9]{0,4}){3,6}"
)
"""Four words or more, one with a number: `bicycle27.Island.elm.oar`."""
_CAMEL = re.compile("(?:[a-z]{4,12}|[A-Z][a-z]{3,11})(?:[A-Z][a-z]{3,11}){1,6}")
"""Two words or more in camelCase: `CobaltGardenPirate`."""
_RUN_TOGETHER = re.compile(
    "[A-Z][a-z]{15,29}|(?=[A-Za-z]{16,40}$)[A-Za-z][a-z]{4,19}[A-Z][a-z]{4,19}"
)
"""Long letters with one capital or two: `autumnwizardSaffron`."""
_SIMPLE = re.compile(
    r"(?:[A-Z]?[a-z]{3,12}(?:[A-Z][a-z]{2,11}|[-_.][a-z]{3,12}){1,4}[-_.]?\d{2,6}"
    r"|[A-Z]?[a-z]{4,12}\d{4,6})(?:[!?.-]|[A-Za-z])?"
)
"""Words and a number: `plutoWillow291`."""
_NUMBERED = re.compile(
    r"[.!]?(?:[A-Z]?[a-z]{3,12}[-_.!]?){2,6}[-_.]?[0-9]{2,8}(?:[-_.!][0-9]{2,8})?[!?*#$%&+@]?"
)
"""Words, signs and a number in any order of capitals: `PebbleOnyx51_2694`."""
_TITLED = re.compile(r"[A-Z](?:[A-Za-z]?[a-z]{1,15}[-_.+=!~]){1,5}\d{1,6}")
"""Capitalised words, each with a sign, and a number: `My-Bicycle-90`."""
_TITLE_SIGN = re.compile("[-_.+=!~]")
_WORDS_AND_NUMBER = re.compile(
    r"[A-Z][a-z]{1,15}(?:[-_.]?[A-Z][a-z]{1,15}){1,4}\d{2,6}|[a-z]{2,16}[A-Z][a-z]{2,15}[-_.]\d{3,6}"
    r"|[a-z]{3,16}[-_.][A-Z][a-z]{2,15}\d{2,6}|[A-Z][a-z]{3,15}(?:19|20)\d\d[_.!-]"
)
"""Words in two cases and a number: `gingerVelvet-6967`."""
_LEET = re.compile(
    r"(?=\D*[A-Z]|.*[!#$%^*~@?_.-])(?:[A-Za-z]{1,8}[013457@$]){2,5}[A-Za-z]{1,8}\W?_?\d{0,4}\W?"
)
"""Letters with digits in their places: `P4ssw0rt_93`."""
_OF_RESOURCE = re.compile("secret|cred|token|key|tls|cert|config|pass")
"""Parts of the names of resources: `db-credentials`."""


def _shaped(value: str, shape: re.Pattern[str], most: int) -> list[str]:
    """Returns the words in lower case of a value of at most `most` code points; [] for others."""
    if len(value) > most or shape.fullmatch(value) is None:
        return []
    return [word.lower() for word in _HUMP.findall(value)]


def share_of_programs(words: Sequence[str]) -> float:
    """Returns which part of some words in lower case are words of programs, from 0 to 1."""
    return sum(word in OF_PROGRAMS for word in words) / len(words)


def is_foreign(value: str) -> bool:
    """Returns whether none of the longer words of programs is within the value."""
    lower = value.lower()
    return not any(part in lower for part in _PARTS)


def _are_foreign(words: Sequence[str]) -> bool:
    return OF_PROGRAMS.isdisjoint(words) and OF_RESOURCES.isdisjoint(words)


def is_diceware(value: str) -> bool:
    """Returns whether it is four words or more with signs: `marble-thunder-badger-walnut`.

    A number may follow. Between dots the last word names the thing of a program.
    """
    words = _shaped(value, _DICEWARE, 100)
    is_path = "." in value and bool(words) and words[-1] in OF_PROGRAMS
    is_repeated = len(set(words)) < len(words) - 1
    return bool(words) and not is_repeated and share_of_programs(words) <= FEW and not is_path


def is_marked_phrase(value: str) -> bool:
    """Returns whether it is four words or more, some with a number: `bicycle27.Island.elm.oar`."""
    words = _shaped(value, _MARKED, 100)
    return bool(words) and share_of_programs(words) <= FEW


def is_camel_phrase(value: str, least: int = 3) -> bool:
    """Returns whether it is `least` words or more like `CobaltGardenPirate`, none of programs."""
    words = _shaped(value, _CAMEL, 64)
    return len(set(words)) == len(words) >= least and OF_PROGRAMS.isdisjoint(words)


def is_run_together(value: str) -> bool:
    """Returns whether it is long words written as one or two, like `autumnwizardSaffron`."""
    return bool(_shaped(value, _RUN_TOGETHER, 40)) and is_foreign(value)


def is_simple(value: str, least: int = 1) -> bool:
    """Returns whether it is `least` words or more and a number: `plutoWillow291`, `river4471`.

    None of the words is one of programs, except `secret` after two others.
    """
    words = _shaped(value, _SIMPLE, 64)
    if len(words) > 2 and words[-1] == "secret":
        words.pop()
    return len(words) >= least and _are_foreign(words)


def is_numbered_phrase(value: str) -> bool:
    """Returns whether it is words and a number with signs between them: `PebbleOnyx51_2694`.

    Two words suffice if one is capitalised; in lower case it takes four, and names of programs have
    underscores. None of the words is one of programs.
    """
    words = _shaped(value, _NUMBERED, 64)
    is_lower = value == value.lower()
    if is_lower and "_" in value:
        return bool(words) and is_diceware(value)
    return len(words) >= (4 if is_lower else 2) and _are_foreign(words)


def is_phrase(value: str, least: int = 4, small: int = 0) -> bool:
    """Returns whether it is `least` drawn words or more with spaces: `river lamp stone oak`.

    Or with hyphens. No sentence, label or message has so few small words: at most `small`.
    """
    if len(value) > MAX_PHRASE:
        return False
    words = value.replace("-", " ").split(" ")
    return (
        least <= len(words) <= 12
        and all(3 <= len(word) <= 12 and word.isascii() and word.isalpha() for word in words)
        and (value == value.lower() or all(map(str.istitle, words)))
        and len(SMALL_WORDS.intersection(map(str.lower, words))) <= small
    )


def is_numbered(value: str) -> bool:
    """Returns whether it is a passphrase of two words or more and a number: `lamp river 2024`."""
    words = value[:MAX_PHRASE].split(" ")
    return any(map(str.isdigit, words)) and is_phrase(
        " ".join(word for word in words if not (word.isdigit() and len(word) > 1)), 2
    )


def is_joined(value: str) -> bool:
    """Returns whether it is a passphrase of three words or more without spaces between them.

    `drift-rocket-prairie`, also with a number after it. With other signs than hyphens each word is
    capitalised, as names in programs are not: `Velvet_Dragon.Storm`. Two words suffice if dots
    separate them from each other and from a number, as in no name: `orchid.yonder.89`.
    """
    words = _JOINT.split(value)
    least, small = 3, 0
    number = words.pop() if words[-1].isdigit() else ""
    if "." in value and len(number) > 1 and not {"_", "-"}.intersection(value):
        least = 2
    elif all(map(str.istitle, words)):
        small = len(words) // 4
    elif "." in value or "_" in value:
        return False
    return all(len(word) > 3 for word in words) and is_phrase(" ".join(words), least, small)


def is_titled(value: str, least: int = 1) -> bool:
    """Returns whether it is `least` capitalised words or more and a number: `My-Bicycle-90`.

    A sign follows each word; with a `least` of 1 none is needed: `MyBicycle472`,
    `gingerVelvet-6967`. No name in a program ends in such a number, and names of resources are in
    lower case.
    """
    if _TITLED.fullmatch(value) is not None and len(_TITLE_SIGN.findall(value)) >= least:
        return True
    return least == 1 and _WORDS_AND_NUMBER.fullmatch(value) is not None


def is_salted(value: str) -> bool:
    """Returns whether it is words and a random end: `pepper-maple-jwt-hehc6iw5`.

    Names of resources may end so, too; they say what they are: `db-credentials-8h2mgk5c6t`.
    """
    *words, salt = _JOINT.split(value[:MAX_PHRASE])
    return (
        len(words) >= 3
        and len(salt) >= 8
        and all(3 <= len(word) <= 12 and word.isalpha() and word.islower() for word in words)
        and _INNER_DIGIT.search(salt) is not None
        and salt.isalnum()
        and _OF_RESOURCE.search(value) is None
    )


def is_leet(value: str) -> bool:
    """Returns whether digits stand for letters in several places: `P4ssw0rt_93`."""
    return _LEET.fullmatch(value[:MAX_PHRASE]) is not None
