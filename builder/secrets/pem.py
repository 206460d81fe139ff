"""Finds private keys in PEM: complete, cut off at the end, or without their beginning.

A viewer may put numbers, signs of a diff or escapes between the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.secrets.hits import Hit
from builder.secrets.prefilter import LinePrefilter, Lines, necessary

MAX_PEM = 20_000
"""Maximum code points of a private key, with everything a viewer put between its lines."""

_BEGIN = re.compile(r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
"""The first line of a key: `-----BEGIN RSA PRIVATE KEY-----`."""
_END = re.compile(r"-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
"""The last line of a key: `-----END PRIVATE KEY-----`."""
_MARK = re.compile(r"-----(?:BEGIN|(?P<end>END))[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
"""Either line: `-----END OPENSSH PRIVATE KEY-----`."""
_BODY = re.compile(r"(?:[A-Za-z0-9+/=:,\s-]|\\{1,4}[nr])*")
"""The lines between: `MIIEpAIBAAKC`."""
_SHOWN = r"[+-]?(?:[ \t]{0,8}?(?:[\t\u2192]|t\\{1,4})\d{1,6}[ ]{0,8}|[ \t]{0,8})"
_BREAK = r"(?:\n\r?|n\\{1,4}(?:r\\{1,4})?)"
_TAIL = re.compile(
    rf"{_SHOWN}(?:{_BREAK}[ \t]{{0,8}}[A-Za-z0-9+/=]{{4,80}}(?!\\){_SHOWN}){{1,400}}"
)
"""The lines of a key, backwards, with what a viewer put before each: `\nCKABApIEIM`."""
_RUN = re.compile(r"[A-Za-z0-9+/=]{20,}")
LINES = LinePrefilter(f"{necessary(_BEGIN.pattern)}|{necessary(_END.pattern)}")
"""Finds the lines that begin or end a key."""


def find_keys(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the private keys that begin or end in lines of `LINES`, in order."""
    done = 0
    for start, last in lines:
        at = max(done, start)
        while mark := _MARK.search(text, at, last):
            if mark["end"]:
                first, at = _tail_start(text, done, mark.start()), mark.end()
                has_key = _has_key(text[first : mark.start()])
            else:
                first, at = mark.start(), _key_end(text, mark.end())
                has_key = _has_key(text[mark.end() : at])
            done = at
            if has_key:
                yield Hit(first, at, "private_key")


def _key_end(text: str, begin: int) -> int:
    """Returns where a key ends whose first line ends at `begin`."""
    end = _END.search(text, begin, begin + MAX_PEM)
    if end is not None:
        return end.end()
    body = _BODY.match(text, begin, begin + MAX_PEM)  # cut off: as far as it looks like a key
    return body.end() if body else begin


def _tail_start(text: str, done: int, end: int) -> int:
    """Returns where the lines of a key start whose last line starts at `end`.

    They are after `done`, where an earlier key ends.
    """
    tail = _TAIL.match(text[max(done, end - MAX_PEM) : end][::-1])
    return end - tail.end() if tail is not None else end


def _has_key(body: str) -> bool:
    """Returns whether most of the text between BEGIN and END is base64, and not code."""
    size = sum(map(str.isalnum, body))
    return size >= 40 and 2 * sum(map(len, _RUN.findall(body))) >= size
