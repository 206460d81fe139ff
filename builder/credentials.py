"""Keeps this process's own credentials out of messages.

A server may echo a request in the text of an error, so every such text passes through `hide`
before it is truncated, and all of standard error once more.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO
from urllib.parse import quote

MIN_CREDENTIAL = 8
"""Minimum characters of an environment variable's value: a shorter one may be a common word."""

_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY(?!_ID)|CREDENTIAL|_AUTH$", re.IGNORECASE
)
_USER_INFO = re.compile(r"://[^\s/@:]*:(?P<password>[^\s/@]+)@")
_AUTHORIZATION = re.compile(
    r"((?:authorization|cookie|api[_-]?key|token)\\?[\"']?\s{0,3}[:=]\s{0,3}b?\\?[\"']?)"
    r"(?:(?:basic|bearer|token|digest|negotiate)\s{1,3})?[^\s\"',;<>\\]{8,}",
    re.IGNORECASE,
)
_SCHEME = re.compile(
    r"\b(bearer(?=\s{1,3}\S{3})|basic(?=\s{1,3}\S{8}))\s{1,3}[^\s\"',;<>\\]+", re.IGNORECASE
)
_HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{16,}")
_QUERY = re.compile(r"(https?://[^\s?\"'<>]+)\?[^\s\"'<>]+")


def credentials() -> list[str]:
    """Returns the secrets that this process may send, the longest first.

    They come from environment variables whose name suggests a secret or whose value has a password
    in a URL, and from the token of the Hub's client, if the client is loaded.
    """
    found: set[str] = set()
    for name, value in os.environ.items():
        if _NAME.search(name):
            found.add(value)
        found.update(match["password"] for match in _USER_INFO.finditer(value))
    hub = sys.modules.get("huggingface_hub")
    get_token = getattr(hub, "get_token", None)
    if get_token is not None:
        found.add(get_token() or "")
    spelled = {form for value in found for form in (value, quote(value, safe=""))}
    return sorted((v for v in spelled if len(v) >= MIN_CREDENTIAL), key=lambda v: (-len(v), v))


def hide(text: str) -> str:
    """Returns the text without credentials and without URL queries, which may be signatures."""
    for value in credentials():
        text = text.replace(value, "…")
    text = _AUTHORIZATION.sub(r"\1…", text)
    text = _SCHEME.sub(r"\1 …", text)
    text = _HUB_TOKEN.sub("…", text)
    text = _USER_INFO.sub("://…@", text)
    return _QUERY.sub(r"\1?…", text)


def reason(error: BaseException, limit: int = 200) -> str:
    """Returns an exception's text in one line without credentials, or the name of its class."""
    written = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
    return hide(" ".join(written.split()))[:limit] or type(error).__name__


class HidingStream:
    """Standard error without credentials: a text stream that passes its text through `hide`."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes a text; returns its length, as streams do."""
        self.stream.write(hide(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Writes some texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)
