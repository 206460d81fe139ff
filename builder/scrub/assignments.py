"""Finds values that a name marks as secret: `api_key = "…"`, `"password": "…"`, `--token …`.

The name and its value may also be two members of one object (`name: API_TOKEN`, `value: …`), two
attributes or elements of XML, or the name of a function and its argument (`with_token("…")`).

A name ends with a keyword. After a keyword for passwords nearly any value counts; after one for
tokens and keys the value must look generated. Code (`password = get_password()`), variables and
words of documentation are not values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from builder.scrub.expressions import COMPARED, is_code, is_variable
from builder.scrub.hits import Hit
from builder.scrub.named_values import PASSWORDS, TOKENS, is_value
from builder.scrub.prefilter import LinePrefilter, Lines, ascii_lower, necessary
from builder.scrub.rules import by_first
from builder.scrub.values import has_drawn_part, is_wordlike

_NEVER_INSIDE_A_WORD = ("pass", "pw", "psk", "auth", "senha")
_INSIDE = re.compile(
    r"(?:^|[^a-z])(?:remote|local|db|database|root|user|my|smtp|imap|pop3?|ftp|sftp|mail|email|admin"
    r"|ssh|key|store|trust|keystore|truststore|ldap|bind|http|https|proxy|wifi|wlan|vnc|rdp|vpn|auth|mysql|pg|postgres|sql"
    r"|redis|mongo|login|svn|git|cert|rpc|rcon|sudo|become|srv|server|client|sys|app|web|api|nas|smb"
    r"|default|wpa|psk|enc|zip|pdf|backup|sa|new|old|master|service|account|basic|sasl|jks|p12|pfx)$",
    re.IGNORECASE,
)
"""Prefixes with which `pass` and `pw` name a password: `remotepass`, `rootpw`."""
_KEY = (
    r"api|access|secret|auth|authentication|private|signing|sign|encryption|encrypt|account|master"
    r"|service|services|app|application|consumer|subscription|storage|webhook|hmac|jwt|license|admin"
    r"|deploy|root|session|client|shared|bot|server|fastly|functions|write|mqtt|wifi|wpa|device|vpn"
    r"|smtp|stripe|openai|anthropic|sendgrid|mailgun|twilio|maps|github|gitlab|slack|datadog|groq|mistral"
    r"|gemini|deepl|mapbox|etherscan|infura|alchemy|weather|supabase|algolia|grafana|sentry"
)
"""Prefixes with which `key` is the name of a secret; so are environment variables, except those of
`_NO_KEY_BEFORE`.
"""
_KEY_BEFORE = re.compile(rf"(?:{_KEY})[_-]?$")
_KEY_WORD_BEFORE = re.compile(rf"(?<![a-z])(?:{_KEY}) $", re.IGNORECASE)
"""As in `API key: …`."""
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]{1,39}_$")
_NO_KEY_BEFORE = re.compile(
    r"(?:PRIMARY|FOREIGN|CACHE|PUBLIC|SORT|PARTITION|IDEMPOTENCY|HASH|OBJECT|S3|ROUTING|INDEX|LOOKUP"
    r"|GROUP|MESSAGE|UNIQUE|SHARD|BUILD|TRACE|ORDER|REQUIRED|VALID|ALLOWED|KNOWN|SUPPORTED|OPTIONAL"
    r"|IGNORED|EXTRA|EXPECTED|RESERVED)_$"
)
_NOT_SECRET_BEFORE = re.compile(
    r"(?:page|next|forward|backward|starting|continuation|sync|cursor|max|(?<!ad)min|num|eos|bos|(?<![a-z])pad|unk|sep|cls|mask|special|stop"
    r"|public[_-]?key|(?<!ex)change|(?<!b)lock|request|idempotency|cancellation|prev|previous|last|(?<![a-z])total|prompt|completion|output|first|image|start|(?<!back)(?<!front)end)"
    r"[_-]?$"
)
"""Tokens that are not secrets: those of pagination and of language models."""
KEYWORDS = (*PASSWORDS, *TOKENS, "key")

_BARE = r"[^\s\"'`<>\\;,&|(){}\[\]]"
"""A character of an unquoted value."""
_CLOSED = r"(?: \([\w .-]{1,20}\))?(?:\\{0,7}[\"'`]|\*\*)?\]?[ \t]{0,24}"
_BREAK = (
    r"(?:\s|\\{1,4}[nrt]|\d{1,6}[\t\u2192]|(?<=[\nn])[+-](?=[ \t])"
    r"|(?<=\n)[\w./-]{1,80}[:-]\d{1,6}[:-]){0,40}"
)
"""White space, also across a line end, escaped, with line numbers and the marks of a diff."""
_PAIR = (
    rf"[,;:{{]?{_BREAK}(?:\\{{0,7}}[\"']?\w{{1,20}}\\{{0,7}}[\"']?[ \t]{{0,4}}[:=]"
    rf"[ \t]{{0,4}}[^,\n{{}}]{{1,60}}?(?:,|\n|\\{{1,4}}n){_BREAK})?"
    rf"\\{{0,7}}[\"']?(?:(?:Parameter)?[vV]alue|[dD]efault)\\{{0,7}}[\"']?[ \t]{{0,4}}[:=]"
    r"|(?:[ \t][\w-]{1,20}=\\{0,7}\"[^\"\n]{0,60}\"){1,3}[ \t]{1,4}value="
    rf"|</key>{_BREAK}<string>"
)
"""The text between a name and its value in two members, attributes or elements."""
_BARS = ("|", "\u2502", "\u2503", "\u2551")
"""Lines between the columns of a table."""
_BAR = r"[|\u2502\u2503\u2551]"
_IN_ROW = re.compile(rf"(?<!\w){_BAR}[ \t`*]{{0,4}}\Z|{_BAR}[ \t`*]{{1,4}}\Z")
"""The text before the first cell of a pair, which no alternation of words has."""
_SIGN = (
    rf":=|=>|[!=]?={{1,2}}|<-|(?:\|\||\?\??)=|{_PAIR}|:|>|[ \t]is\b:?"
    r"|(?<=[\"']),(?=[ \t]?\\{0,7}[\"'])"
    r"|\((?=[ \t]{0,2}\\{0,7}[\"'])"
    rf"|{_BAR}(?=[ \t]{{0,24}}`?[^\s|`\u2502\u2503\u2551]{{6,400}}`?[ \t]{{0,80}}{_BAR})"
)
_VALUE = (
    r"(?:\*\*)?[ \t]{0,24}(?:&?\w{1,20} = |(?:[bBuUN@]|\[\]byte\(|\\{0,7}[\"']{2})(?=\\{0,7}[\"'])"
    r"|[\w.:]{0,30}(?:64decode|64_decode|decode64|decodestring|from_?hex|unhexlify|unhex|buffer\.from"
    r"|atob|SecretStr|String::from)\([bB]?(?=\\{0,7}[\"'])"
    rf"|{_BREAK}string\(\d{{1,4}}\) (?=\\{{0,7}}\")"
    r"|[>|][+-]?(?:\n|\\{1,4}n)[ \t]{1,20}|[\w.$]{1,60} (?:\|\||\?\?|or) "
    rf"|\[{_BREAK})?"
    r"(?:\\{0,7}(?P<quote>[\"'`])(?P<quoted>(?:[^\"'`\n\\]|\\{1,7}u00[2-7][0-9a-fA-F]){4,4000})"
    r"(?=\\{0,7}[\"'`]|\\|$)"
    rf"|(?P<bare>{_BARE}{{6,4000}})(?![\w(\[{{]))"
)
_SUFFIX = (
    r"[_-]?(?:[pP]rivate|PRIVATE|[sS]tring|STRING|[vV]alue|VALUE|[pP]rod|PROD|[sS]taging|STAGING|[dD]ev|DEV|[lL]ive|LIVE"
    r"|[tT]est|TEST|[pP]roduction|PRODUCTION|[bB]ase64|BASE64|[bB]64|B64|[sS]andbox|SANDBOX|[pP]rimary|PRIMARY"
    r"|[sS]econdary|SECONDARY|[oO]ld|OLD|[nN]ew|NEW|[vV]?\d{1,2})|__"
)
"""What may follow the keyword in a name: `api_key_prod`, `SecretString`."""
_NAME_SUFFIX = re.compile(rf"(?<=[a-zA-Z])(?:{_SUFFIX})$")
_TAB = r"(?:\t|\\{1,4}t)"
"""A tab, which may be escaped."""
NAMED = re.compile(
    rf"(?P<plural>[sS]?)(?:{_SUFFIX})?{_CLOSED}"
    rf"(?P<sep>{_SIGN}|[ \t]{{1,8}}(?=\S)|(?P<tab>{_TAB})){_VALUE}"
)
"""The text after a name: `: "value"`, `=value`, ` value` (after an option), `>value<`."""
_NEXT = re.compile(
    rf"\\{{0,7}}[\"'`]{_BREAK},{_BREAK}\\{{0,7}}[\"'`](?P<quoted>[^\"'`\n\\]{{4,4000}})(?=\\{{0,7}}[\"'`])"
)
"""The text after a value in a list, with the next value."""
MAX_LISTED = 50
"""Values of a list that are examined."""
_BEFORE = re.compile(r"[\w-]{0,40}\Z")

_KEYWORD = re.compile(by_first(map(re.escape, sorted(KEYWORDS, key=len, reverse=True))))
_NAME = "|".join((
    necessary("|".join((*PASSWORDS, *TOKENS, f"(?:{_KEY})[_ -]?key")), ignore_case=True),
    necessary("[A-Z][A-Z0-9_]*_") + necessary("key", ignore_case=True),
))  # fmt: skip
_SIGNED = necessary(f"(?:{_SUFFIX})?{_CLOSED}(?:{_SIGN}){_VALUE}", ignore_case=True)
_SPACED = necessary(rf"{_CLOSED}[ \t]{_VALUE}", ignore_case=True)
_QUOTED = necessary(r"(?:\\{0,7}[\"'`])?[ \t]{1,24}\\{0,7}[\"'`][^\"'`\n\\]{4}", ignore_case=True)
_TABBED = necessary(rf"{_CLOSED}{_TAB}{_VALUE}", ignore_case=True)
LINES = LinePrefilter(
    "|".join(
        (
            f"(?:{_NAME})[sS]?{_SIGNED}",
            rf"-[\w?-]*(?:{_NAME}){_SPACED}",
            rf"(?:{_NAME})(?:{_TABBED}|{_QUOTED})",
        )
    )
)
MAX_NAME = 400
"""Code points at the end of a member's name that are examined."""
MAX_NESTED = 20
"""Names that are examined within one value: a hostile text may repeat one endlessly."""

