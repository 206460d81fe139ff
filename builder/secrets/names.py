r"""Finds values that a name marks as secret: `api_key = "…"`, `"password": "…"`, `--token …`.

After the name of a password nearly any value counts, after that of a token or a key a random one.
Variables, types, other expressions of code and words of documentation are none. The words are in
contexts.toml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from builder.secrets.grade import (
    LOOKED_AT,
    SIGN,
    is_code,
    is_name,
    is_password,
    is_random,
    is_stand_in,
)
from builder.secrets.hits import Hit
from builder.secrets.tables import NAMES

PASSWORDS = tuple(NAMES["passwords"].split())
TOKENS = tuple(NAMES["tokens"].split())
KEYWORDS = (*PASSWORDS, *TOKENS, "key")
"""The last parts of names that the engine looks for."""
_WHOLE = frozenset(NAMES["whole"].split())
_OWNED = re.compile(rf"(?:^|[^a-z])(?:{NAMES['owners']})[_ .-]?$", re.IGNORECASE)
_CAMEL_OWNED = re.compile(rf"(?:{NAMES['owners'].title()})$")
_OPEN = re.compile(rf"(?:{NAMES['open']})[_ -]?$", re.IGNORECASE)
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]{1,39}_$")
_STATE = re.compile(rf"(?:{NAMES['state']})[_-]?$", re.IGNORECASE)
_SUFFIX = rf"(?:[_-]?(?:{NAMES['suffix']})|__)"
_NAME_SUFFIX = re.compile(rf"(?<=[a-z])(?:{_SUFFIX}|s)$", re.IGNORECASE)

_WS = r"(?:\s|\\{1,4}[nrt]){0,60}"
_CHAR = r"[^\s\"'`<>\\;,|(){}\[\]&]"
_AND = r"&(?!\w{1,30}=)"
_QUOTE = r"\\{0,7}[\"'`]"
_GIVEN = (
    r"(?:&?(?:'static )?\w{1,20}(?:\[\w{0,20}\])? = |[bBrRuUN@](?=[\"'])"
    r"|(?:[\w.]{1,20}\.)?(?:SecretStr|Secret|SecretString|Some|String::from|str|Field|Ptr|from|of"
    r"|\w{0,12}64decode|atob|\[\]byte)\((?:default=)?|\[)?(?=\\{0,7}[\"'`])"
)
"""A type or a call around a quoted value: `str = "…"`, `SecretStr("…")`."""
_MEMBER = (
    rf"(?:{_QUOTE}?\w{{1,30}}{_QUOTE}?[ \t]{{0,4}}[:=][ \t]{{0,4}}[^,\n{{}}]{{1,100}}"
    rf"(?:,|\n){_WS}){{0,4}}"
)
_SIGNS = (
    r":=|=>|[!=]==?|:(?:[ ]?[>|]-?(?:\n|\\n)[ ]{1,20})?|=|<-|\|\||\?\?|%3d|>|\|"
    r"|[ ](?:is|was)\b:?"
)
_NAMED = re.compile(
    rf"(?P<plural>s?){_SUFFIX}?(?P<close>{_QUOTE}|\*\*|&quot;|%22)?[\])]?"
    rf"(?:[ \t]{{0,24}}(?P<sep>{_SIGNS})(?:\*\*)?[ \t]{{0,24}}(?:{_GIVEN})?"
    rf"|(?P<pair>[,;:]?[ \t]{{0,2}}\{{?{_WS}{_MEMBER}{_QUOTE}?(?:value|default(?:value)?)"
    rf"{_QUOTE}?[ \t]{{0,8}}(?:=>|[:=])[ \t]{{0,4}}|</key>{_WS}<string>)"
    rf"|(?P<next>(?<=[\"'`]),{_WS}(?=\\{{0,7}}[\"'`])|\((?={_QUOTE})|(?:[ \t]{{1,24}}|\t|\\t)))"
    rf"(?:(?P<q>\\{{0,7}}(?P<m>[\"'`]))"
    rf"(?P<quoted>(?:(?!(?P=m))[^\n\r\\]|\\(?=[^nrt\\\"'`])){{3,400}})(?P<ends>(?P=q))?"
    rf"|(?=(?:{_CHAR}|{_AND}){{3}})(?P<bare>{_CHAR}{{0,4000}}+(?:{_AND}{_CHAR}{{0,200}}+){{0,20}}))",
    re.IGNORECASE,
)
"""The text after a name, up to the end of its value."""
_PREFIX = re.compile(r"[\w.-]{0,40}\Z")
_NAMING = re.compile(
    r"(?:\b(?:name|key|variable|env|id|Name|Key)(?:\\{0,7}[\"'])?[ \t]{0,4}[:=]?[ \t]{0,4}"
    r"(?:\\{0,7}[\"'])?|<key>)\Z"
)
_LINE_START = re.compile(
    r"(?:\A|\n|\\n|\u2192|\d\t|\\t)[+ \t-]{0,40}"
    r"(?:(?:export|set|ENV|-e|\$env:)[ \t]|[#$>] )?[\"']?\Z"
)
_CODE_AFTER = re.compile(r"[(\[{]|\??\.[A-Za-z_]|::|->|[ ](?:\|\||&&|\?\?|\+|= |if |or |and )")
_ENDS = re.compile(r"(?:\\{1,7}[nrt\"']|[\s\"'`&<,;)}\]|]|\Z)")
_LINE_END = re.compile(r"[ \t]{0,8}(?:#|\r?\n|\\{1,4}[nr]|\\{0,7}[\"'`]|\Z)")
_NO_LETTER = re.compile("[^a-z0-9]")
_SIGNED = re.compile(r"(?=.*\d)(?=.*[A-Za-z])(?=.*[!@#$%^&*+=?~])[^\s/:.]{8,64}")


@lru_cache(maxsize=1 << 12)  # a dataset has few names, but many members
def kind_of(prefix: str, keyword: str) -> str | None:
    """Returns whether the text before a keyword and it name a `password`, a `token` or neither."""
    if keyword == "key":
        is_secret = (
            _OWNED.search(prefix) or _CAMEL_OWNED.search(prefix) or _ENVIRONMENT.search(prefix)
        )
        return "token" if is_secret and not _OPEN.search(prefix) else None
    if keyword in _WHOLE and prefix and prefix[-1] not in "_-.":
        return "password" if keyword in ("pass", "pw") and _OWNED.search(prefix) else None
    if keyword in PASSWORDS:
        return None if _STATE.search(prefix) else "password"
    return None if _OPEN.search(prefix) or prefix.endswith("Client") else "token"


@lru_cache(maxsize=1 << 12)
def _kind_of_name(name: str) -> tuple[str, str] | None:
    """Returns (kind, keyword) of the name of a member, None if it names no secret."""
    if not name.isascii():
        return None
    name = _NAME_SUFFIX.sub("", name[-400:])
    lower = name.lower()
    keyword = max((word for word in KEYWORDS if lower.endswith(word)), key=len, default=None)
    if keyword is None or (kind := kind_of(name[: -len(keyword)], keyword)) is None:
        return None
    return kind, keyword


def named_secret(name: str, value: str) -> bool:
    """Returns whether the name of a JSON member (`api_key`, `password`) makes its value secret."""
    found = _kind_of_name(name)
    return found is not None and _is_secret(*found, value, quoted=True, setting=True)


def _is_secret(kind: str, keyword: str, value: str, *, quoted: bool, setting: bool) -> bool:
    if kind == "password":
        return is_password(value, quoted=quoted, setting=setting)
    if is_stand_in(value) or " " in value or is_code(value):
        return False
    is_signed = keyword in ("secret", "token") and (quoted or setting)
    return is_random(value) or (is_signed and _SIGNED.fullmatch(value) is not None)


@dataclass(slots=True)
class _Place:
    """A name at [start, end) in a text, its prefix, and the match after it."""

    text: str
    start: int
    prefix: str
    keyword: str
    match: re.Match[str]

    @property
    def begin(self) -> int:
        """Where the name begins."""
        return self.start - len(self.prefix)

    @property
    def name(self) -> str:
        """The name up to its last part."""
        return self.text[self.begin : self.start + len(self.keyword)]

    @property
    def opened(self) -> str:
        """The character before the name."""
        return self.text[self.begin - 1 : self.begin]


def find_named(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields the value of the name whose last part is at [start, end), if it is a secret."""
    same = slice(max(0, start - 1 - (end - start)), max(0, start - 1))
    is_nested = text[start - 1 : start] in ("=", ":") and text[same] == text[start:end]
    match = None if is_nested else _NAMED.match(text, end)  # token=token=…
    if match is None:
        return
    before = _PREFIX.search(text, max(0, start - 40), start)
    prefix = before[0] if before is not None else ""
    if prefix[:1] in ("n", "r", "t") and text[start - len(prefix) - 1] == "\\":
        prefix = prefix[1:]
    keyword = text[start:end].lower()
    owner = prefix or text[max(0, start - 16) : start]  # `API key: …`
    kind = kind_of(owner if keyword == "key" else prefix, keyword)
    if kind is None:
        return
    place = _Place(text, start, prefix, keyword, match)
    quoted = match["quoted"] is not None
    value = match["quoted"] if quoted else match["bare"].rstrip(".,:")
    if not quoted and (match["sep"] == "%3D" or place.opened in ("?", "&")):
        value = re.split("&|%26", value)[0]  # the next field of a query
    begin = match.start("quoted" if quoted else "bare")
    setting = _is_setting(place)
    if _is_none(place, value, quoted=quoted, setting=setting):
        return
    if _is_secret(kind, keyword, value, quoted=quoted, setting=setting):
        yield Hit(begin, begin + len(value), "secret", certain=False)


