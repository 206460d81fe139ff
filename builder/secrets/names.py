"""Recognises the names of secrets: `api_key`, `DB_PASSWORD`, `stripeKey`, `client-secret`.

A name ends with a keyword. Some keywords need a certain word before them, and after some words a
keyword names something else: `primary_key`, `next_page_token`, `bypass`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from builder.secrets.prefilter import necessary
from builder.secrets.rules import by_first
from builder.secrets.words import (
    KEY_OWNERS,
    OPEN_TOKENS,
    OPEN_VARIABLES,
    PASSWORD_OWNERS,
    PASSWORDS,
    TOKENS,
    WHOLE_NAMES,
)

_INSIDE = re.compile(rf"(?:^|[^a-z])(?:{PASSWORD_OWNERS})$", re.IGNORECASE)
"""What makes `pass` and `pw` name a password, before them: `root`."""
_KEY_BEFORE = re.compile(rf"(?:{KEY_OWNERS})[_-]?$")
"""What makes `key` name a secret, before it: `api_`. So do variables (`_NO_KEY_BEFORE`)."""
KEY_WORD_BEFORE = re.compile(rf"(?<![a-z])(?:{KEY_OWNERS})[ .]$", re.IGNORECASE)
"""What makes `key` name a secret, with a space or a dot between: `API `."""
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]{1,39}_$")
_NO_KEY_BEFORE = re.compile(rf"(?:{OPEN_VARIABLES})_$")
"""What makes `KEY` in a variable name something else: `PRIMARY_`."""
_NOT_SECRET_BEFORE = re.compile(rf"(?:{OPEN_TOKENS})[_-]?$")
"""What makes a token that of pagination or of a language model: `next_page_`."""
KEYWORDS = (*PASSWORDS, *TOKENS, "key")

SUFFIX = (
    r"[_-]?(?:[pP]rivate|PRIVATE|[sS]tring|STRING|[vV]alue|VALUE|[pP]rod|PROD|[sS]taging|STAGING|[dD]ev|DEV|[lL]ive|LIVE"
    r"|[tT]est|TEST|[pP]roduction|PRODUCTION|[bB]ase64|BASE64|[bB]64|B64|[sS]andbox|SANDBOX|[pP]rimary|PRIMARY"
    r"|[sS]econdary|SECONDARY|[oO]ld|OLD|[nN]ew|NEW|[vV]?\d{1,2})|__"
)
"""What may follow the keyword in a name: `api_key_prod`, `SecretString`."""
_NAME_SUFFIX = re.compile(rf"(?<=[a-zA-Z])(?:{SUFFIX})$")
"""What may follow the keyword of a name: `api_key_prod`."""
KEYWORD = re.compile(by_first(map(re.escape, sorted(KEYWORDS, key=len, reverse=True))))
"""The last word of the name of a secret: `password`."""
NAME = "|".join((
    necessary("|".join((*PASSWORDS, *TOKENS, f"(?:{KEY_OWNERS})[_ .-]?key")), ignore_case=True),
    necessary("[A-Z][A-Z0-9_]*_") + necessary("key", ignore_case=True),
))  # fmt: skip
"""A condition for RE2: the end of a name."""

_PREFIX = re.compile(r"[\w-]{0,40}\Z")


def prefix_of(text: str, start: int) -> str:
    """Returns the text of a name before its keyword, which begins at `start`."""
    before = _PREFIX.search(text, max(0, start - 40), start)
    return before[0] if before is not None else ""


@lru_cache(maxsize=1 << 12)  # a dataset has few names, but many members
def keyword_of(name: str) -> str | None:
    """Returns the keyword with which the name of a secret ends; None for other names."""
    if name.endswith(("s", "S")) and not name.lower().endswith("pass"):
        name = name[:-1]  # a list of them
    name = _NAME_SUFFIX.sub("", name)
    lower = name.lower()
    if not lower.endswith(KEYWORDS) or len(lower) != len(name):
        return None
    keyword = max((word for word in KEYWORDS if lower.endswith(word)), key=len)
    return keyword if is_named(keyword, name[: -len(keyword)]) else None


def is_named(keyword: str, before: str) -> bool:
    """Returns whether the text before a keyword and the keyword together name a secret."""
    if keyword == "key" and _KEY_BEFORE.search(before.lower()) is None:
        return bool(_ENVIRONMENT.search(before)) and not _NO_KEY_BEFORE.search(before)
    if keyword in WHOLE_NAMES and before and before[-1] not in "_-":
        return keyword in ("pass", "pw") and _INSIDE.search(before) is not None  # not bypass
    if keyword == "token" and before.endswith("Client"):
        return False  # AWS's names of requests, which are safe to repeat
    return keyword in (*PASSWORDS, "key") or _NOT_SECRET_BEFORE.search(before.lower()) is None


def is_qualified(before: str) -> bool:
    """Returns whether the text before `pass` says whose it is: `ADMIN_`, `redis_`, `store`."""
    return before.isupper() or _INSIDE.search(before.rstrip("_-")) is not None
