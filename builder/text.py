r"""What becomes of characters: Unicode that cannot survive, and control tokens in logged text.

Rules, each counted:

- lone surrogates cannot be written as UTF-8: each becomes U+FFFD (`lone_surrogate`)
- text that is not NFC becomes NFC, which is what the tokenizer does to it anyway (`nfc`)
- everything else survives byte for byte, NUL, CR and unassigned characters among them: they are
  legal in JSON and the byte-level tokenizer gives them back
- a control token in logged text would become a real token in the ids. It is a fault
  (`control_tokens`), or is broken visibly: `<|im_end|>` becomes `< |im_end|>`. Inside the arguments
  of a call its `<` is written as the JSON escape `\u003c`, so that the decoded value stays equal.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath, PureWindowsPath

from builder.conversation import Json
from builder.jsonio import dumps

_SURROGATE = re.compile("[\ud800-\udfff]")


@cache
def token_pattern(tokens: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all the added tokens of a tokenizer, the longest first."""
    return re.compile("|".join(re.escape(token) for token in sorted(tokens, key=len, reverse=True)))


@cache
def are_plain(tokens: tuple[str, ...]) -> bool:
    """Does JSON write the tokens as they are, so that its text holds those that a string holds?"""
    return all(dumps(token) == f'"{token}"' for token in tokens)


def clean(text: str, changes: Counter[str]) -> str:
    """The text with lone surrogates replaced and in NFC; counts one per text altered."""
    if text.isascii():
        return text
    if _SURROGATE.search(text):
        # A pair of escapes that was decoded apart is one character, not two lone halves.
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        text, lone = _SURROGATE.subn("\ufffd", joined)
        if lone:
            changes["lone_surrogate"] += 1
    if not unicodedata.is_normalized("NFC", text):
        changes["nfc"] += 1
        text = unicodedata.normalize("NFC", text)
    return text


def break_tokens(text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    """The text with each control token visibly broken by a space after its `<`, and how many."""
    return pattern.subn(lambda match: f"{match[0][0]} {match[0][1:]}", text)


def escape_tokens(text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    r"""JSON text with the `<` of each control token as `\u003c`, and how many. Same decoded value.

    A token stands in JSON text only inside a string, where `<` is never part of an escape.
    """
    return pattern.subn(lambda match: f"\\u{ord(match[0][0]):04x}{match[0][1:]}", text)


def map_strings(value: Json, change: Callable[[str], str]) -> Json:
    """The value with `change` applied to all its strings and keys, in order.

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
    """The value with only the last part of absolute paths, which name this machine and its user."""
    if isinstance(value, dict):
        return {key: without_folders(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_folders(item) for item in value]
    if not isinstance(value, str):
        return value
    windows, posix = PureWindowsPath(value), PurePosixPath(value)
    is_here = value.startswith("~") or posix.is_absolute() or windows.is_absolute()
    return windows.name if is_here else value