def _is_setting(it: _Place) -> bool:
    """Returns whether name and value cannot be code: of JSON, an environment, an option."""
    match, sep = it.match, (it.match["sep"] or "").strip()[:2]
    if match["pair"] or it.prefix.startswith("-") or it.opened in ("<", "?", "&"):
        return True
    if match["quoted"]:
        return (bool(match["close"]) and sep in (":", "=>")) or it.name.isupper()
    end = match.end("bare")
    is_line = _LINE_START.search(it.text, max(0, it.begin - 50), it.begin) is not None
    if sep == "=" and match.end("sep") == match.start("bare"):
        return (it.name.isupper() or is_line) and _ENDS.match(it.text, end) is not None
    begin = match["bare"][:LOOKED_AT]
    has_number = sum(map(str.isdigit, begin)) > 1 and "." not in begin
    is_alone = is_line and _LINE_END.match(it.text, end) is not None
    return is_alone and sep in (":", "=") and has_number


def _is_none(it: _Place, value: str, *, quoted: bool, setting: bool) -> bool:
    """Returns whether something around name and value says that it is no secret."""
    match, text = it.match, it.text
    sep = (match["sep"] or "").strip().lower()
    name = _NO_LETTER.sub("", text[it.begin : match.start("plural")].lower())
    same = _NO_LETTER.sub("", value.lower()) if len(value) <= LOOKED_AT else ""
    stem = same.rstrip("0123456789")
    is_numbered = quoted and setting and stem != same
    if (stem.endswith(it.keyword) and not is_numbered) or (len(same) > 3 and name.endswith(same)):
        return True  # password = dbPassword
    if sep == ">" and ((it.opened != "<" and not match["close"]) or value[0] in "@:"):
        return True  # a.password>b, <password>@host
    if sep == "|" and not _is_cell(it):
        return True
    if sep == ":" and (it.opened == ":" or (it.opened == "{" and value[0] in "?-+")):
        return True  # arn:aws:…:secret:name, ${PASSWORD:?required}
    if it.keyword == "pass" and not it.prefix and not setting and not (quoted and match["close"]):
        return True  # PASS: test_2
    if match["pair"] is not None and _NAMING.search(text, max(0, it.begin - 40), it.begin) is None:
        return True
    if match["next"] is not None and not _is_next(it, value, quoted=quoted):
        return True
    if sep in ("is", "was", "is:", "was:", "|", "||", "??") and value.isalpha():
        return True
    if quoted:
        return match["ends"] is None or (sep == "==" and value.isalpha())
    if _CODE_AFTER.match(text, match.end("bare")) or match["bare"].endswith("..."):
        return True
    is_compared = sep in ("==", "===", "!=", "!==", "||", "??")
    is_declared = sep == ":" and text.startswith(";", match.end("bare"))
    is_variable = is_name(value) and (is_declared or not is_random(value))
    return not setting and (is_compared or is_variable)


def _is_cell(it: _Place) -> bool:
    """Returns whether name and value are cells of a table drawn with lines."""
    before = it.text[max(0, it.begin - 8) : it.begin].rstrip(" `*")
    after = it.text[it.match.end() : it.match.end() + 80].lstrip(" `")
    return before.endswith("|") and after.startswith("|")


def _is_next(it: _Place, value: str, *, quoted: bool) -> bool:
    """Returns whether a space, a comma or a bracket suffices between the name and its value."""
    gap = it.match["next"]
    if it.prefix.startswith("-"):
        is_word = value.islower() and value.isalpha() and len(value) < 12
        return quoted or not (is_word or value.startswith(("-", "<", "$")))
    if gap[0] in ",(":
        return quoted and (is_random(value) or SIGN.search(value) is not None)
    if quoted:
        return not value.isalpha() and " " not in value
    is_column = "\t" in gap or "\\t" in gap or len(gap) > 2
    return is_column and it.name.isupper()
