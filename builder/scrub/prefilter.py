r"""What must stand in a text for a rule to hit it: RE2 tells it for many rules in one pass.

RE2 comes with the extra `fast`; without it every rule may hit every text. It knows no lookaround,
and its classes are ASCII. A condition is therefore asked of the text with a `?` for each character
that is not ASCII (one byte for one code point, so that places stay the same), and allows a `?`
wherever the rule allows such a character. It may hold where the rule does not hit, never the other
way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

try:
    import re2
except ImportError:
    re2 = None

Rule = TypeVar("Rule")

MAX_MEMORY = 1 << 26
"""Bytes of an automaton, which grows with what it reads and is reset at this size."""

_MAX_COUNT = 8
"""Of a longer repetition so much is asked: each step of it is a state."""

_TOKEN = re.compile(
    r"(?P<around>\(\?<?[=!](?:\\.|\[(?:\\.|[^]\\])*\]|[^()\\[])*\))"
    r"|\[(?P<listed>(?:\\.|[^]\\])*)\]"
    r"|\{(?P<least>\d+)(?P<more>,\d*)?\}\??"
    r"|(?P<group>\(\?P<\w+>)"
    r"|(?P<one>\\?.)",
    re.DOTALL,
)
_WIDER = {r"\w": r"\w?", r"\d": r"\d?", r"\s": r"\s\x0b\x1c-\x1f?"}
_CLASS, _ESCAPE, _LETTER = (re.compile(it) for it in (r"\\[wds]", r"\\.", "[A-Za-z]"))
_THREE_FORMS = "IKSiks"
"""Letters that `re.IGNORECASE` finds in a third form too, which is not ASCII."""


def necessary(pattern: str, *, ignore_case: bool = False) -> str:
    """What RE2 finds in every text that the pattern matches in.

    The pattern is ASCII, its lookarounds hold no groups, and its negated sets no question mark.
    """
    assert pattern.isascii(), "RE2 sees no other characters"

    def wider(token: re.Match[str]) -> str:
        if token["around"] or token["one"] in (r"\b", "^", "$"):
            return ""
        if token["group"]:
            return "(?:"
        if token["least"]:
            least = int(token["least"])
            is_exact = token["more"] is None and least <= _MAX_COUNT
            return f"{{{least}}}" if is_exact else f"{{{min(least, _MAX_COUNT)},}}"
        if token["one"]:
            one = _WIDER.get(token["one"], token["one"])
            has_more = one != token["one"] or (ignore_case and one in _THREE_FORMS)
            return f"[{one}?]" if has_more else one
        listed = token["listed"]
        if listed.startswith("^"):
            assert "?" not in listed, "it would keep out what is not ASCII"
            return token[0]
        if ignore_case and _LETTER.search(_ESCAPE.sub("", listed)):
            listed = f"?{listed}"
        return f"[{_CLASS.sub(lambda name: _WIDER[name[0]], listed)}]"

    return f"(?{'i' if ignore_case else ''}:{_TOKEN.sub(wider, pattern)})"


def projected(text: str) -> bytes:
    """The text with a `?` for each character that is not ASCII: one byte for one code point."""
    return text.encode("ascii", "replace")


def ascii_lower(text: str) -> str:
    """Returns the text with its ASCII letters in lower case, and so of the same length."""
    if text.isascii():
        return text.lower()
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    return options


class Prefilter(Generic[Rule]):
    """Tells which rules may hit a text; made of (condition, rule)."""

    def __init__(self, rules: Iterable[tuple[str, Rule]]) -> None:
        self._conditions, self._rules = zip(*rules, strict=True)

    def __call__(self, text: str) -> Sequence[Rule]:
        """The rules that may hit the text, in order: all of them where RE2 cannot tell."""
        if re2 is None:
            return self._rules
        held = self._set.Match(projected(text))
        if held is None:  # not even the first: RE2 ran out of memory
            return self._rules
        return [self._rules[number - 1] for number in sorted(held)[1:]]

    @cached_property
    def _set(self) -> Any:
        found = re2.Set.SearchSet(_options())
        for pattern in (r"\A", *self._conditions):  # the first holds in every text
            found.Add(pattern.encode())
        found.Compile()
        return found


class LiteralPrefilter(Generic[Rule]):
    """Selects the rules that may hit a text; made of (literals, ignore case, condition, rule).

    Without RE2, the rules of which the text holds a literal.
    """

    def __init__(self, rules: Iterable[tuple[Sequence[str], bool, str, Rule]]) -> None:
        self._rules = tuple(rules)
        self._selected = Prefilter((condition, rule) for _, _, condition, rule in self._rules)

    def __call__(self, text: str) -> Sequence[Rule]:
        """Returns the rules that may hit the text, in order."""
        if re2 is not None:
            return self._selected(text)
        lower = ascii_lower(text)
        return [
            rule
            for literals, ignore_case, _, rule in self._rules
            if any(literal in (lower if ignore_case else text) for literal in literals)
        ]


class LinePrefilter:
    """Finds the lines of a text in which, or with whose newline, begins what a condition asks."""

    def __init__(self, pattern: str) -> None:
        self._condition = pattern

    def __call__(self, text: str) -> Iterator[tuple[int, int]]:
        """[start, end) of these lines, without their ends; the whole text without RE2."""
        if re2 is None:
            yield 0, len(text)
            return
        data = projected(text)
        end = 0
        while found := self._pattern.search(data, end):
            start = data.rfind(b"\n", 0, found.start() + 1) + 1
            end = data.find(b"\n", max(start, found.start()))
            if end < 0:
                yield start, len(data)
                return
            yield start, end

    @cached_property
    def _pattern(self) -> Any:
        return re2.compile(self._condition.encode(), _options())
