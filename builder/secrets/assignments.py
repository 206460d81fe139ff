"""Finds values that a name marks as secret: `api_key = "…"`, `"password": "…"`, `--token …`.

The name and its value may also be two members of one object (`name: API_TOKEN`, `value: …`), two
attributes or elements of XML, or the name of a function and its argument (`with_token("…")`).

A name ends with a keyword. After a keyword for passwords nearly any value counts; after one for
tokens and keys the value must look generated. Code (`password = get_password()`), variables and
words of documentation are not values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from builder.secrets import formats
from builder.secrets.assigned import Assigned
from builder.secrets.between import (
    CLOSED,
    DESCRIBED,
    IN_ROW,
    NAMED,
    NEXT_VALUE,
    SIGN,
    TAB,
    VALUE,
    is_joined,
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
    prefix_of,
)
from builder.secrets.passphrases import is_diceware
from builder.secrets.prefilter import LinePrefilter, Lines, ascii_lower, necessary
from builder.secrets.values import has_drawn_part, is_wordlike
from builder.secrets.words import PASSWORDS, WHOLE_NAMES

MAX_LISTED = 50
"""Values of a list that are examined."""

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
                yield from _assigned(Assigned(match, text, keyword[0], begin))


def _assigned(it: Assigned) -> Iterator[Hit]:
    """Yields the value after a name, if nothing says that it is none."""
    if any(is_none(it) for is_none in _NONE):
        return
    if is_value(it.keyword, it.value, quoted=it.quoted, setting=_is_setting(it)):
        yield Hit(it.begin, it.begin + len(it.value), "secret", certain=False)
    if it.is_list:
        yield from _listed(it.text, it.match.end(), it.keyword)


def _is_no_name(it: Assigned) -> bool:
    """`primary_key=…`, `next_page_token=…`, and `…:key` before something else than a value."""
    prefix = it.prefix
    if it.keyword == "key" and not prefix:
        is_key = KEY_WORD_BEFORE.search(it.text, max(0, it.start - 20), it.start) is not None
        prefix = "api_" if is_key else ""
    return not is_named(it.keyword, prefix)


def _is_default(it: Assigned) -> bool:
    """`${PASSWORD:?required}`."""
    return it.opened == "{" and it.sign == ":" and it.text[it.match.end("sep")] in "?+"


def _is_pipe(it: Assigned) -> bool:
    """`printf "$PASSWORD" | sha256sum | cut`, `HOME|PWD|PATH`: no row of a table."""
    if not it.is_row:
        return False
    is_cell = IN_ROW.search(it.text, max(0, it.name_start - 6), it.name_start) is not None
    return not is_cell or it.value.lower().endswith(KEYWORDS)  # Ed25519Key | X25519Key


def _is_part(it: Assigned) -> bool:
    """`arn:aws:secretsmanager:secret:name`, `a.password>b`."""
    if it.sep == ">":
        return it.opened != "<"
    is_within = it.sep == ":" and it.opened == ":"
    return is_within and not _IN_FILE.search(it.text, max(0, it.start - 60), it.start)


def _is_apart(it: Assigned) -> bool:
    """`the token expires`: a space suffices only after an option, or in a column of variables."""
    if it.is_loose and it.is_for_password and _is_plain(it.value):
        return True  # form.password("confirm")
    if it.is_loose and it.keyword == "pass" and not (it.quoted and is_qualified(it.prefix)):
        return True  # to pass "--all=true"
    return (it.is_loose or it.match["plural"] != "") and not it.quoted


def _is_collection(it: Assigned) -> bool:
    """`"PASS_TO_PASS": ["test_2", …]`."""
    return it.is_list and not it.match["plural"]


def _is_bare_part(it: Assigned) -> bool:
    """`SecureRandom.hex(32)`, `API_KEY=sk-ant-...`, `--passphrase --batch`."""
    return not it.quoted and (
        not it.value
        or _METHOD.match(it.text, it.match.end("bare")) is not None
        or it.match["bare"].endswith("...")
        or (it.is_option and it.value.startswith("-"))
    )


def _is_passing(it: Assigned) -> bool:
    """`PASS: test_2`, `("pass", "arg1")`."""
    if it.keyword != "pass" or it.prefix or (it.quoted and it.sep != ","):
        return False
    is_setting = it.text.startswith("pass", it.start) and (
        it.line_before is not None
        or _WHOSE.search(it.text, max(0, it.start - 12), it.start) is not None
    )
    return it.quoted or not is_setting or not _is_mixed(it.value, it.sep)


def _is_code(it: Assigned) -> bool:
    """`password = form.password.data`, and an access key's id, which has a rule of its own."""
    return is_code(it) or _AWS_SCOPE.match(it.value) is not None


