# ruff: noqa: E501 - patterns
r"""Finds the cookies of sessions: in headers, in calls that set one, in dictionaries of cookies.

`Cookie: theme=dark; sessionid=…`, `document.cookie = "…"`, `cookies.set("sessionid", "…")`,
`cookies[:sessionid] = "…"`, `cookies={"sessionid": "…"}`. The cookie has the name of a session, and
its value looks generated. In a dictionary of cookies every generated value counts, whatever its
name, but for those of analytics. Cookies written as objects have rules in
`builder.secrets.context_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from builder.secrets.hits import Hit
from builder.secrets.layout import WRAP
from builder.secrets.values import is_stand_in, looks_random

CONDITION = r"(?i:cookie|jar(?:\.|->)(?:set|put|add|append))"
"""A condition for RE2: the text before a cookie."""
_WORD = re.compile(r"cookies?\w{0,14}|jar(?=(?:\.|->)(?:set|put|add|append)\()", re.IGNORECASE)
"""What introduces cookies: `document.cookie`."""
MAX_NAMES = 50
"""Cookies of one header or dictionary that are examined."""
MAX_BLOCK = 6000
"""Code points of a dictionary that are searched."""

_Q = r"\\{0,7}[\"'`]"
_ANY = rf"(?:{_Q})?"
_NAME = r"[\w.$-]{1,80}"
_VALUE = r"[\w.~%+/=:|!*-]{16,4000}"
_HEADER = re.compile(
    rf"{_ANY}[ \t]{{0,4}}(?:(?P<sign>:)|=(?=[ \t]{{0,4}}(?:\[?{_Q}|{_NAME}=))|(?:[(,]|=>)(?=[ \t]{{0,4}}\[?{_Q})"
    rf"|,{WRAP}{_ANY}value{_ANY}[ \t]{{0,2}}:)[ \t]{{0,4}}\[?"
    rf"(?P<quote>{_Q})?(?P<cookies>(?:[^\n\"'`\\]|\\(?=[^nr\\\"'`])){{16,6000}})",
    re.IGNORECASE,
)
"""The text after `cookie`, with cookies as a browser sends them: `: sid=k3J9sPq0Zx7LmT2v`."""
_COOKIE = re.compile(rf"(?<![\w.$-])(?P<name>{_NAME})=(?P<value>{_VALUE})")
"""A cookie: `sid=k3J9sPq0Zx7LmT2v`."""
_CALL = re.compile(
    rf"(?:\(\)\)?)?(?:(?:\.|->|::)\w{{1,20}}!?)?[ ]?\({{1,2}}{WRAP}"
    rf"(?:(?:{_Q}[^\"'`\n\\]{{0,200}}{_Q}|[\w.$>-]{{1,40}}),{WRAP})??(?:\w{{1,10}}[ ]?[=:][ ]?)?"
    rf"{_Q}(?P<name>{_NAME}){_Q}{WRAP}(?:,|=>){WRAP}(?:\w{{1,10}}[ ]?[=:][ ]?)?{_Q}(?P<value>{_VALUE}){_Q}"
)
"""A call that takes the name of a cookie and its value: `.set("sid", "k3J9sPq0Zx7LmT2v"`."""
_ITEM = re.compile(
    rf"(?:\.\w{{1,20}}){{0,2}}\[(?::|{_Q})(?P<name>{_NAME}?){_ANY}\][ ]{{0,4}}=[ ]{{0,4}}{_Q}(?P<value>{_VALUE}){_Q}"
)
"""An assignment to an item of a collection of cookies: `["sid"] = "k3J9sPq0Zx7LmT2v"`."""
_DICT = re.compile(
    rf"{_ANY}(?:\.\w{{1,20}})?[ \t]{{0,4}}(?:(?:[=:(]|=>)[ \t]{{0,4}}){{1,2}}(?:(?P<call>dict\()|%?\{{|array\(|\[)",
    re.IGNORECASE,
)
"""The text between `cookies` and the members of a dictionary: ` = {`."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MEMBER = re.compile(
    rf"(?:{_Q}(?P<name>{_NAME}){_Q}|(?<![\w.$-])(?P<bare>[\w-]{{1,80}}))[ ]{{0,4}}(?::|=>|=){WRAP}"
    rf"{_Q}(?P<value>{_VALUE}){_Q}"
)
"""A member of such a dictionary: `"sid": "k3J9sPq0Zx7LmT2v"`."""
_SESSION = re.compile(
    r"sess|sid(?![a-z])|auth|token|jwt|remember|login|identity|ticket|clearance|cred",
    re.IGNORECASE,
)
"""A part of the name of a cookie that logs someone in: `auth_id`."""
_ANALYTICS = re.compile(
    r"_g[ac]|_gid|_gcl|_fb[pc]$|__utm|_hj|_pk_|_dc_|mp_|ajs_|amp_|amplitude|optanon|consent|i18n",
    re.IGNORECASE,
)
"""The beginning of the name of one that only counts visitors: `_ga`."""

