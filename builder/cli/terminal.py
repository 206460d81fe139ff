"""Log text on a terminal: it may hold anything, so nothing of it may act."""

from __future__ import annotations

import os
import sys
from typing import TextIO

TRAINED = "\x1b[32m"
RESET = "\x1b[0m"


def escaped(text: str) -> str:
    r"""The text with all that a terminal would act on shown as an escape, newline and tab kept.

    Control characters, direction marks and lone surrogates become `\x1b`, `\u202e` and so on.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def colours(stream: TextIO = sys.stdout) -> bool:
    """May colour codes be written? Not into a file, and not against NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