_AWS_SCOPE = re.compile(r"\w{4,40}(?:/|%2F)\d{8}(?:/|%2F)")
_MIXED = re.compile(r"(?=[^\d]{0,200}\d)[^/.:]{8,200}")
"""A password rather than the name of a test."""
_STATE_BEFORE = re.compile(
    r"(?:^|[_-])(?:update|change|reset|show|hide|has|is|use|usable|requires?|allow|disabled?|forgot|remember"
    r"|generate|without|ask)[_-]?$"
)
"""What makes a password the name of a setting about it: `update_password: always`."""
_IN_PROSE = re.compile(r"(?:\b(?:and|or|the|but|a|of)|,)[ \t]+\Z")
_HAS_SIGN = re.compile(r"\d|[!@#$%^&*+=?~]")
_MEMBER = re.compile(r"\\{0,7}[\"'`][ \t]{0,2}:")
_IN_FILE = re.compile(r"\w:\d{1,6}:[\w-]{0,40}\Z")
"""A file and a line number, as grep prints them."""
_LINE_BEFORE = re.compile(
    r"(?:^|\n|\\n|\u2192|[\n ]\d{1,6}\t)[+-]?(?P<indent>[ \t]*)(?:[+-][ \t]*)?[\w.-]{0,60}\Z"
)


