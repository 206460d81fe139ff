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

from builder.secrets import formats
from builder.secrets.between import (
    BARS,
    CLOSED,
    DESCRIBED,
    IN_ROW,
    LINE_BEFORE,
    NAMED,
    NEXT_VALUE,
    SIGN,
    TAB,
    VALUE,
    is_joined,
    sign_of,
)
from builder.secrets.expressions import is_code, is_variable
from builder.secrets.hits import Hit
from builder.secrets.named_values import is_value
from builder.secrets.names import (
    KEY_WORD_BEFORE,
    KEYWORD,
    KEYWORDS,
    NAME,
    SUFFIX,
    is_named,
    is_qualified,
    keyword_of,
)
from builder.secrets.passphrases import is_diceware
from builder.secrets.prefilter import LinePrefilter, Lines, ascii_lower, necessary
from builder.secrets.values import has_drawn_part, is_wordlike
from builder.secrets.words import PASSWORDS, WHOLE_NAMES

MAX_LISTED = 50
"""Values of a list that are examined."""
MIN_GAP = 3
"""Spaces between a variable and its value that align it with others."""
_BEFORE = re.compile(r"[\w-]{0,40}\Z")

_SIGNED = necessary(f"(?:{SUFFIX})?{CLOSED}(?:{SIGN}){VALUE}", ignore_case=True)
_SPACED = necessary(rf"{CLOSED}[ \t]{VALUE}", ignore_case=True)
_QUOTED = necessary(r"(?:\\{0,7}[\"'`])?[ \t]{1,24}\\{0,7}[\"'`][^\"'`\n\\]{4}", ignore_case=True)
_TABBED = necessary(rf"{CLOSED}{TAB}{VALUE}", ignore_case=True)
LINES = LinePrefilter(
    rf"(?:{NAME})"
    rf"(?:[sS]?{_SIGNED}|(?:{necessary(SUFFIX)})?{_SPACED}|{_TABBED}|{_QUOTED}|{formats.CONDITION})"
)
MAX_NAME = 400
"""Code points at the end of a member's name that are examined."""
MAX_NESTED = 20
"""Names that are examined within one value: a hostile text may repeat one endlessly."""

_AWS_SCOPE = re.compile(r"\w{4,40}(?:/|%2F)\d{8}(?:/|%2F)")
"""The beginning of the scope of a signature: `AKIAEXAMPLE/20240501/`."""
_MIXED = re.compile(r"(?=[^\d]{0,200}\d)[^/.:]{8,200}")
"""A text with a digit that is no path: `velvet32x`."""
_STATE_BEFORE = re.compile(
    r"(?:^|[_-])(?:update|change|reset|show|hide|has|is|use|usable|requires?|allow|disabled?|forgot|remember"
    r"|generate|without|ask)[_-]?$"
)
"""What makes a password the name of a setting about it: `update_`."""
_WHOSE = re.compile(r"\b(?:new|old|my|our|your|the|admin|root|temp|db) \Z", re.IGNORECASE)
"""Whose `pass` it is, before that word: `the root `."""
_IN_PROSE = re.compile(r"(?:\b(?:and|or|the|but|a|of)|,)[ \t]+\Z")
"""The text before the name of an option in a sentence: `use it with or `."""
MAX_SECTION = 1000
"""Code points before a setting in which the header of its section may be."""
_SECTION = re.compile(r"(?<!\w)\[[\w .:/-]{1,60}\]\s*$")
"""The header of a section of settings: `[client]`."""
_DOTENV = re.compile(r"(?:\d{1,6}[\t\u2192])?[A-Z][A-Z0-9_]{2,40}=[^\s;,()]*")
"""A line of a file of variables: `DB_HOST=db1`."""
_SETTING = re.compile(r"[ +-]{0,8}(?:\d{1,6}[\t\u2192])?(?:[#;].*|[\w .-]{1,60}=[^(]*|\s*)")
"""A line of a section of settings, a comment or an empty one: `host = db1`."""
_HAS_DIGIT = re.compile("[0-9]")
_METHOD = re.compile(r"(?:\.[A-Za-z_]\w{0,40}){1,4}\(")
"""The call of a method after a name: `.hex(`."""
_HAS_SIGN = re.compile(r"\d|[!@#$%^&*+=?~]")
_MEMBER = re.compile(r"\\{0,7}[\"'`][ \t]{0,2}:")
_IN_FILE = re.compile(r"\w:\d{1,6}:[\w-]{0,40}\Z")
"""A file and a line number, as grep prints them."""


