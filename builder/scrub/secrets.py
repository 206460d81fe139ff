"""Secrets in decoded text: keys and tokens by their form, passwords by what stands around them.

Three kinds of rules, all of them linear in the text (every repetition has a bound):

- a form (`builder.scrub.secret_forms`): the text alone says what it is, by its issuer's prefix
- a place (`_PLACES`): a header, a connection string, netrc, an option of a command
- a name (`_NAMED`): `api_key = "…"`, `"password": "…"`, where the value does not look like a
  variable, a placeholder or a word

A placeholder of ours is never a secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from builder.scrub.hits import Hit, apart, found_in, remembering
from builder.scrub.prefilter import LinePrefilter, necessary
from builder.scrub.rules import by_first
from builder.scrub.secret_forms import found_forms, may_hold_forms

MARK = "REDACTED_"
"""Every placeholder begins with this."""

_PEM = re.compile(r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"(?:[A-Za-z0-9+/=:,\s-]|\\{1,3}[nr])*")
MAX_PEM = 20_000
"""Code points of a private key with all that a viewer put between its lines."""

_BARE = r"[^\s\"'`<>\\;,&|(){}\[\]]"
"""A character of a value without quotes."""

_PLACES = (
    ("bearer", r"bearer[ \t]{1,4}(?P<v>[\w.~+/=-]{16,4000})"),
    (
        "authorization",
        (
            r"authorization(?:\\{0,3}[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,3}[\"'])?"
            r"(?:basic|token|apikey|digest|negotiate|key|ssws|bot|oauth|jwt|splunk|geniekey|pat)"
            r"[ \t]{1,4}(?P<v>[\w.~+/=:-]{8,4000})"
        ),
    ),
    # a URL with a password: scheme://user:password@host, redis://:password@host
    ("://", r"://[^\s\"'<>/@:]{0,200}:(?P<v>[^\s\"'<>/@]{3,200})@[\w\[.-]"),
    ("://", r"://(?P<v>[0-9a-f]{32})(?::[0-9a-f]{32})?@[\w\[.-]"),
    (
        "machine",
        (
            r"machine\s{1,8}\S{1,255}\s{1,8}login\s{1,8}\S{1,255}\s{1,8}"
            r"password\s{1,8}(?P<v>[^\s\"'\\]{3,200})"
        ),
    ),
    # connection strings of ADO, ODBC, JDBC and Azure
    ("password=", rf"(?<=[;?&])password=(?P<v>{_BARE}{{4,400}})"),
    ("pwd=", rf"(?<=[;?&])pwd=(?P<v>{_BARE}{{4,400}})"),
    ("accesskey=", rf"(?<=shared)accesskey=(?P<v>{_BARE}{{20,400}})"),
    ("accountkey=", rf"accountkey=(?P<v>{_BARE}{{20,400}})"),
    # options of commands
    (
        "curl",
        (
            r"curl\b[^\n|;]{0,200}?[ \t](?:-u|--user|--proxy-user)[ \t=]{0,2}[\"']?"
            r"[^\s:\"'$]{1,100}:(?P<v>[^\s\"'$]{3,200})"
        ),
    ),
    ("mysql", r"mysql(?:dump|admin|import)?\b[^\n|;]{0,200}?[ \t]-p(?P<v>[^\s\"'$-]{4,100})"),
    ("docker login", r"docker login\b[^\n|;]{0,200}?[ \t]-p[ \t=]?[\"']?(?P<v>[^\s\"'$-]{4,200})"),
    ("redis-cli", r"redis-cli\b[^\n|;]{0,200}?[ \t]-a[ \t][\"']?(?P<v>[^\s\"'$-]{4,200})"),
    (
        "mongo",
        r"mongo(?:sh|dump|restore)?[ \t][^\n|;]{0,200}?[ \t]-p[ \t][\"']?(?P<v>[^\s\"'$-]{4,99})",
    ),
    ("pass:", r"(?:(?<=-passin )|(?<=-passout ))pass:(?P<v>[^\s\"'$]{4,200})"),
    ("sshpass", r"sshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?(?P<v>[^\s\"'$]{4,100})"),
    ("pgpassword", r"pgpassword=[\"']?(?P<v>[^\s\"'$]{4,200})"),
    ("mysql_pwd", r"mysql_pwd=[\"']?(?P<v>[^\s\"'$]{4,200})"),
    ("rediscli_auth", r"rediscli_auth=[\"']?(?P<v>[^\s\"'$]{4,200})"),
    # the query of a URL
    ("?key=", r"\?key=(?P<v>[\w.~%+/=-]{20,400})"),
    ("&key=", r"&key=(?P<v>[\w.~%+/=-]{20,400})"),
    ("secret=", r"(?<=[?&])secret=(?P<v>[A-Z2-7]{16,64})"),
    ("sig=", r"(?<=[?&])sig=(?P<v>[\w.~%+/=-]{16,400})"),
    ("signature=", r"(?<=[?&-])signature=(?P<v>[\w.~%+/=-]{16,400})"),
    ("security-token=", r"security-token=(?P<v>[\w.~%+/=-]{16,4000})"),
    # .pgpass: host:port:database:user:password
    (":5432:", r":5432:[^\s:]{1,63}:[^\s:]{1,63}:(?P<v>[^\s:\"']{4,200})"),
    # the words of a wallet
    (
        "mnemonic",
        (
            r"mnemonic(?:\\{0,3}[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,3}[\"'])?"
            r"(?P<v>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})"
        ),
    ),
    ("seed phrase", r"seed phrase(?: is)?:? [\"']?(?P<v>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})"),
    ("key-data", r"(?<=client-)key-data: (?P<v>[A-Za-z0-9+/=]{40,8000})"),
    (
        "cookie",
        (
            r"cookie(?:\\{0,3}[\"'])?[ \t]{0,4}[:=][^\n\"']{0,400}?"
            r"(?:session|sess|sid|auth|token)[\w.-]{0,20}=(?P<v>[\w.~%+/-]{16,4000})"
        ),
    ),
)

_CLOSED = r"(?:\\{0,3}[\"'`])?\]?[ \t]{0,4}"
_SIGN = r":=|=>|={1,2}|:|>|(?<=[\"']),(?=[ \t]?[\"'])|[ \t]is\b:?"
_VALUE = (
    r"[ \t]{0,4}(?:\w{1,20} = )?"
    r"(?:\\{0,3}(?P<quote>[\"'`])(?P<quoted>[^\"'`\n\\]{4,4000})(?=\\{0,3}[\"'`]|\\|$)"
    rf"|(?P<bare>{_BARE}{{6,4000}})(?![\w(\[{{]))"
)
_NAMED = re.compile(rf"{_CLOSED}(?P<sep>{_SIGN}|[ \t](?=\S)){_VALUE}")
"""What follows a name: `: "value"`, `=value`, ` value` (after an option), `>value<`."""

_WEAK = ("password", "passwd", "passphrase", "pass", "pwd", "passcode", "pw", "psk")
_SHORT = ("pass", "pw", "psk", "auth")
_STRONG = (
    "secret", "token", "credential", "credentials", "apikey", "authorization", "auth", "key_base",
)  # fmt: skip
_KEY = (
    r"api|access|secret|auth|authentication|private|signing|sign|encryption|encrypt|account|master"
    r"|service|services|app|application|consumer|subscription|storage|webhook|hmac|jwt|license|admin"
    r"|deploy|root|session|client|shared|bot|server|fastly|functions|write"
)
_KEY_BEFORE = re.compile(rf"(?:{_KEY})[_-]?$")
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]{1,39}_$")
_NO_KEY_BEFORE = re.compile(
    r"(?:PRIMARY|FOREIGN|CACHE|PUBLIC|SORT|PARTITION|IDEMPOTENCY|HASH|OBJECT|S3|ROUTING|INDEX|LOOKUP"
    r"|GROUP|MESSAGE|UNIQUE|SHARD|BUILD|TRACE|ORDER)_$"
)
_NOT_SECRET_BEFORE = re.compile(
    r"(?:page|next|continuation|sync|cursor|max|min|num|eos|bos|pad|unk|sep|cls|mask|special|stop"
    r"|cancellation|prev|previous|last|total|prompt|completion|input|output|first|image|start|end)"
    r"[_-]?$"
)
_BEFORE = re.compile(r"[\w-]{0,40}$")
_KEYWORDS = (*_WEAK, *_STRONG, "key")

_CUES = re.compile(
    by_first(
        re.escape(cue)
        for cue in sorted({cue for cue, _ in _PLACES} | set(_KEYWORDS), key=len, reverse=True)
    )
)
_AT_PLACE: dict[str, list[re.Pattern[str]]] = {}
for _cue, _pattern in _PLACES:
    _AT_PLACE.setdefault(_cue, []).append(re.compile(_pattern, re.IGNORECASE))

_NAME = "|".join((
    necessary("|".join((*_WEAK, *_STRONG, f"(?:{_KEY})[_-]?key")), ignore_case=True),
    necessary("[A-Z][A-Z0-9_]*_") + necessary("key", ignore_case=True),
))  # fmt: skip
_SIGNED = necessary(f"{_CLOSED}(?:{_SIGN}){_VALUE}", ignore_case=True)
_SPACED = necessary(rf"{_CLOSED}[ \t]{_VALUE}", ignore_case=True)
_LINES_WITH_CUE = LinePrefilter(
    "|".join(
        (
            necessary("|".join(pattern for _, pattern in _PLACES), ignore_case=True),
            f"(?:{_NAME}){_SIGNED}",
            rf"-[\w?-]*(?:{_NAME}){_SPACED}",
            # what stands before a name may end the line before it (`$` in `_BEFORE`)
            rf"\n{necessary('|'.join(_KEYWORDS), ignore_case=True)}(?:{_SIGNED}|{_SPACED})",
        )
    )
)

_STAND_IN = re.compile(
    r"^(?:\$[{(]|\$\w+$|%\w+%$|%[sd(]|<|\{|@\w+$|&\w|\*|#\{|your|my[_-]|the[_-]|some[_-]|fake|dummy"
    r"|sample|test[_-]?(?:key|token|secret|pass)|(?:insert|replace|enter)[_ -]|arn:|file:|https?:"
    r"|(?:null|none|true|false|undefined|string|todo|process|os|env|config|settings|self|this|options"
    r"|args|params|request|res|response|await|new|function|get|fetch|load|vault)(?![A-Za-z0-9])"
    r"|/[a-z][a-z_.-]*/|\.|~/|[\d.:TZ+-]+$)"
    r"|\*{3}|x{4}|\.{3}|…|example|placeholder|change[_-]?me|redacted|not[_-]?a[_-]?real",
    re.IGNORECASE,
)
"""A value that stands for another: a variable, a path, a word of documentation."""

_CODE = re.compile(r"[A-Za-z_][A-Za-z_.]*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\w+\[.*")
_WORDS = re.compile(
    r"(?:[A-Za-z]{2,}\d{0,3}|\d{1,4}|v\d+)(?:[^A-Za-z0-9]+(?:[A-Za-z]{1,}\d{0,3}|\d{1,4}))*"
)
_DOCUMENTED = frozenset((
    "password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "root", "admin",
    "postgres", "mysql", "guest", "test", "port", "key",
))  # fmt: skip
"""What documentation writes in the place of a password."""
_NO_PASSWORD = frozenset((
    "sha1", "sha256", "sha512", "md5", "utf8", "utf-8", "base64", "argon2", "aes256", "pbkdf2",
))  # fmt: skip


@remembering
def find_secrets(text: str) -> tuple[Hit, ...]:
    """The secrets in a decoded text, in order, none overlapping."""
    hits = apart([*_forms(text), *_pems(text), *_by_cue(text)])
    return tuple(hit for hit in hits if MARK not in text[hit.start : hit.end])


def secrets_in(texts: Sequence[str]) -> list[tuple[Hit, ...]]:
    """The secrets in each of some texts."""
    return found_in(texts, find_secrets, _may_hold)


def _may_hold(text: str) -> bool:
    return (
        may_hold_forms(text)
        or _PEM.search(text) is not None
        or next(_LINES_WITH_CUE(text), None) is not None
    )


def named_secret(name: str, value: str) -> bool:
    """Does the name of a member (`api_key`, `X-Api-Key`, `password`) make its value a secret?"""
    if name.endswith(("s", "S")) and not name.lower().endswith("pass"):
        name = name[:-1]  # a list of them
    lower = name.lower()
    if not lower.endswith(_KEYWORDS) or MARK in value or len(lower) != len(name):
        return False
    keyword = next(word for word in _KEYWORDS if lower.endswith(word))
    return _is_named(keyword, name[: -len(keyword)]) and _is_value(keyword, value, quoted=True)


def _forms(text: str) -> Iterator[Hit]:
    for match, kind in found_forms(text):
        if "EXAMPLE" in match[0]:
            continue  # the keys of AWS's documentation
        yield Hit(match.start(), match.end(), kind)
        if kind == "aws_access_key":
            yield from _aws_secrets(text, match.start(), match.end())


_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")


def _aws_secrets(text: str, start: int, end: int) -> Iterator[Hit]:
    """Secret keys without a name, within 200 code points after or before an access key."""
    for match in _AWS_SECRET.finditer(text, max(0, start - 200), end + 240):
        if (
            re.search(r"[a-z]", match[0])
            and re.search(r"[A-Z]", match[0])
            and _entropy(match[0]) > 4
        ):
            yield Hit(match.start(), match.end(), "aws_secret_key", certain=False)


def _pems(text: str) -> Iterator[Hit]:
    at = 0
    while begin := _PEM.search(text, at):
        end = _PEM_END.search(text, begin.end(), begin.end() + MAX_PEM)
        if end is not None:
            at = end.end()
        else:  # cut off by whoever showed it: as far as it looks like a key
            body = _PEM_BODY.match(text, begin.end(), begin.end() + MAX_PEM)
            at = body.end() if body else begin.end()
        if sum(map(str.isalnum, text[begin.end() : at])) >= 40:
            yield Hit(begin.start(), at, "private_key")


def _by_cue(text: str) -> Iterator[Hit]:
    lines = tuple(_LINES_WITH_CUE(text))
    lower = text.lower() if lines else text
    if len(lower) != len(text):  # a letter that is two in lower case
        lower = text.translate(_ASCII_LOWER)
    for start, end in lines:
        yield from _in_lines(text, lower, start, end)


def _in_lines(text: str, lower: str, start: int, end: int) -> Iterator[Hit]:
    """What cues tell in whole lines. What stands after a name ends with its line, if not before."""
    nested, examined = 0, 0
    for cue in _CUES.finditer(lower, start, end):
        nested = nested + 1 if cue.start() < examined else 0
        if nested > MAX_NESTED:
            continue
        places = (place.match(text, cue.start()) for place in _AT_PLACE.get(cue[0], ()))
        match = next((found for found in places if found), None)
        if match is not None and _is_placed(cue[0], match["v"]):
            yield Hit(*match.span("v"), "secret", certain=False)
            continue
        name = cue[0].rstrip("=:")
        keyword = next((item for item in _KEYWORDS if name.endswith(item)), None)
        after = cue.start() + len(name)
        match = _NAMED.match(text, after) if keyword is not None else None
        if match is not None:
            examined = match.end()
            yield from _assigned(match, text, after - len(str(keyword)), str(keyword))


def _is_placed(cue: str, value: str) -> bool:
    """Is what stands at the place of a secret one, and no word of documentation?"""
    if _STAND_IN.search(value[:200]) or value.lower() in _DOCUMENTED:
        return False
    return cue != "bearer" or looks_random(value)


def _assigned(match: re.Match[str], text: str, start: int, keyword: str) -> Iterator[Hit]:
    """The value that `match` found after a name; the keyword at its end begins at `start`."""
    before = _BEFORE.search(text, max(0, start - 40), start)
    prefix = before[0] if before is not None else ""
    opened = text[start - len(prefix) - 1 : start - len(prefix)]
    sep = match["sep"].strip()
    if sep == ">" and opened != "<":
        return
    if not sep and not prefix.startswith("-"):
        return  # a space is enough after an option only
    quoted = match["quote"] is not None
    if keyword == "pass" and not prefix and not quoted:
        return  # PASS: test_2
    begin = match.start("quoted" if quoted else "bare")
    value = match["quoted"] if quoted else match["bare"].rstrip(".,:")
    is_code = sep == "=" and text[match.start("sep") - 1] == " " and len(value) < 20
    if not quoted and is_code and _CODE_NAME.fullmatch(value):
        return  # password = other1
    if _is_named(keyword, prefix) and _is_value(keyword, value, quoted=quoted):
        yield Hit(begin, begin + len(value), "secret", certain=False)


MAX_NESTED = 20
"""Names that are looked at inside of one value: a hostile text may repeat one without end."""

_ASCII_LOWER = {ord(char): char.lower() for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_CODE_NAME = re.compile(r"[A-Za-z_]\w*")


def _is_named(keyword: str, before: str) -> bool:
    if keyword == "key" and _KEY_BEFORE.search(before.lower()) is None:
        return bool(_ENVIRONMENT.search(before)) and not _NO_KEY_BEFORE.search(before)
    if keyword in _SHORT and before and before[-1] not in "_-":
        return False  # bypass, compass
    return keyword in (*_WEAK, "key") or _NOT_SECRET_BEFORE.search(before.lower()) is None


def _is_value(keyword: str, value: str, *, quoted: bool) -> bool:
    begin = value[:200]  # a hostile text may hold a value at every word
    if _STAND_IN.search(begin) or (not quoted and _CODE.fullmatch(begin)):
        return False
    has_digit = any(map(str.isdigit, begin))
    has_letter = any(map(str.isalpha, begin))
    if keyword in _WEAK:
        marked = has_digit or any(char in "!@#$%^&*+=?~" for char in begin)
        plain = len(value) > 200 or " " in value or value.lower() in _NO_PASSWORD
        return marked and has_letter and not plain
    return " " not in value and looks_random(value)


def looks_random(value: str) -> bool:
    """Is it long and mixed enough for a token, and not made of words and small numbers?"""
    begin = value[:200]
    has_digit = any(map(str.isdigit, begin))
    has_letter = any(map(str.isalpha, begin))
    if not (has_digit and has_letter) or len(value) < 12:
        return False
    return _entropy(begin) >= 2.8 and not (len(value) < 60 and _WORDS.fullmatch(value))


_RUN = re.compile(r"[A-Za-z0-9_+/=.-]{12,}")


def mask_pieces(text: str) -> str:
    """A text that may begin or end inside of a secret, without what may be a piece of one."""
    return _RUN.sub(_masked, text)


def _masked(run: re.Match[str]) -> str:
    return f"{MARK}CUT" if looks_random(run[0]) and MARK not in run[0] else run[0]


def _entropy(text: str) -> float:
    """Bits a character, by how often each occurs in the text."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def scanned_secrets(texts: Iterable[str]) -> list[str]:
    """What the scanner of the extra `secrets` finds in texts; nothing where it is not installed.

    It tells the secret and not the place. It looks at the text only: no provider is asked.
    """
    scanner = _scanner()
    if scanner is None:
        return []
    found = {finding.secret for finding in scanner("\n\n".join(texts))}
    return sorted(secret for secret in found if len(secret) >= 8 and MARK not in secret)


@cache
def _scanner() -> Callable[[str], Any] | None:
    try:
        import betterleaks  # noqa: PLC0415 - optional
    except ImportError:
        return None
    scan: Callable[[str], Any] = betterleaks.scan_string
    return scan
