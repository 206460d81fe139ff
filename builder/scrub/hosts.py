"""Finds the names of machines: in prompts of shells, after `hostname`, in local networks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from builder.secrets.hits import Hit
from builder.secrets.prefilter import necessary
from builder.secrets.rules import after_none_of, anywhere

_HOST = after_none_of(
    r"\w.\\-",
    r"DESKTOP-[A-Z0-9]{6,11}",
    r"LAPTOP-[A-Z0-9]{6,11}",
    r"WIN-[A-Z0-9]{6,11}",
    r"EC2AMAZ-[A-Z0-9]{6,11}",
    r"\w\w{1,29}s?-(?:[Mm]ac[Bb]ook|i?[Mm]ac-?(?:[Mm]ini|[Ss]tudio)|[Ii][Mm]ac|thinkpad|laptop)"
    r"(?:-(?:[Pp]ro|[Aa]ir|\d{1,4})){0,3}(?:\.(?:local|lan|home))?",
    r"ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[a-z0-9.-]{1,60}internal)?",
    end=r"(?![\w-])",
)
_HOST_CUES = (
    "DESKTOP-", "LAPTOP-", "WIN-", "EC2AMAZ-", "ip-", "-mac", "-Mac", "-iM", "-im", "-IM", "-Im",
    "-think", "-laptop",
)  # fmt: skip
_NAMED_HOST = anywhere(
    r"[Nn](?:ame|AME)\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?"
    r"(?P<host>[A-Za-z0-9][\w.-]{2,62})(?![\w(\[.])"
)
_HOST_NAME = "(?:host|computer|node|server)[_ ]?"
_HOST_NAMES = re.compile(rf"(?<![A-Za-z]){_HOST_NAME}\Z", re.IGNORECASE)
_UNAME = anywhere(r"(?:Linux|Darwin|FreeBSD) (?P<host>[A-Za-z0-9][\w.-]{1,62}) \d+\.\d+")
_INNER_HOST = anywhere(
    r"[@/](?:(?<=@)|(?<=//))(?P<host>[A-Za-z0-9][\w-]{1,62}(?:\.[\w-]{1,62}){0,4}"
    r"\.(?:local|lan|corp|intranet|localdomain|internal))(?![\w.])"
)
NO_HOST = re.compile(
    r"localhost|host\.docker\.internal|kubernetes|metadata\.google\.internal|host-\d{12}|[\d.]+"
    r"|(?:your|my|example|some|the|process|os|self|config|string|null|none|true|false|undefined|github"
    r"|gitlab|bitbucket|hostname|server|container|node|default)\b.*|.*\bexample\.(?:com|org|net)",
    re.IGNORECASE,
)
"""Names of machines that are nobody's."""


def _unames(text: str, start: int, end: int) -> Iterator[Hit]:
    if contains(text, start, end, ("inux ", "arwin ", "BSD ")):
        yield from _named_hosts(_UNAME.pattern.finditer(text, start, end))


_INNER_TOP = re.compile(r"\.(?:local|lan|corp|int)")


def _inner_hosts(text: str, start: int, end: int) -> Iterator[Hit]:
    if _INNER_TOP.search(text, start, end):
        yield from _named_hosts(_INNER_HOST.pattern.finditer(text, start, end))


def _hosts_by_key(text: str, start: int, end: int) -> Iterator[Hit]:
    for place in _NAMED_HOST.pattern.finditer(text, start, end):
        name = _HOST_NAMES.search(text, max(0, place.start() - 10), place.start())
        if name is not None and not _is_expression(text, place, name[0]):
            yield from _named_hosts([place])


_HOST_SIGN = re.compile("[0-9-]")
_HUMP = re.compile("[a-z][A-Z]")
_OF_OBJECT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\.\w*(?:host|name|value)", re.IGNORECASE)


def _is_expression(text: str, place: re.Match[str], name: str) -> bool:
    """Returns whether a value after `hostname` and the like is code: `hostname: opts.host,`."""
    host, begin, end = place["host"], place.start("host"), place.end("host")
    if text[begin - 1] in "\"'":
        return name == "node" and _HOST_SIGN.search(host) is None  # nodeName: "textarea"
    if _OF_OBJECT.fullmatch(host):
        return True
    is_setting = text[place.start() : place.start() + 3].isupper() and text[begin - 1] == "="
    ends_line = text[end : end + 1] in ("", "\n", "\r", "\\", " ", '"')
    is_type = text[end : end + 3] == " = " or _HUMP.search(host) is not None
    return not is_setting and _HOST_SIGN.search(host) is None and (not ends_line or is_type)


def _named_hosts(places: Iterable[re.Match[str]]) -> Iterator[Hit]:
    for place in places:
        if not NO_HOST.fullmatch(place["host"]):
            yield Hit(*place.span("host"), "host_name")


def _hosts(text: str, start: int, end: int) -> Iterator[Hit]:
    if contains(text, start, end, _HOST_CUES):
        for match in _HOST.pattern.finditer(text, start, end):
            yield Hit(match.start(), match.end(), "host_name")


def contains(text: str, start: int, end: int, cues: tuple[str, ...]) -> bool:
    """Returns whether one of the cues is in a part of the text."""
    return any(text.find(cue, start, end) >= 0 for cue in cues)


HOST_RULES = (
    (_UNAME.condition, _unames),
    (_INNER_HOST.condition, _inner_hosts),
    (necessary(_HOST_NAME, ignore_case=True) + _NAMED_HOST.condition, _hosts_by_key),
    (_HOST.condition, _hosts),
)
"""(condition for RE2, search of [start, end) in a text) for each way to find one."""
