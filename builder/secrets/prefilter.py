r"""Tests in one pass over a text which rules may hit it: by literals, or by conditions for RE2.

RE2 and the automaton for literals (`ahocorasick_rs`) come with the extra `fast`. Without it,
literals are searched with `re`, and every rule that has a condition may hit every text. RE2 has no
lookaround, and its classes are ASCII. A condition is therefore tested on the text with a `?` for
each non-ASCII character (one byte for one code point, so that offsets stay the same), and allows a
`?` wherever the rule allows such a character. It may match where the rule does not hit, never the
other way round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, wraps
from typing import Any, Generic, TypeVar

try:
    import ahocorasick_rs
    import re2
except ImportError:
    ahocorasick_rs = re2 = None  # type: ignore[assignment]  # a module, or None

Rule = TypeVar("Rule")

MAX_MEMORY = 1 << 26
"""Memory limit of an automaton, which grows with what it reads and is reset at this size."""

MAX_START = 3
"""Maximum characters before a literal in its condition."""

_MAX_COUNT = 8
"""Maximum repetitions in a condition: each one is a state of the automaton."""

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
_NOT_ASCII = re.compile(r"\\u[0-9a-f]{4}")
_THREE_FORMS = "IKSiks"
"""Letters for which `re.IGNORECASE` also matches a third, non-ASCII form."""


def necessary(pattern: str, *, ignore_case: bool = False) -> str:
    """Returns a pattern that RE2 finds in every text in which `pattern` matches.

    The pattern must be ASCII, its lookarounds without groups, its negated sets without a question
    mark.
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
        listed = _NOT_ASCII.sub("?", token["listed"])
        if listed.startswith("^"):
            assert "?" not in listed, "it would keep out what is not ASCII"
            return token[0]
        if ignore_case and _LETTER.search(_ESCAPE.sub("", listed)):
            listed = f"?{listed}"
        return f"[{_CLASS.sub(lambda name: _WIDER[name[0]], listed)}]"

    return f"(?{'i' if ignore_case else ''}:{_TOKEN.sub(wider, pattern)})"


Text = TypeVar("Text", str, bytes)


def _last_kept(derive: Callable[[str], Text]) -> Callable[[str], Text]:
    """Returns the function with its last result cached: several prefilters test the same text."""
    last: tuple[str, Text] | None = None

    @wraps(derive)
    def derived(text: str) -> Text:
        nonlocal last
        kept = last
        if kept is not None and kept[0] is text:
            return kept[1]
        made = derive(text)
        last = (text, made)
        return made

    return derived


@_last_kept
def projected(text: str) -> bytes:
    """Returns the text with a `?` for each non-ASCII character: one byte for each code point."""
    return text.encode("ascii", "replace")


@_last_kept
def ascii_lower(text: str) -> str:
    """Returns the text with its ASCII letters in lower case, so its length stays the same."""
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
    """Selects the rules that may hit a text; made from (condition, rule)."""

    def __init__(self, rules: Iterable[tuple[str, Rule]]) -> None:
        self._conditions, self._rules = zip(*rules, strict=True)

    def __call__(self, text: str) -> Sequence[Rule]:
        """Returns the rules that may hit the text, in order; all of them without RE2."""
        if re2 is None:
            return self._rules
        held = self._set.Match(projected(text))
        if held is None:  # not even the first: RE2 ran out of memory
            return self._rules
        return [self._rules[number - 1] for number in sorted(held)[1:]]

    @cached_property
    def _set(self) -> Any:
        found = re2.Set.SearchSet(_options())
        for pattern in (r"\A", *self._conditions):  # the first matches in every text
            found.Add(pattern.encode())
        found.Compile()
        return found


