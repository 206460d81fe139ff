"""Finds secrets in names of files, which often consist of words: `test_vcr_chat_returns_tokens`."""

from __future__ import annotations

import re

from builder.secrets.hits import Hit
from builder.secrets.secrets import find_secrets
from builder.secrets.values import is_wordlike

_BETWEEN = re.compile(r"[^A-Za-z0-9]+")
_WORD = re.compile(r"[A-Za-z]+(?=[0-9]{0,4}\Z)")
_SHORT = 6
"""Maximum length of a part that need be no word: a token drawn at random has longer ones."""


def secrets_in_name(name: str) -> tuple[Hit, ...]:
    """Returns the secrets in a path of a file, in order; what consists of words is none."""
    return tuple(hit for hit in find_secrets(name) if not _is_of_words(name[hit.start : hit.end]))


def _is_of_words(text: str) -> bool:
    parts = [part for part in _BETWEEN.split(text) if part]
    return len(parts) > 2 and all(
        len(part) <= _SHORT or ((word := _WORD.match(part)) is not None and is_wordlike(word[0]))
        for part in parts
    )
