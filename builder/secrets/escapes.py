r"""Keeps hits out of the escape sequences of a text: its string may be inside JSON, once or more.

A newline in JSON is `\n`, in JSON inside JSON `\\n`, then `\\\\n`. A hit that took a part of such a
sequence, or the backslashes before the quotation mark after it, would leave text that no longer
parses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from builder.secrets.hits import Hit

_LONGEST = 16
"""Code points around the end of a hit that are searched for a sequence."""
_TAIL = re.compile(r"(?:\\+[\"'nrt]?|\\+u[0-9A-Fa-f]{0,4})+\Z")
r"""The part of an escape at the end of a hit: `x\n`."""
_HEAD = re.compile(r"(?:[\"'nrtbf]|u[0-9A-Fa-f]{4})?(?:\\+[nrt])*")
"""The rest of an escape at the beginning of a hit: `n`."""


def outside_escapes(text: str, hits: Iterable[Hit]) -> Iterator[Hit]:
    """Yields the hits without the parts of escape sequences at their ends."""
    for hit in hits:
        start, end = hit.start, hit.end
        if start and text[start - 1] == "\\":
            head = _HEAD.match(text, start, end)
            start = head.end() if head is not None else start
        if "\\" in text[max(start, end - _LONGEST) : end]:
            tail = _TAIL.search(text, max(start, end - _LONGEST), end)
            end = tail.start() if tail is not None else end
        if (start, end) == (hit.start, hit.end):
            yield hit
        elif start < end:
            yield replace(hit, start=start, end=end)


def string_end(text: str, line_break: str, at: int, last: int) -> int:
    r"""Returns where the string of JSON around a place ends, at most `last`.

    `line_break` is its newline as written: after `\\n`, of two backslashes, a quotation mark with
    one backslash ends it, and one with three is a part of it. A real newline has no string.
    """
    slashes = line_break.rpartition("r")[2].count("\\")
    if not slashes:
        return last
    mark = re.compile(rf"(?<!\\)\\{{0,{slashes - 1}}}\"").search(text, at, last)
    return mark.start() if mark is not None else last