def named_secret(name: str, value: str) -> bool:
    """Returns whether the name of a JSON member (`api_key`, `password`) makes its value secret."""
    keyword = _keyword(name[-MAX_NAME:])
    return keyword is not None and is_value(keyword, value, quoted=True, setting=False)


@lru_cache(maxsize=1 << 12)  # a dataset has few names, but many members
def _keyword(name: str) -> str | None:
    """Returns the keyword with which the name of a secret ends; None for other names."""
    if name.endswith(("s", "S")) and not name.lower().endswith("pass"):
        name = name[:-1]  # a list of them
    name = _NAME_SUFFIX.sub("", name)
    lower = name.lower()
    if not lower.endswith(KEYWORDS) or len(lower) != len(name):
        return None
    keyword = next(word for word in KEYWORDS if lower.endswith(word))
    return keyword if _is_named(keyword, name[: -len(keyword)]) else None


def find_named(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the values that a name marks as secret in lines of `LINES`, in order of their names.

    A value ends at the end of its line at the latest.
    """
    for start, end in lines:
        nested, examined = 0, 0
        for keyword in _KEYWORD.finditer(ascii_lower(text[start:end])):
            begin = start + keyword.start()
            nested = nested + 1 if begin < examined else 0
            if nested > MAX_NESTED:
                continue
            match = NAMED.match(text, start + keyword.end())
            if match is not None:
                examined = match.end()
                yield from _assigned(match, text, begin, keyword[0])


def _assigned(match: re.Match[str], text: str, start: int, keyword: str) -> Iterator[Hit]:
    """Yields the value that `match` found after a name; its final keyword begins at `start`."""
    before = _BEFORE.search(text, max(0, start - 40), start)
    prefix = before[0] if before is not None else ""
    if prefix[:1] in ("n", "r", "t", "0") and text[start - len(prefix) - 1] == "\\":
        prefix = prefix[1:]  # of an escaped line end or NUL
    opened = text[start - len(prefix) - 1 : start - len(prefix)]
    if opened == "{" and match["sep"] == ":" and text[match.end("sep")] in "?+":
        return  # ${PASSWORD:?required}
    sep = "" if match["tab"] else COMPARED.get(match["sep"].strip(), match["sep"].strip())
    is_option = prefix.startswith("-")
    is_row = sep in _BARS
    if is_row and not _IN_ROW.search(text, max(0, start - len(prefix) - 6), start - len(prefix)):
        return  # printf "$PASSWORD" | sha256sum | cut, HOME|PWD|PATH: no row of a table
    if (sep == ">" and opened != "<") or (
        sep == ":" and opened == ":" and not _IN_FILE.search(text, max(0, start - 60), start)
    ):
        return  # arn:…:secret:name
    quoted = match["quote"] is not None
    is_loose = sep == "(" or (
        not sep
        and not is_option
        and not _is_environment(bool(match["tab"]) or match["sep"] == "\t", text, start, prefix)
    )
    if (is_loose or match["plural"]) and not quoted:
        return  # a space suffices only after an option, a tab also after a variable
    is_list = "[" in text[match.end("sep") : match.end("sep") + 2]
    if (is_list and not match["plural"]) or (
        is_loose and keyword == "pass" and not (quoted and prefix.isupper())
    ):
        return  # "PASS_TO_PASS": ["test_2", …], to pass "--all=true"
    begin = match.start("quoted" if quoted else "bare")
    value = match["quoted"] if quoted else match["bare"].rstrip(".,:")
    if keyword == "pass" and not prefix and (not quoted or sep == ","):
        is_setting = not quoted and text.startswith("pass", start) and _is_line_start(text, start)
        if (
            not is_setting
            or not _MIXED.fullmatch(value)
            or (sep != "=" and "_" in value and is_wordlike(value))
        ):
            return  # PASS: test_2, ("pass", "arg1")
    if is_loose and keyword in PASSWORDS and not _HAS_SIGN.search(value):
        return  # form.password("confirm")
    if is_option and not quoted and value.startswith("-"):
        return  # --passphrase --batch
    name = text[start - len(prefix) : start + len(keyword)]
    if is_code(match, text, value, name) or _AWS_SCOPE.match(value):
        return  # an access key's id and its signature are found by the key's own rule
    at = start - len(prefix)
    is_word = is_option and sep == "" and value.isalpha() and not quoted
    if is_word and _IN_PROSE.search(text, max(0, at - 12), at):
        return  # the option --password and others
    if keyword in PASSWORDS and value.isalpha() and _STATE_BEFORE.search(prefix.lower()):
        return
    is_spaced = text[match.start("sep") - 1] == " "
    if not quoted and sep == "=" and is_spaced and is_variable(value):
        return  # password = other1
    is_tight = sep == "=" and not is_spaced and begin == match.end("sep") + quoted
    setting = (is_option and keyword not in _NEVER_INSIDE_A_WORD) or (
        (is_tight or is_row) and name.upper() == name
    )
    if (
        not quoted
        and (sep == ":" or (is_tight and not setting))
        and (keyword in PASSWORDS or (keyword == "secret" and is_tight))
    ):
        ends_line = text[match.end("bare") : match.end("bare") + 1] in ("", "\n", "\r", "\\")
        before = _LINE_BEFORE.search(text, max(0, start - 100), start) if ends_line else None
        at_margin = before is not None and before["indent"] == ""  # code would be indented
        setting = before is not None and (value == value.lower() or (is_tight and at_margin))
    if sep.startswith("is") and not quoted and value.isalpha() and value == value.lower():
        return  # the password is changed, in any language
    if (is_row and value.lower().endswith(KEYWORDS)) or (
        sep == "," and _are_items(name, value, text[match.end() : match.end() + 12])
    ):
        return  # Ed25519Key | X25519Key, ("pass", "fail")
    if sep == ">" and keyword in PASSWORDS:
        setting = text.startswith("</", match.end("bare")) and (
            value == value.lower() or _HAS_SIGN.search(value) is not None
        )
    if keyword == "key" and not prefix and _KEY_WORD_BEFORE.search(text, max(0, start - 20), start):
        prefix = "api_"
    if not _is_named(keyword, prefix):
        return
    if is_value(keyword, value, quoted=quoted, setting=setting):
        yield Hit(begin, begin + len(value), "secret", certain=False)
    if is_list:
        yield from _listed(text, match.end(), keyword)


def _listed(text: str, at: int, keyword: str) -> Iterator[Hit]:
    """Yields the values of a list after its first, which ends at `at`."""
    for _ in range(MAX_LISTED):
        match = _NEXT.match(text, at)
        if match is None:
            return
        at = match.end()
        if is_value(keyword, match["quoted"], quoted=True, setting=False):
            yield Hit(match.start("quoted"), at, "secret", certain=False)


def _are_items(name: str, value: str, after: str) -> bool:
    """Returns whether a name and its value are items of a list: `"pass", "fail"`.

    The value may also be the name of the next member: `"PASS", "key": …`.
    """
    if _MEMBER.match(after):
        return True
    is_word = value.isalpha() and not has_drawn_part(value)
    return is_word or (name.isupper() and value.isupper() and is_wordlike(value))


def _is_line_start(text: str, start: int) -> bool:
    return _LINE_BEFORE.search(text, max(0, start - 100), start) is not None


def _is_environment(is_tab: bool, text: str, start: int, prefix: str) -> bool:
    """Returns whether it is `DB_PASSWORD<tab>value`, as `env` and tables print variables."""
    return is_tab and prefix.isupper() and text[start : start + 2].isupper()


def _is_named(keyword: str, before: str) -> bool:
    """Returns whether the text before a keyword and the keyword together name a secret."""
    if keyword == "key" and _KEY_BEFORE.search(before.lower()) is None:
        return bool(_ENVIRONMENT.search(before)) and not _NO_KEY_BEFORE.search(before)
    if keyword in _NEVER_INSIDE_A_WORD and before and before[-1] not in "_-":
        return keyword in ("pass", "pw") and _INSIDE.search(before) is not None  # not bypass
    if keyword == "token" and before.endswith("Client"):
        return False  # AWS's names of requests, which are safe to repeat
    return keyword in (*PASSWORDS, "key") or _NOT_SECRET_BEFORE.search(before.lower()) is None
