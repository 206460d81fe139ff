"""Finds where the literals of rules are in a text, in one pass over all of them.

An Aho-Corasick automaton of the extra `fast` does it; without it each literal is searched by
itself, with the same result. So it is with RE2 and `re`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

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
