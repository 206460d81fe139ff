"""Draws texts that a regular expression matches: the examples of other scanners' rules."""

import random
import re
from functools import cache
from re import _constants as op  # type: ignore[attr-defined] # private, without types
from re import _parser as parser  # type: ignore[attr-defined]

MOST = 40
"""Maximum repetitions drawn beyond a pattern's minimum."""
_INLINE = re.compile(r"\(\?([is]+)\)")
_ANY = [chr(code) for code in range(33, 127)]
_CLASSES = {
    op.CATEGORY_DIGIT: "0123456789",
    op.CATEGORY_WORD: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
    op.CATEGORY_SPACE: " ",
    op.CATEGORY_NOT_DIGIT: "abcXYZ-",
    op.CATEGORY_NOT_SPACE: "abcdefXYZ0123456789",
    op.CATEGORY_NOT_WORD: " ",
}


def as_python(pattern):
    """Converts a pattern of RE2 or Rust to the syntax of `re`; raises re.error if it cannot."""
    text = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]").replace("[:alnum:]", "A-Za-z0-9")
    text = text.replace(r"\z", r"\Z").replace("(?x)", "")
    flags = "".join(found[1] for found in _INLINE.finditer(text[:8]))
    while found := _INLINE.search(text):  # a flag in the middle applies to the end of its group
        depth, end = 0, found.end()
        while end < len(text) and depth >= 0:
            if text[end] == "\\":
                end += 1
            elif text[end] == "[":
                end = text.index("]", end + 2)
            else:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        stop = end - 1 if depth < 0 else end
        inner = text[found.end() : stop]
        text = f"{text[: found.start()]}(?{found[1]}:{inner}){text[stop:]}"
    re.compile(text)
    return text, flags


class Drawer:
    """Draws from a seed; the same pattern and seed give the same text."""

    def __init__(self, pattern, seed):
        self.random = random.Random(f"{seed}/{pattern}")
        self.groups = {}

    def draw(self, tree):
        """Returns a text for a parsed pattern."""
        return "".join(self._item(kind, value) for kind, value in tree)

    def _item(self, kind, value):
        if kind is op.LITERAL:
            return chr(value)
        if kind is op.NOT_LITERAL:
            return self.random.choice([char for char in _ANY if char != chr(value)])
        if kind is op.ANY:
            return self.random.choice("abcdefghij0123456789 ")
        if kind is op.IN:
            return self.random.choice(listed(tuple(value)))
        if kind is op.BRANCH:
            return self.draw(self.random.choice(value[1]))
        if kind is op.SUBPATTERN:
            number, _, _, tree = value
            self.groups[number] = self.draw(tree)
            return self.groups[number]
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            least, most, tree = value
            count = self.random.randint(least, min(int(most), least + MOST))
            return "".join(self.draw(tree) for _ in range(count))
        if kind is op.GROUPREF:
            return self.groups.get(value, "")
        if kind is op.ATOMIC_GROUP:
            return self.draw(value)
        return ""  # an assertion, which the match that follows decides


@cache
def listed(items):
    """Returns the printable characters of a parsed character class."""
    chars, negated = set(), False
    for kind, value in items:
        if kind is op.NEGATE:
            negated = True
        elif kind is op.LITERAL:
            chars.add(chr(value))
        elif kind is op.RANGE:
            chars.update(map(chr, range(value[0], min(value[1], 0x17E) + 1)))
        else:
            chars.update(_CLASSES.get(value, "a"))
    chosen = [char for char in _ANY if char not in chars] if negated else sorted(chars)
    printable = [char for char in chosen if char.isprintable()]
    return printable or chosen or ["a"]


def samples(pattern, count, seed=0, tries=40):
    """Yields (text, secret) that the pattern matches; the secret is its first group, or all."""
    try:
        text, flags = as_python(pattern)
        compiled = re.compile(text, re.IGNORECASE if "i" in flags else 0)
        tree = parser.parse(text)
    except (re.error, ValueError, OverflowError):
        return []
    found: list[tuple[str, str]] = []
    for number in range(tries):
        if len(found) == count:
            break
        drawn = Drawer(pattern, f"{seed}/{number}").draw(tree)
        match = compiled.search(f"{drawn} ")
        if match is not None:
            secret = next((group for group in match.groups() if group), match[0])
            found.append((drawn, secret))
    return found
