"""Finds secrets in base64 and hexadecimal text, as Kubernetes, CI and HTTP write them.

Base64 may use the URL alphabet and be wrapped over lines. Runs that encode binary data or anything
but printable text are skipped. A secret in the decoded text makes the whole run a secret, since no
part of it may stay.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from builder.secrets.hits import Hit
from builder.secrets.prefilter import LinePrefilter, Lines

MIN_QUADS = 5
"""Minimum groups of four characters for decoding a run: fifteen characters of text."""
MIN_BYTES = 12
"""Minimum pairs of hexadecimal digits for decoding a run."""
MAX_ENCODED = 1 << 20
"""Characters of a run that are decoded."""
MIN_WRAPPED = 56
"""Characters of a line that the next line continues: the shortest width in use is 60."""

_QUAD = r"[CDI-Za-f][AC-HQS-Xgi-nwyz0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
"""Four characters that encode three of printable ASCII or of line ends and tabs.

The six bits of each character are parts of bytes in 0x20-0x7E or of 0x09, 0x0A and 0x0D.
"""
_START = rf"(?:{_QUAD}){{{MIN_QUADS}}}"
_LINE_END = r"(?:\r?\n|(?:\\{1,4}r)?\\{1,4}n)[ \t]{0,20}"
_BEGIN = re.compile(rf"(?<![A-Za-z0-9+/_-]){_START}")
"""The beginning of base64 of ASCII text: `dGhlIHBhc3N3b3JkIGlzIG9u`."""
_RUN = re.compile(
    rf"{_START}[A-Za-z0-9+/_-]{{0,{MAX_ENCODED}}}"
    rf"(?:(?<=[A-Za-z0-9+/_-]{{{MIN_WRAPPED}}}){_LINE_END}[A-Za-z0-9+/_-]{{4,200}}(?=[=\s\\\"']|$)){{0,4000}}={{0,2}}"
)
"""Base64 of ASCII text, also broken into lines: `dGhlIHBhc3N3b3JkIGlzIG9uIHRoZSB3YWxs`."""
_HEX_START = rf"(?:[2-7][0-9A-Fa-f]|0[9AaDd]){{{MIN_BYTES}}}"
_HEX = re.compile(rf"(?<![A-Za-z0-9]){_HEX_START}[0-9A-Fa-f]{{0,{MAX_ENCODED}}}(?![A-Za-z0-9])")
"""ASCII text as hexadecimal digits: `7468652070617373776f7264`."""
LINES = LinePrefilter(rf"(?:\A|[^A-Za-z0-9+/_-]){_START}|(?:\A|[^A-Za-z0-9]){_HEX_START}")
"""Finds the lines with encoded text. If a run could start anywhere, RE2 would need more states."""
_PRINTABLE = re.compile("[\t\n\r\x1b\x20-\x7e\xa0-\U0010ffff]*")
_TO_STANDARD = str.maketrans("-_", "+/")
_NO_BASE64 = re.compile(rf"{_LINE_END}|=+$")
"""What is not part of the encoded text: `==`."""


def find_encoded(text: str, lines: Lines, find: Callable[[str], tuple[Hit, ...]]) -> Iterator[Hit]:
    """Yields the runs in lines of `LINES` in whose decoded text `find` finds something."""
    done = 0
    for start, end in lines:
        at = max(start, done)
        while begin := _BEGIN.search(text, at, end):
            run = _RUN.match(text, begin.start())
            assert run is not None, "it begins as a run does"
            at = done = run.end()
            yield from _hit(run, _decoded(run[0]), find)
        for run in _HEX.finditer(text, start, end):
            yield from _hit(run, _of_hex(run[0]), find)


def _hit(run: re.Match[str], decoded: str, find: Callable[[str], tuple[Hit, ...]]) -> Iterator[Hit]:
    hits = find(decoded) if decoded else ()
    if hits:
        certain = any(hit.certain for hit in hits)
        kind = next((hit.kind for hit in hits if hit.certain), "secret")
        yield Hit(run.start(), run.end(), kind, certain)


def _decoded(run: str) -> str:
    """Returns the printable text that a run of base64 encodes, "" if it encodes none."""
    body = _NO_BASE64.sub("", run).translate(_TO_STANDARD)
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        text = base64.b64decode(body + "=" * (-len(body) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text if _PRINTABLE.fullmatch(text) else ""


def _of_hex(run: str) -> str:
    """Returns the printable text that hexadecimal digits encode, "" if they encode none."""
    if len(run) % 2:
        return ""
    text = bytes.fromhex(run).decode("latin-1")
    return text if _PRINTABLE.fullmatch(text) else ""
