"""Writes JSON values as Claude Code does before it computes a digest.

Keys are sorted, without spaces, and numbers are those of ECMAScript: `JSON.stringify` writes 1e-7
and 0.00001 where Python writes 1e-07 and 1e-05, and every number is a double.
"""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal

from builder.conversation import Json

_EXACT = 2**53
"""Integers up to this size are exact as doubles."""
_POINT_AT = 21
"""ECMAScript writes numbers of at most this many digits before the point without an exponent."""
_ZEROS = 6
"""It writes numbers with fewer zeros after the point without an exponent."""
_MARK = "\x00number "
_MARKED = re.compile(r'"\\u0000number ([-+.0-9e]+)"')


def canonical(value: Json) -> str:
    """Returns the JSON text over which a digest is computed."""
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _MARKED.sub(r"\1", text) if "number " in text else text


def sha256(text: str) -> str:
    """Returns the digest of a text in hex; "" for text with a lone surrogate."""
    try:
        return hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return ""


def _plain(value: Json) -> Json:
    """Returns the value with integers for whole numbers and marked texts for other odd ones."""
    if isinstance(value, float) or (type(value) is int and abs(value) > _EXACT):
        return _number(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _number(value: float) -> Json:
    if abs(value) <= _EXACT and value == int(value):
        return int(value)
    text = ecmascript_number(value)
    return value if text == repr(value) else _MARK + text


def ecmascript_number(value: float) -> str:
    """Returns a number as ECMAScript writes it (ECMA-262, Number::toString)."""
    try:
        double = float(value)
    except OverflowError:
        return "null"
    if double in (float("inf"), float("-inf")) or double != double:  # noqa: PLR0124 - NaN
        return "null"
    sign, digits, exponent = Decimal(repr(double)).normalize().as_tuple()
    assert isinstance(exponent, int), "it is finite"
    text = "".join(map(str, digits))
    count, point = len(text), len(text) + exponent
    if double == 0:
        return "0"
    if count <= point <= _POINT_AT:
        written = text + "0" * (point - count)
    elif 0 < point <= _POINT_AT:
        written = f"{text[:point]}.{text[point:]}"
    elif -_ZEROS < point <= 0:
        written = f"0.{'0' * -point}{text}"
    else:
        mantissa = text if count == 1 else f"{text[0]}.{text[1:]}"
        written = f"{mantissa}e{point - 1:+d}"
    return "-" * sign + written
