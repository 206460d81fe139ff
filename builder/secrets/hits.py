"""Defines hits, the places in a text where a rule matched, and searches many texts at once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from hashlib import blake2b
from itertools import accumulate, islice
from typing import Any, Generic, TypeVar


@dataclass(frozen=True, slots=True)
class Hit:
    """[start, end) in code points, and the kind of the match (`kind`, snake_case).

    certain  the text itself shows what it is (a prefix, check digits), not its surroundings
    """

    start: int
    end: int
    kind: str
    certain: bool = True


def apart(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Returns the hits in order; overlapping ones are merged, with the kind of the certain one."""
    chosen: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, not hit.certain, -hit.end)):
        if not chosen or hit.start >= chosen[-1].end:
            chosen.append(hit)
            continue
        last = chosen[-1]
        better = hit if hit.certain and not last.certain else last
        chosen[-1] = Hit(last.start, max(last.end, hit.end), better.kind, better.certain)
    return tuple(chosen)


_TAIL = re.compile(r"(?:\\+[\"'nrt]?|\\+u[0-9A-Fa-f]{0,4})+\Z")
_HEAD = re.compile(r"(?:[\"'nrtbf]|u[0-9A-Fa-f]{4})?(?:\\+[nrt])*")


def outside_escapes(text: str, hits: Iterable[Hit]) -> Iterator[Hit]:
    r"""Yields the hits without the parts of escape sequences at their ends.

    A string may be inside JSON, once or more: a hit that took a part of `\\n`, or the backslashes
    before a quotation mark, would leave text that no longer parses.
    """
    for hit in hits:
        start, end = hit.start, hit.end
        if start and text[start - 1] == "\\" and (head := _HEAD.match(text, start, end)):
            start = head.end()
        if "\\" in text[max(start, end - 16) : end]:
            tail = _TAIL.search(text, max(start, end - 16), end)
            end = tail.start() if tail is not None else end
        if start < end:
            yield replace(hit, start=start, end=end)


Found = TypeVar("Found")
Search = Callable[[Sequence[str]], list[Found]]
"""One or more texts → what was found in each of them, usually hits."""
REMEMBERED = 1 << 15
"""Maximum number of texts whose results are cached."""
SHORT = 256  # shorter texts are their own keys in the cache; of longer ones it has a digest


def remembering(search: Search[Found]) -> Search[Found]:
    """Returns the function for any number of texts, with a cache of its results.

    Prompts, definitions and names repeat, and the audits of a build search conversations with
    secrets again.
    """
    remembered: dict[str | bytes, Found] = {}

    @wraps(search)
    def found(texts: Sequence[str]) -> list[Found]:
        keys = [
            text
            if len(text) < SHORT
            else blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            for text in texts
        ]
        known = {key: remembered[key] for key in keys if key in remembered}
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        new = dict(zip(unknown, search(list(unknown.values())), strict=True))
        if len(remembered) + len(new) > REMEMBERED:
            remembered.clear()
        remembered.update(islice(new.items(), REMEMBERED))
        known.update(new)
        return [known[key] for key in keys]

    return found


class Joined:
    """Texts joined by line ends, as bytes: `data` has one for each code point, `?` if not ASCII."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.data = "\n".join(texts).encode("ascii", "replace")
        self._starts = [0, *accumulate(len(text) + 1 for text in texts)]

    def place(self, at: int) -> tuple[int, int]:
        """Returns the number of the text that a position is in, and the position in it."""
        number = bisect_right(self._starts, at) - 1
        return number, at - self._starts[number]


# -- where the literals of rules are, in one pass: with the extra `fast` by Aho-Corasick and RE2 ---

try:
    import ahocorasick_rs
    import re2
except ImportError:
    ahocorasick_rs = re2 = None  # type: ignore[assignment]  # a module, or None

Rule = TypeVar("Rule")


class Gate(Generic[Rule]):
    """Finds literals in bytes; made from (literal, rule)."""

    def __init__(self, rules: Iterable[tuple[str, Rule]]) -> None:
        self._rules: dict[bytes, list[Rule]] = {}
        for literal, rule in rules:
            self._rules.setdefault(literal.encode("ascii"), []).append(rule)
        self._literals = list(self._rules)

    def __call__(self, data: bytes) -> Iterator[tuple[int, int, list[Rule]]]:
        """Yields (start, end, rules of the literal) of each occurrence."""
        found = self._searched(data) if ahocorasick_rs is None else self._automaton(data)
        for number, start, end in found:
            yield start, end, self._rules[self._literals[number]]

    def _searched(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        for number, literal in enumerate(self._literals):
            at = data.find(literal)
            while at >= 0:
                yield number, at, at + len(literal)
                at = data.find(literal, at + 1)

    @cached_property
    def _automaton(self) -> Callable[[bytes], list[tuple[int, int, int]]]:
        # A DFA takes half the time of the default for so many literals.
        automaton = ahocorasick_rs.BytesAhoCorasick(
            self._literals, implementation=ahocorasick_rs.Implementation.DFA
        )
        return partial(automaton.find_matches_as_indexes, overlapping=True)


def starts(pattern: bytes) -> Callable[[bytes], list[int]]:
    """Returns a search for where matches of a pattern start; it has no lookaround."""
    compiled: Any = re.compile(pattern)
    if re2 is not None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        compiled = re2.compile(pattern, options)
    return lambda data: [match.start() for match in compiled.finditer(data)]