def _is_prose(it: Assigned) -> bool:
    """`the option --password and others`, `update_password: always`, `password is changed`."""
    if not it.value.isalpha():
        return False
    before = it.text[max(0, it.name_start - 12) : it.name_start]
    is_word = it.is_option and not it.sep and not it.quoted
    is_state = it.sep.startswith("is") and not it.quoted and it.value == it.value.lower()
    return (
        is_state
        or (is_word and _IN_PROSE.search(before) is not None)
        or (it.is_for_password and _STATE_BEFORE.search(it.prefix.lower()) is not None)
    )


def _is_variable(it: Assigned) -> bool:
    """`password = other1`, which in a section of settings is a value."""
    if it.quoted or it.sep != "=" or not it.is_spaced or not is_variable(it.value):
        return False
    return not (_HAS_DIGIT.search(it.value) and _is_in_section(it.text, it.name_start))


def _are_items(it: Assigned) -> bool:
    """`"pass", "fail"`, and `"PASS", "key": …`, where the value is the name of the next member."""
    if it.sep != ",":
        return False
    end, value = it.match.end(), it.value
    is_word = value.isalpha() and not has_drawn_part(value)
    is_constant = it.name.isupper() and value.isupper() and is_wordlike(value)
    return is_word or is_constant or _MEMBER.match(it.text, end, end + 12) is not None


_NONE: tuple[Callable[[Assigned], bool], ...] = (
    _is_apart,
    _is_no_name,
    _is_default,
    _is_pipe,
    _is_part,
    _is_collection,
    _is_bare_part,
    _is_passing,
    _is_code,
    _is_prose,
    _is_variable,
    _are_items,
)
"""What says that the text after a name is no value, each with an example."""


def _is_setting(it: Assigned) -> bool:
    """Returns whether the value cannot be code: that of an option, of a line `DB_PASSWORD=…`."""
    if it.sep == ">" and it.is_for_password:
        is_likely = it.value == it.value.lower() or _HAS_SIGN.search(it.value) is not None
        return it.text.startswith("</", it.match.end("bare")) and is_likely
    setting = (
        (it.is_option and it.keyword not in WHOLE_NAMES)
        or ((it.is_tight or it.is_row) and it.name.upper() == it.name)
        or it.sep == DESCRIBED
    )
    is_line = not it.quoted and (it.sep == ":" or (it.is_tight and not setting))
    if not is_line or not (it.is_for_password or (it.keyword == "secret" and it.is_tight)):
        return setting
    before = it.line_before if it.ends_line else None
    return before is not None and (
        it.value == it.value.lower()
        or (it.is_tight and before["indent"] == "")  # code would be indented
        or (it.name.isupper() and has_drawn_part(it.value))
    )


def _formatted(text: str, start: int, keyword: str) -> Iterator[Hit]:
    """Yields the argument for a place in a format after a name, whose keyword begins at `start`."""
    found = formats.argument(text, start, start + len(keyword))
    if found is None:
        return
    prefix, value = prefix_of(text, start), text[found.start : found.end]
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


def _is_plain(value: str) -> bool:
    """Returns whether the value may be a label."""
    return _HAS_SIGN.search(value) is None and not is_diceware(value)


def _is_mixed(value: str, sep: str) -> bool:
    """Returns whether the value is a password rather than the name of a test."""
    is_name = sep != "=" and "_" in value and is_wordlike(value)
    return (_MIXED.fullmatch(value) is not None and not is_name) or is_diceware(value)


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
