r"""Cleans Unicode that cannot be written, and control tokens in logged text.

Rules, each counted:

- lone surrogates cannot be written as UTF-8: each becomes U+FFFD (`lone_surrogate`)
- text that is not NFC is normalised to NFC, as the tokenizer would do (`nfc`)
- everything else stays byte for byte, including NUL, CR and unassigned characters: they are legal
  in JSON, and the byte-level tokenizer round-trips them
- a control token in logged text would become a real token in the ids. It is a fault
  (`control_tokens`), or is broken up visibly: `<|im_end|>` becomes `< |im_end|>`. In the arguments
  of a call its `<` is written as the JSON escape `\u003c`, so that the decoded value is the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import PurePosixPath, PureWindowsPath

from builder.conversation import Json
from builder.jsonio import dumps

_NAMED = 3
"""Names that `first_names` writes."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@cache
def token_pattern(tokens: tuple[str, ...]) -> re.Pattern[str]:
    """Returns one pattern for all added tokens of a tokenizer, the longest first."""
    return re.compile("|".join(re.escape(token) for token in sorted(tokens, key=len, reverse=True)))


@cache
def are_plain(tokens: tuple[str, ...]) -> bool:
    """Returns whether JSON leaves the tokens unescaped, so that JSON text can be searched."""
    return all(dumps(token) == f'"{token}"' for token in tokens)


def clean(text: str, changes: Counter[str]) -> str:
    """Returns the text in NFC with lone surrogates replaced; counts one per altered text."""
    if text.isascii():
        return text
    if _SURROGATE.search(text):
        # Two escapes of one surrogate pair that were decoded separately form one character.
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        text, lone = _SURROGATE.subn("\ufffd", joined)
        if lone:
            changes["lone_surrogate"] += 1
    if not unicodedata.is_normalized("NFC", text):
        changes["nfc"] += 1
        text = unicodedata.normalize("NFC", text)
    return text


def break_tokens(text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    """Breaks up each control token with a space after its `<`; returns (text, count)."""
    return pattern.subn(lambda match: f"{match[0][0]} {match[0][1:]}", text)


def escape_tokens(text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    r"""Writes the `<` of each control token in JSON text as `\u003c`; returns (text, count).

    The decoded value is the same: tokens occur only inside strings, where `<` is in no escape.
    """
    return pattern.subn(lambda match: f"\\u{ord(match[0][0]):04x}{match[0][1:]}", text)


def escape_char(char: str) -> str:
    r"""Returns a character as its escape: `\x1b`, `\u202e` or `\U000e0001`."""
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def map_strings(value: Json, change: Callable[[str], str]) -> Json:
    """Applies `change` to all strings and keys of a value, in order.

    Raises KeyError if two keys of one object become equal.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_strings(item, change) for item in value]
    if isinstance(value, dict):
        mapped = {change(key): map_strings(item, change) for key, item in value.items()}
        if len(mapped) != len(value):
            raise KeyError("two keys become equal")
        return mapped
    return value


def without_folders(value: Json) -> Json:
    """Reduces absolute paths to their last part: they would reveal this machine and its user."""
    if isinstance(value, dict):
        return {key: without_folders(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_folders(item) for item in value]
    if not isinstance(value, str):
        return value
    windows, posix = PureWindowsPath(value), PurePosixPath(value)
    is_here = value.startswith("~") or posix.is_absolute() or windows.is_absolute()
    return windows.name if is_here else value


def counted(count: int, noun: str) -> str:
    """Returns the number with its noun: `1 conversation`, `12,000 conversations`."""
    if count != 1:
        noun += "es" if noun.endswith(("s", "x", "ch")) else "s"
    return f"{count:,} {noun}"


def number(value: float) -> str:
    """Formats a number with grouped thousands; a fraction has three significant digits."""
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def first_names(names: Sequence[str]) -> str:
    """Returns the first names of many, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def percent(share: float) -> str:
    """Formats a share so that 100 % and 0 % appear only if they are exact."""
    if 0 < share < 1:
        share = min(max(share, 0.001), 0.999)
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def shorten(value: str, limit: int) -> str:
    """Returns the text on one line, cut to `limit` characters with an ellipsis."""
    line = " ".join(value[: 4 * limit].split())
    return line if len(line) <= limit and len(value) <= 4 * limit else f"{line[: limit - 1]}…"
