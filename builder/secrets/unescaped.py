r"""Reads the JSON escapes of a text that is not ASCII: `contrase\u00f1a` as `contraseña`.

Many tools print JSON in ASCII, where no rule for another language would find its words. JSON inside
of JSON doubles the backslashes.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from builder.secrets.hits import Hit
from builder.secrets.quotes import QUOTES

_LOW = r"(?<!\\)\\{1,4}u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
_ESCAPE = re.compile(
    rf"(?<!\\)\\{{1,4}}u(?:(?P<high>[dD][89abAB][0-9a-fA-F]{{2}}){_LOW}"
    r"|(?P<one>(?![dD][89a-fA-F]|00[0-9])[0-9a-fA-F]{4}))"
)
r"""An escape of a character beyond ASCII, or of a surrogate pair: `\u00f1`."""

_READ = QUOTES | frozenset("\u2502\u2503\u2551")
"""Quotation marks, and lines between the columns of a table."""


@dataclass(frozen=True)
class Unescaped:
    """A text with its escapes replaced, and where they were.

    text    the text with one character for each escape
    starts  the positions of these characters in `text`, ascending
    shifts  code points by which the text before each position is shorter than the original, and
            the same for the whole text
    """

    text: str
    starts: tuple[int, ...]
    shifts: tuple[int, ...]

    def original(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Yields hits in `text` with their positions in the original."""
        for hit in hits:
            yield replace(hit, start=self._before(hit.start), end=self._before(hit.end))

    def whole(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Yields hits in the original, extended so that none begins or ends inside an escape."""
        begins = [at + shift for at, shift in zip(self.starts, self.shifts, strict=False)]
        for hit in hits:
            start, end = hit.start, hit.end
            number = bisect_right(begins, start) - 1
            if number >= 0 and start < self._before(self.starts[number] + 1):
                start = begins[number]
            number = bisect_left(begins, end) - 1
            if number >= 0:
                end = max(end, self._before(self.starts[number] + 1))
            yield replace(hit, start=start, end=end)

    def _before(self, at: int) -> int:
        """Returns the position in the original of a position between two characters."""
        return at + self.shifts[bisect_left(self.starts, at)]


def unescaped(text: str) -> Unescaped | None:
    """Returns the text with its escapes replaced.

    None if none is of a letter that is not ASCII, or of a sign that rules read.
    """
    if "\\u" not in text:
        return None
    pieces: list[str] = []
    starts: list[int] = []
    shifts = [0]
    done = 0
    is_needed = False
    for escape in _ESCAPE.finditer(text):
        char = _character(escape)
        is_needed = is_needed or char.isalpha() or char in _READ
        pieces += text[done : escape.start()], char
        starts.append(escape.start() - shifts[-1])
        done = escape.end()
        shifts.append(shifts[-1] + done - escape.start() - 1)
    if not is_needed:
        return None
    pieces.append(text[done:])
    return Unescaped("".join(pieces), tuple(starts), tuple(shifts))


def _character(escape: re.Match[str]) -> str:
    if escape["one"]:
        return chr(int(escape["one"], 16))
    return chr(0x10000 + ((int(escape["high"], 16) & 0x3FF) << 10 | int(escape["low"], 16) & 0x3FF))