def named_secret(name: str, value: str) -> bool:
    """Returns whether the name of a JSON member (`api_key`, `password`) makes its value secret."""
    keyword = keyword_of(name[-MAX_NAME:])
    return keyword is not None and is_value(keyword, value, quoted=True, setting=False)


def names_secret(name: str) -> bool:
    """Returns whether the name (of a column, say) alone says that its values are secrets."""
    return named_secret(name, "x9Kq2Vt7Lm4Rz8Wp")  # of a value that every such name makes secret


def find_named(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the values that a name marks as secret in lines of `LINES`, in order of their names.

    A value ends at the end of its line at the latest.
    """
    for start, end in lines:
        nested, examined = 0, 0
        for keyword in KEYWORD.finditer(ascii_lower(text[start:end])):
            begin = start + keyword.start()
            nested = nested + 1 if begin < examined else 0
            if nested > MAX_NESTED:
                continue
            yield from _formatted(text, begin, keyword[0])
            match = NAMED.match(text, start + keyword.end())
            if match is not None:
                examined = match.end()
            if match is not None and is_joined(match, text, begin):
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
    sep = sign_of(match)
    is_option, is_row = prefix.startswith("-"), sep in BARS
    if is_row and not IN_ROW.search(text, max(0, start - len(prefix) - 6), start - len(prefix)):
        return  # printf "$PASSWORD" | sha256sum | cut, HOME|PWD|PATH: no row of a table
    if sep.endswith(">") and text[match.start("sep") - 1] in "\"'":
        sep, opened = ">", "<"  # <string name="password">
    if (sep == ">" and opened != "<") or (
        sep == ":" and opened == ":" and not _IN_FILE.search(text, max(0, start - 60), start)
    ):
        return  # arn:…:secret:name
    quoted = match["quote"] is not None
    is_loose = sep == "(" or (
        not sep and not is_option and not _is_environment(match, text, start, prefix)
    )
    if (is_loose or match["plural"]) and not quoted:
        return  # a space suffices only after an option, a tab or more spaces after a variable
    is_list = "[" in text[match.end("sep") : match.end("sep") + 2]
    if (
        (is_list and not match["plural"])
        or (is_loose and keyword == "pass" and not (quoted and is_qualified(prefix)))
        or (not quoted and _METHOD.match(text, match.end("bare")))
    ):
        return  # "PASS_TO_PASS": ["test_2", …], to pass "--all=true", SecureRandom.hex(32)
    begin = match.start("quoted" if quoted else "bare")
    value = match["quoted"] if quoted else match["bare"].rstrip(".,:")
    if keyword == "pass" and not prefix and (not quoted or sep == ","):
        is_setting = text.startswith("pass", start) and (
            _is_line_start(text, start)
            or _WHOSE.search(text, max(0, start - 12), start) is not None
        )
        if quoted or not is_setting or not _is_mixed(value, sep):
            return  # PASS: test_2, ("pass", "arg1")
    if (is_loose and keyword in PASSWORDS and _is_plain(value)) or (
        not quoted and (match["bare"].endswith("...") or (is_option and value.startswith("-")))
    ):
        return  # form.password("confirm"), API_KEY=sk-ant-..., --passphrase --batch
    name = text[start - len(prefix) : start + len(keyword)]
    if is_code(match, text, value, name) or _AWS_SCOPE.match(value):
        return  # an access key's id and its signature are found by the key's own rule
    is_word = is_option and sep == "" and value.isalpha() and not quoted
    if is_word and _IN_PROSE.search(text[max(0, start - len(prefix) - 12) : start - len(prefix)]):
        return  # the option --password and others
    if keyword in PASSWORDS and value.isalpha() and _STATE_BEFORE.search(prefix.lower()):
        return
    is_spaced = text[match.start("sep") - 1] == " "
    is_name = not quoted and sep == "=" and is_spaced and is_variable(value)
    if is_name and not (_HAS_DIGIT.search(value) and _is_in_section(text, start - len(prefix))):
        return  # password = other1
    is_tight = sep == "=" and not is_spaced and begin == match.end("sep") + quoted
    setting = (
        (is_option and keyword not in WHOLE_NAMES)
        or ((is_tight or is_row) and name.upper() == name)
        or sep == DESCRIBED
    )
    if (
        not quoted
        and (sep == ":" or (is_tight and not setting))
        and (keyword in PASSWORDS or (keyword == "secret" and is_tight))
    ):
        ends_line = text[match.end("bare") : match.end("bare") + 1] in ("", "\n", "\r", "\\")
        before = LINE_BEFORE.search(text, max(0, start - 100), start) if ends_line else None
        at_margin = before is not None and before["indent"] == ""  # code would be indented
        setting = before is not None and (
            value == value.lower()
            or (is_tight and at_margin)
            or (name.isupper() and has_drawn_part(value))
        )
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
    if keyword == "key" and not prefix and KEY_WORD_BEFORE.search(text, max(0, start - 20), start):
        prefix = "api_"
    if not is_named(keyword, prefix):
        return
    if is_value(keyword, value, quoted=quoted, setting=setting):
        yield Hit(begin, begin + len(value), "secret", certain=False)
    if is_list:
        yield from _listed(text, match.end(), keyword)


def _formatted(text: str, start: int, keyword: str) -> Iterator[Hit]:
    """Yields the argument for a place in a format after a name, whose keyword begins at `start`."""
    found = formats.argument(text, start, start + len(keyword))
    if found is None:
        return
    before = _BEFORE.search(text, max(0, start - 40), start)
    prefix = before[0] if before is not None else ""
    value = text[found.start : found.end]
    if not is_named(keyword, prefix) or (keyword == "pass" and not is_qualified(prefix)):
        return
    if keyword in PASSWORDS and _is_plain(value):
        return  # "the password was %s", "changed"
    if is_value(keyword, value, quoted=True, setting=False):
        yield found


def _listed(text: str, at: int, keyword: str) -> Iterator[Hit]:
    """Yields the values of a list after its first, which ends at `at`."""
    for _ in range(MAX_LISTED):
        match = NEXT_VALUE.match(text, at)
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


def _is_plain(value: str) -> bool:
    """Returns whether the value may be a label."""
    return _HAS_SIGN.search(value) is None and not is_diceware(value)


def _is_mixed(value: str, sep: str) -> bool:
    """Returns whether the value is a password rather than the name of a test."""
    is_name = sep != "=" and "_" in value and is_wordlike(value)
    return (_MIXED.fullmatch(value) is not None and not is_name) or is_diceware(value)


def _is_line_start(text: str, start: int) -> bool:
    return LINE_BEFORE.search(text, max(0, start - 100), start) is not None


def _is_in_section(text: str, start: int) -> bool:
    """Returns whether the name at `start` is a setting of a section: `[db]` and settings above."""
    before = text[max(0, start - MAX_SECTION) : start].replace("\\r", "").replace("\\n", "\n")
    *lines, _ = before.split("\n")
    for line in reversed(lines):
        if _SECTION.search(line) or _DOTENV.fullmatch(line):
            return True
        if not _SETTING.fullmatch(line):
            return False
    return False


def _is_environment(match: re.Match[str], text: str, start: int, prefix: str) -> bool:
    """Returns whether it is `DB_PASSWORD<tab>value`, as `env` and tables print variables.

    PowerShell aligns the values with spaces.
    """
    if not prefix.isupper() or not text[start : start + 2].isupper():
        return False
    if match["tab"] or match["sep"] == "\t":
        return True
    gap = match[0][: match.start("bare") - match.start()] if match["bare"] else ""
    return len(gap) >= MIN_GAP and gap.isspace() and _is_line_start(text, start)
