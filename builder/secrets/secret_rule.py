r"""Defines a rule for secrets: one record with everything that a reader of the tables needs.

Tables of rules: `builder.secrets.token_rules` (tokens with their own form) and
`builder.secrets.context_rules` (values that a header, a URL or a command marks as secret).

Examples are templates, so that the source contains no text that looks like a real secret. `«` and
`»` enclose what must be found; `{A36}` stands for 36 characters of an alphabet (`ALPHABETS` in
tests/support/sensitive/rule_examples.py).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from builder.secrets.grade import is_generated
from builder.secrets.hits import Hit
from builder.secrets.layout import NUMBER
from builder.secrets.prefilter import ascii_lower, necessary, occurrences
from builder.secrets.rules import ESCAPE, behind_none_of
from builder.secrets.values import is_drawn, is_stand_in, looks_random
from builder.secrets.words import DOCUMENTED

REST = r"\b[^\n|;&]{0,200}?[ \t]"
"""The text between a command and its option, on one line and in one command."""
QUOTE = r"(?:\\{0,7}[\"'])?"
"""A quotation mark, escaped or not, or none."""
DOLLAR = (
    r"(?<=[^\s\"'`$=:/\\])\$"
    r"(?:(?![A-Za-z_{(])|(?=\w{0,12}\d)(?!(?-i:[A-Z_]{1,40}\d{0,9}|[a-z_]{1,40}\d{0,9})(?!\w)))"
)
"""A dollar sign that is part of a value: no variable in upper or lower case follows."""
ENCLOSED = rf"(?<=')[^\s'\\]{{4,200}}(?=')|(?<=\")(?:[^\s\"'`\\$]|{DOLLAR}){{4,200}}(?=\\{{0,7}}\")"
"""A value in quotation marks, which may enclose any sign."""
MIXED = (
    r"(?P<v>(?=[^\s\"'\\]{0,99}\d)(?=[^\s\"'\\]{0,99}[a-z])(?!-)"
    rf"(?:{ENCLOSED}|(?:[^\s\"'`\\$<>|;&()\[\]]|{DOLLAR}){{5,100}}))"
)
"""A value that no word is: with letters and digits."""
WORD = rf"(?P<v>{ENCLOSED}|(?:[^\s\"'`\\$<>|;&]|{DOLLAR}){{4,200}})"
"""A value on a command line."""
LINE = (
    rf"(?:\r?\n|(?:\\{{1,4}}r)?\\{{1,4}}n)(?:[ ]{{0,6}}{NUMBER}|[+-])?(?:[ \t]|\\{{1,4}}t){{0,40}}"
)
"""The end of a line, which may be escaped, and what viewers and diffs put before the next one."""
CHOSEN = (
    r"(?P<v>(?!(?:sha|md|utf-?|base|aes-?|argon|bcrypt|pbkdf|oauth|rfc|ipv|http|port)\d|[vx]\d[\d.]{0,12}(?![a-z\d]))"
    r"(?!(?-i:[%@&]?[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,8})(?:[^\w!#$%^*~@+-]|$))"
    r"(?=[^\s\"'\\]{0,60}[a-z])(?=[^\s\"'\\]{0,60}(?:\d[^\s\"'\\]{0,60}[\d!@#$%^*+?~_.-]|[!@#$%^*+?~_.-][^\s\"'\\]{0,60}\d))"
    rf"(?:[^\s\"'`\\$<>|;,()\[\]{{}}/:=]|{DOLLAR}){{8,64}})"
    r"(?:(?<![.,:;!?*])(?!\.\w)(?=[\s\"'.,:;!?`)*\\\]|]|$)|(?<=[!?*])(?=[\s\"'`),;|*\\]|$))"
)
"""A password as people choose them: a word or more with two digits, or a digit and a sign."""
DRAWN = (
    r"(?P<v>(?-i:(?=[^\sa-z]{0,60}[a-z])(?=[^\sA-Z]{0,60}[A-Z]))"
    r"[a-z0-9][a-z0-9!#$%^*+=?@_.~-]{6,62}[a-z0-9!#$%^*+?~-])(?=[\s\"'.,:;!?`)*\\\]\u3002\uff0c]|$)"
)
"""A generated password with letters in both cases, for rules that are `drawn`."""
NO_NAME = r"(?![a-z0-9]{1,30}(?:_[a-z0-9]{1,30}){1,8}(?:[^\w!#$%^*~@+-]|$))"
"""No snake_case name follows, such as that of a test."""

NEAR = 200
"""Code points around a match within which one of a rule's `near` words must occur."""

