"""Secrets inside base64: texts that it encodes, which Kubernetes, CI and HTTP write so.

Base64 of binary data and of anything but printable text is passed over. What is found makes the
whole run a secret, since none of it may stay.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from builder.scrub.hits import Hit
from builder.scrub.prefilter import LinePrefilter

MIN_QUADS = 5
"""Groups of four characters from which on a run is decoded: fifteen characters of text."""
MAX_ENCODED = 1 << 20
"""Characters of a run that are decoded."""

_QUAD = r"[CDI-Za-f][AC-HQS-Xgi-nwyz0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/]"
"""Four characters that encode three of printable ASCII or of line ends and tabs.

The six bits of each character are parts of bytes in 0x20-0x7E or of 0x09, 0x0A and 0x0D.
"""
_START = rf"(?:{_QUAD}){{{MIN_QUADS}}}"
_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-]){_START}[A-Za-z0-9+/]{{0,{MAX_ENCODED}}}={{0,2}}")
_LINES = LinePrefilter(_START)
_PRINTABLE = re.compile(r"[\t\n\r\x20-\x7e]*")


def may_hold_encoded(text: str) -> bool:
    """May a line of the text hold encoded text?"""
    return next(_LINES(text), None) is not None


def find_encoded(text: str, find: Callable[[str], tuple[Hit, ...]]) -> Iterator[Hit]:
    """Yields the base64 runs of a text in whose decoded text `find` finds something."""
    for start, end in _LINES(text):
        for run in _RUN.finditer(text, start, end):
            decoded = _decoded(run[0])
            hits = find(decoded) if decoded else ()
            if hits:
                certain = any(hit.certain for hit in hits)
                kind = next((hit.kind for hit in hits if hit.certain), "secret")
                yield Hit(run.start(), run.end(), kind, certain)


def _decoded(run: str) -> str:
    """Returns the printable text that a run encodes, "" if it encodes none."""
    body = run.rstrip("=")
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        text = base64.b64decode(body + "=" * (-len(body) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text if _PRINTABLE.fullmatch(text) else ""