_NO_NAMES = ("value", "name", "type", "items", "description", "default", "format")
_DIGIT = re.compile("[0-9]")


def is_session(name: str) -> bool:
    """Returns whether it is the name of a cookie that logs someone in."""
    return _SESSION.search(name) is not None and not _ANALYTICS.match(name)


def is_header(name: str, value: str) -> bool:
    """Returns whether they are the name and the value of a header with such a cookie."""
    if name.lower() not in ("cookie", "set-cookie"):
        return False
    line = f"{name}: {value}"
    return any(True for _ in find_cookies(line, 0, len(name)))


def find_cookies(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields the cookies of sessions that follow the word for them in a line [start, end)."""
    done = closed = start
    for word in _WORD.finditer(text, start, end):
        if word.start() < done:
            continue  # inside a header that was examined
        for form in (_CALL, _ITEM):
            match = form.match(text, word.end())
            if match is not None and is_session(match["name"]) and _is_random(match["value"]):
                yield Hit(*match.span("value"), "secret", certain=False)
        header = _HEADER.match(text, word.end())
        if header is not None:
            done = header.end()
            yield from _sent(text, header)
        members = _DICT.match(text, word.end())
        if members is not None and members.start() >= closed:
            closed = _end_of(text, members)
            yield from _members(text, members.end(), closed)


def _sent(text: str, header: re.Match[str]) -> Iterator[Hit]:
    """Yields the cookies of a header, or of a string with cookies."""
    is_header = header["quote"] is None and header["sign"] is not None
    for cookie in islice(_COOKIE.finditer(text, *header.span("cookies")), MAX_NAMES):
        value = cookie["value"]
        is_value = not is_stand_in(value) if is_header else _is_random(value)
        if is_value and is_session(cookie["name"]):
            yield Hit(*cookie.span("value"), "secret", certain=False)


def _end_of(text: str, opened: re.Match[str]) -> int:
    """Returns where a dictionary ends that begins with `opened`."""
    sign = ")" if opened["call"] else _CLOSING[opened[0][-1]]
    stop = text.find(sign, opened.end(), opened.end() + MAX_BLOCK)
    return stop if stop >= 0 else opened.end() + MAX_BLOCK


def _members(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields the generated values of a dictionary of cookies, whose members are in [start, end)."""
    for member in islice(_MEMBER.finditer(text, start, end), MAX_NAMES):
        name, value = member["name"] or member["bare"], member["value"]
        is_likely = is_session(name) or (
            _DIGIT.search(value) is not None and not _ANALYTICS.match(name)
        )
        if is_likely and name.lower() not in _NO_NAMES and _is_random(value):
            yield Hit(*member.span("value"), "secret", certain=False)


def _is_random(value: str) -> bool:
    return "EXAMPLE" not in value and not is_stand_in(value) and looks_random(value)