MAX_FREQUENT = 3
"""Length of a literal up to which a text is more likely to contain it than a `near` word."""

BLOB = 40
"""Number of base64 characters before a match that make it part of a larger blob."""
_FILLER = re.compile(r"x{8}|X{8}|\*{8}|0{6}")
"""Filler characters of a placeholder: `ghp_xxxxxxxx…`, `xapp-1-A000000…`."""
_BLOB = re.compile(rf"[A-Za-z0-9+/_-]{{{BLOB}}}$")

_ALNUM = "A-Za-z0-9"
STARTS = rf"(?:\A|[^{_ALNUM}]|{necessary(ESCAPE)})"
"""The text before a token, as a condition for RE2."""
_START, _END = behind_none_of(_ALNUM), f"(?![{_ALNUM}])"
_ISSUED = re.compile(
    r"(?!(?:api|key|live|mob|pat|sat|sdk|secret|ext|sts|v1\.0)[_.-])[A-Za-z$][\w.$-]{2,40}[_.-]|AIza|dapi",
    re.IGNORECASE,
)
"""Beginnings that only tokens have, in other lengths as well: `glpat-`."""
_OTHER_LENGTH = r"(?P<body>[A-Za-z0-9_-]{20,300})"


@dataclass(frozen=True)
class SecretRule:
    """A pattern for one kind of secret, its required surroundings, and how to search for it.

    kind       the name in the placeholder, snake_case; several rules may share it
    pattern    of the secret, or of a text around it with the secret as the group `v`; every
               repetition has a bound, so that time is linear in the text
    prefilter  literals, tested first; every match contains one of them
    lead       (least, most) code points of a match before the literal; (0, 0): it starts with it
    near       words of which one must occur within `NEAR` code points; (): none is needed
    generated  the secret must look random (entropy, no words): for patterns that could match code
    drawn      the secret must look drawn at random: letters in both cases that form no words
    token      the text itself shows what it is: case matters, and no letter or digit is next to it.
               If False, case is ignored, and placeholders of documentation are not secrets
    decoded    a pattern that the text in the secret's base64 matches: `user:password`
    hits       examples that must be found
    misses     examples in which nothing must be found
    """

    kind: str
    pattern: str
    prefilter: tuple[str, ...]
    lead: tuple[int, int] = (0, 0)
    near: tuple[str, ...] = ()
    generated: bool = False
    drawn: bool = False
    token: bool = True
    decoded: str = ""
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for an empty literal: every text contains it."""
        if not self.prefilter or not all(self.prefilter):
            raise ValueError(f"an empty literal in {self.prefilter} of the rule {self.pattern!r}")

    @property
    def gate(self) -> tuple[tuple[str, ...], str | None]:
        """Returns literals of which one occurs in every text that the rule hits, and their start.

        The start is that of `builder.secrets.prefilter.LiteralPrefilter`.
        """
        if self.near or not self.token or self.lead != (0, 0):
            return (self.prefilter if self._is_gated_by_literals else self.near), None
        return self.prefilter, STARTS

    @cached_property
    def _is_gated_by_literals(self) -> bool:
        """Returns whether the literals of the gate are the rule's own, not its `near` words.

        For a rule with such words, they are if they are rare, and the pattern is tried at one place
        of each.
        """
        is_rare = self.lead == (0, 0) and min(map(len, self.prefilter)) > MAX_FREQUENT
        return not self.near or is_rare

    @cached_property
    def _literals(self) -> tuple[tuple[str, str], ...]:
        """Each literal as it is, and with its ASCII letters in lower case."""
        return tuple((literal, ascii_lower(literal)) for literal in self.prefilter)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        if self.token:
            return re.compile(f"{_START}(?:{self.pattern}){_END}")
        return re.compile(self.pattern, re.IGNORECASE)

    @cached_property
    def _loose(self) -> re.Pattern[str] | None:
        """A pattern for tokens of another length than documented: issuers change theirs."""
        if not self.token or self.near or self.lead != (0, 0):
            return None
        begins = [re.escape(text) for text in self.prefilter if _ISSUED.fullmatch(text)]
        if len(begins) < len(self.prefilter):
            return None
        return re.compile(f"{_START}(?:{'|'.join(begins)}){_OTHER_LENGTH}{_END}")

    @cached_property
    def _has_group(self) -> bool:
        return "v" in self._regex.groupindex

    def find(self, text: str, places: Mapping[str, Iterable[int]]) -> Iterator[Hit]:
        """Yields the matches of the rule in a text, unordered.

        `places` has the positions of the literals of its gate, in lower case, ascending.
        """
        least, most = self.lead
        if not self._is_gated_by_literals:
            places = self.places(text)
        for literal, lower in self._literals:
            done = 0
            for at in places.get(lower, ()):
                if at < done or (self.token and not text.startswith(literal, at)):
                    continue
                for start in range(max(done, at - most), at - least + 1):
                    found = self._match(text, start)
                    if found is not None:
                        yield Hit(*found, self.kind, certain=self.token)
                        done = found[1]
                        break

    def places(self, text: str) -> dict[str, Iterator[int]]:
        """Returns {literal in lower case: its positions, ascending} for the rule's literals."""
        searched = ascii_lower(text)
        return {lower: occurrences(lower, searched) for _, lower in self._literals}

    def _match(self, text: str, start: int) -> tuple[int, int] | None:
        """Returns [start, end) of the secret in a match that starts there, or None."""
        match = self._regex.match(text, start)
        if match is not None:
            return match.span("v" if self._has_group else 0) if self._holds(match, text) else None
        if self._loose is not None and (match := self._loose.match(text, start)):
            return match.span() if is_generated(match["body"]) else None
        return None

    def _holds(self, match: re.Match[str], text: str) -> bool:
        """Returns whether the conditions other than the pattern are met."""
        value = match["v"] if self._has_group else match[0]
        if "EXAMPLE" in value:
            return False  # the keys of AWS's documentation
        if self.token and _FILLER.search(value):
            return False
        if self.decoded and not self._encodes(value):
            return False
        if not self.token and (is_stand_in(value) or value.lower() in DOCUMENTED):
            return False
        if self.generated and not looks_random(value):
            return False
        if self.drawn and not is_drawn(value):
            return False
        if self.token and _BLOB.search(text, max(0, match.start() - BLOB), match.start()):
            before = text[match.start() - BLOB : match.start()]
            if looks_random(before) and not before.islower():
                return False
        if not self.near:
            return True
        around = ascii_lower(text[max(0, match.start() - NEAR) : match.end() + NEAR])
        return any(word in around for word in self.near)

    def _encodes(self, value: str) -> bool:
        """Returns whether the value is base64 of a text that `decoded` matches."""
        body = value.rstrip("=")
        try:
            text = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
        except ValueError:  # no base64, no UTF-8, or a letter that only lower case makes ASCII
            return False
        return re.fullmatch(self.decoded, text) is not None


def context_rule(
    pattern: str,
    prefilter: str,
    *hits: str,
    lead: tuple[int, int] = (0, 0),
    near: tuple[str, ...] = (),
    generated: bool = False,
    drawn: bool = False,
    decoded: str = "",
    misses: tuple[str, ...] = (),
) -> SecretRule:
    """Returns a rule about surroundings.

    `prefilter` lists its literals, separated by `|`, which therefore none of them can contain.
    """
    return SecretRule(
        "secret",
        pattern,
        tuple(prefilter.split("|")),
        lead,
        near,
        generated=generated,
        drawn=drawn,
        token=False,
        decoded=decoded,
        hits=hits,
        misses=misses,
    )