class WordPrefilter:
    """Tests whether a text contains one of some words, which need not be ASCII."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = sorted(set(words))

    def __call__(self, text: str) -> bool:
        """Returns whether it does; upper and lower case of ASCII letters are the same."""
        if re2 is None:
            lower = ascii_lower(text)
            return any(word in lower for word in self._words)
        return self._pattern.search(text.encode("utf-8", "surrogatepass")) is not None

    @cached_property
    def _pattern(self) -> Any:
        pattern = "|".join(map(re.escape, self._words))
        return re2.compile(f"(?i:{pattern})".encode(), _options())


def occurrences(literal: Text, text: Text) -> Iterator[int]:
    """Yields the positions of a literal in a text, ascending."""
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + 1)


KEYED = 5
"""Characters at the beginning of a literal by which `re` finds it, without the extra `fast`."""


class LiteralPrefilter(Generic[Rule]):
    """Finds where literals of rules are in a text; made from (literals, start, rule).

    start  a pattern for at most `MAX_START` characters that must precede the literals, whose case
           then matters; None: they may be anywhere, in upper or lower case (of ASCII letters)

    A literal with several starts, or with none in one rule, may be anywhere.
    """

    def __init__(self, rules: Iterable[tuple[Sequence[str], str | None, Rule]]) -> None:
        self._rules: list[Rule] = []
        self._with: dict[str, list[int]] = {}
        starts: dict[str, re.Pattern[bytes] | None] = {}
        written: dict[str, str] = {}
        for number, (literals, start, rule) in enumerate(rules):
            self._rules.append(rule)
            pattern = None if start is None else re.compile(rf"(?:{start})\Z".encode())
            for literal in literals:
                lower = literal.lower()
                written[literal] = lower
                self._with.setdefault(lower, []).append(number)
                if starts.setdefault(lower, pattern) != pattern:
                    starts[lower] = None
        self._anywhere = _Literals((it, it, None) for it in self._with if starts[it] is None)
        self._after_starts = _Literals(
            (it, lower, starts[lower]) for it, lower in written.items() if starts[lower] is not None
        )

    def rules(self, literals: Iterable[str]) -> list[Rule]:
        """Returns the rules with one of some literals, in order."""
        found = {number for literal in literals for number in self._with[literal]}
        return [self._rules[number] for number in sorted(found)]

    def __call__(self, text: str) -> dict[str, list[int]]:
        """Returns {literal in lower case: its positions, ascending} for the literals in a text.

        All positions at which a rule can match are among them.
        """
        found: dict[str, list[int]] = {}
        data = projected(text)
        for literals, searched in ((self._anywhere, data.lower()), (self._after_starts, data)):
            for name, at in literals.places(searched):
                found.setdefault(name, []).append(at)
        return found


class _Literals:
    """Finds literals in one pass; made from (literal, name, start).

    An Aho-Corasick automaton finds all of them. RE2's automata do not distinguish them: with it all
    prefilters took twice the time.
    """

    def __init__(self, literals: Iterable[tuple[str, str, re.Pattern[bytes] | None]]) -> None:
        self._literals = [(it.encode("ascii"), name, start) for it, name, start in literals]

    def places(self, data: bytes) -> Iterator[tuple[str, int]]:
        """Yields (name, position), those of one name ascending."""
        for number, at, _ in self._matches(data):
            _, name, start = self._literals[number]
            if start is None or at == 0 or start.search(data, max(at - MAX_START, 0), at):
                yield name, at

    def _matches(self, data: bytes) -> Iterable[tuple[int, int, int]]:
        """Returns (number of a literal, its start, its end), those of one literal ascending."""
        found: Iterable[tuple[int, int, int]] = (
            self._searched(data)
            if ahocorasick_rs is None
            else self._automaton.find_matches_as_indexes(data, overlapping=True)
        )
        return found

    def _searched(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """Yields the same with `re`."""
        at = 0
        while match := self._beginnings.search(data, at):
            at = match.start()
            for width in self._widths[data[at : at + 1]]:
                for number in self._by_beginning.get(data[at : at + width], ()):
                    literal = self._literals[number][0]
                    if data.startswith(literal, at):
                        yield number, at, at + len(literal)
            at += 1

    @cached_property
    def _automaton(self) -> Any:
        # A DFA takes half the time of the default for so many literals.
        return ahocorasick_rs.BytesAhoCorasick(
            [data for data, _, _ in self._literals],
            implementation=ahocorasick_rs.Implementation.DFA,
        )

    @cached_property
    def _by_beginning(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for number, (data, _, _) in enumerate(self._literals):
            found.setdefault(data[:KEYED], []).append(number)
        return found

    @cached_property
    def _widths(self) -> dict[bytes, list[int]]:
        """The lengths of the beginnings, by their first character."""
        found: dict[bytes, set[int]] = {}
        for begin in self._by_beginning:
            found.setdefault(begin[:1], set()).add(len(begin))
        return {first: sorted(widths) for first, widths in found.items()}

    @cached_property
    def _beginnings(self) -> re.Pattern[bytes]:
        return re.compile(_by_character(self._by_beginning))


def _by_character(literals: Iterable[bytes]) -> bytes:
    """Returns a pattern for the beginnings of literals that `re` searches fast: a tree."""
    following: dict[bytes, set[bytes]] = {}
    for literal in literals:
        following.setdefault(literal[:1], set()).add(literal[1:])
    branches = (
        re.escape(first) + (b"" if b"" in rest else _by_character(rest))
        for first, rest in sorted(following.items())
    )
    return b"(?:" + b"|".join(branches) + b")"


Lines = Iterable[tuple[int, int]]
"""[start, end) of whole lines of a text, in order, without line ends."""


class LinePrefilter:
    """Finds the lines in which, or with whose newline, a match of a condition starts."""

    def __init__(self, pattern: str) -> None:
        self.condition = pattern

    def holds(self, text: str) -> bool:
        """Returns whether the condition may match in the text; always without RE2."""
        return re2 is None or self._pattern.search(projected(text)) is not None

    def __call__(self, text: str) -> Iterator[tuple[int, int]]:
        """Yields [start, end) of these lines, without line ends; without RE2, of the whole text."""
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
        return re2.compile(self.condition.encode(), _options())


class Matches:
    """Finds the matches of a pattern in upper or lower case.

    The pattern is ASCII, in lower case, without lookaround.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __call__(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yields [start, end) of the matches within a part of the text, none overlapping."""
        found = (
            self._slow.finditer(ascii_lower(text), start, end)
            if re2 is None
            else self._fast.finditer(projected(text), start, end)
        )
        for match in found:
            yield match.span()

    @cached_property
    def _fast(self) -> Any:
        return re2.compile(f"(?i:{self._pattern})".encode(), _options())

    @cached_property
    def _slow(self) -> re.Pattern[str]:
        return re.compile(self._pattern, re.ASCII)
