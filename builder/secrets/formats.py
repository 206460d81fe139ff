# ruff: noqa: E501 - patterns
r"""Finds arguments of a format whose place in it a name marks as secret.

`printf 'machine %s login %s password %s\n' h me …`, `"password=%s" % (…)`,
`"user {} password {}".format(…)`, `format!("token={1}", …)`: the place after the name, counted among
the places of the format, is that of the argument.
"""

from __future__ import annotations

import re
from itertools import islice

from builder.secrets.hits import Hit
from builder.secrets.layout import WRAP
from builder.secrets.prefilter import necessary

MAX_FORMAT = 300
"""Code points of a format before a place and after it."""
MAX_ARGUMENTS = 12

_PLACE = r"(?:%(?:\d\$)?[sqvd@]|\{\d?\}|\{:\?\})"
_AFTER_NAME = r"[sS]?(?:\\{0,7}[\"'])?[ \t]{0,4}(?:=>|[:=])?[ \t]{0,4}(?:\\{0,7}[\"'])?(?:[Bb]asic |[Bb]earer )?"
CONDITION = necessary(rf"{_AFTER_NAME}(?:{_PLACE})")
"""A condition for RE2: the text after a name."""
_NAMED_PLACE = re.compile(rf"{_AFTER_NAME}(?P<place>{_PLACE})")
"""The text after a name and a place in a format: `=%s`."""
_PLACES = re.compile(
    r"%%|%(?:\d\$)?[-+ #0]{0,3}\d{0,3}(?:\.\d{1,3})?[hl]{0,2}[A-Za-z@]|\{[^{}\s]{0,20}\}"
)
"""A place in a format: `{name}`."""
_NUMBER = re.compile(r"%(\d)\$|\{(\d)\}")

_TEXT = r"\\{0,7}(?:\"(?P<double>[^\"\n\\]{0,400})\\{0,7}\"|'(?P<single>[^'\n\\]{0,400})\\{0,7}')"
_CODE_START = re.compile(rf"{WRAP}(?:,|%[ ]?[(\[]|\.format\()")
"""The text between a format and its arguments in code: `.format(`."""
_CODE_ARGUMENT = re.compile(
    rf"{WRAP}(?:\w{{0,2}}{_TEXT}|[^,()\[\]\"'\n]{{1,100}}(?:[(\[][^()\[\]\n]{{0,100}}[)\]])?[^,()\[\]\"'\n]{{0,40}}){WRAP}(?P<end>,|[)\]]|%)?"
)
"""An argument in code, and the sign after it: `"hunter22",`."""
_SHELL_GAP = r"(?:[ \t]|\\{1,4}(?:\r?\n|n))"
_SHELL_START = re.compile(rf"{_SHELL_GAP}(?![ \t]{{0,20}}[|;&<>#%])")
"""The text between a format and its arguments in a shell: ` hunter22`."""
_SHELL_ARGUMENT = re.compile(
    rf"{_SHELL_GAP}{{0,20}}(?:{_TEXT}|(?P<bare>[^\s\"'`;|&<>()\\]{{1,200}}))(?=[\s;|&<>)\\\"']|\Z)"
)
"""An argument in a shell: ` 'hunter22' `."""


def argument(text: str, start: int, end: int) -> Hit | None:
    """Returns the argument for the place after the name at [start, end), or None."""
    named = _NAMED_PLACE.match(text, end)
    if named is None:
        return None
    place = named.start("place")
    for quote in "'\"`":
        opened = text.rfind(quote, max(0, start - MAX_FORMAT), start)
        closed = text.find(quote, named.end(), named.end() + MAX_FORMAT)
        if opened < 0 or closed < 0 or "\n" in text[opened:start]:
            continue
        found = _argument(text, closed + 1, _number(text, opened, place, named["place"]))
        if found is not None:
            return found
    return None


def _number(text: str, opened: int, place: int, written: str) -> int:
    """Returns which argument a place takes: the one that it names, or the one of its rank."""
    number = _NUMBER.match(written)
    if number is not None:
        return int(number[1]) - 1 if number[1] else int(number[2])
    return sum(found[0] != "%%" for found in _PLACES.finditer(text, opened, place))


def _argument(text: str, at: int, number: int) -> Hit | None:
    """Returns an argument of a format that ends at `at`, if it is a text."""
    opened = _CODE_START.match(text, at)
    is_code = opened is not None
    if opened is None and _SHELL_START.match(text, at) is None:
        return None
    at = opened.end() if opened is not None else at
    for rank in islice(range(number + 1), MAX_ARGUMENTS):
        found = (_CODE_ARGUMENT if is_code else _SHELL_ARGUMENT).match(text, at)
        if found is None:
            return None
        if rank == number:
            for group in ("double", "single") if is_code else ("double", "single", "bare"):
                if found[group]:
                    return Hit(*found.span(group), "secret", certain=False)
            return None
        if is_code and found["end"] != ",":
            return None
        at = found.end()
    return None
