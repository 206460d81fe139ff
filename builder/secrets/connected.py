r"""Finds values that words or a layout connect with the name of a secret.

"DB_PASSWORD should be …", "rotated api_key from … to …", `ENV TOKEN …`, `git config x.token …`; a
line that has a name and a value in two columns, or a line with a name before one with a value. No
syntax marks the value, so it must look like a secret by itself. Anywhere after a name, on its line
or as the whole next line, it must look like a chosen password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from builder.secrets.grade import grade
from builder.secrets.hits import Hit
from builder.secrets.names import KEY_WORD_BEFORE, KEYWORD, NAME, is_named, prefix_of
from builder.secrets.prefilter import LinePrefilter, Lines, ascii_lower
from builder.secrets.values import is_drawn, is_stand_in, is_wild, looks_random
from builder.secrets.words import NO_PASSWORD_AFTER, PASSWORDS

MAX_VALUE = 200
LOOK_BACK = 80
"""Code points before a name in which a verb or the start of its line may be."""

_NAME_END = r"[sS]?[\"'`*)]{0,3}"
_WORDS = (
    r"[ \t](?:should|must)(?: now)? be:?[ \t]|[ \t]?(?:->|[\u2192])[ \t]?|::[ \t]?|[ \t]\["
    r"|[ \t](?:for|on|in|of)[ \t][^\n:=]{1,40}:[ \t]|[ \t]from[ \t]"
)
"""What connects a name with its value in any text."""
_TO = r"[ \t]to:?[ \t]"
"""What connects a name with its value after a verb for changes."""
_GAP = r"[ \t]{1,40}|[,;]"
"""What connects a name with its value after a verb for settings, and between two columns."""
_BREAK = r":?[ \t]*\r?\n[ \t]*"
_OPENS = r"[\"'`*]{0,3}"
_VALUE = r"[^\s\"'`|<>,;(){}\[\]]"
_NEXT = re.compile(
    rf"{_NAME_END}(?:(?P<words>{_WORDS})|(?P<to>{_TO})|(?P<gap>{_GAP})|(?P<line>{_BREAK}))"
    rf"{_OPENS}(?P<value>(?=[^0-9]{{0,{MAX_VALUE}}}[0-9]){_VALUE}{{8,{MAX_VALUE}}})(?={_OPENS}(?:[\s|<>,;)\]\\]|$))"
)
"""The text after a name: ` should be k3J9sPq0`."""
_CHANGED = re.compile(rf"{_OPENS}[ \t]to[ \t]{_OPENS}(?P<value>{_VALUE}{{8,{MAX_VALUE}}})")
"""The text after a value that was replaced, with the new one: ` to k3J9sPq0`."""
REACH = 60
"""Code points after a name within which a password begins."""
MAX_TOKENS = 12
_REST = re.compile(rf"(?:[^\n;}}\\]|\\(?![nr])){{0,{REACH}}}")
"""The part of a line that is searched for a password: ` on ci01 is `."""
_FENCE = r"(?:\\{0,2}\r?\n[ \t]{0,40}(?:```\w{0,10}(?=\n))?){1,3}(?:[-*>][ \t]{1,3})?[\"'`*]{0,3}"
_ALONE = re.compile(rf"[\"'`*_)\]:]{{0,4}}[ \t]{{0,4}}{_FENCE}")
r"""The text between a name at the end of its line and the next line: `:\n`."""
_SPEAKER = r"(?:\[?\d[\d:. apm-]{3,24}\]?[ \t])?(?:<?@?[\w.-]{2,30}>?:[ \t]{1,2})?"
_ANNOUNCED = re.compile(rf"[ \t,.(][^\n;{{}}()=<>\"'`]{{0,80}}[:.!?][ \t]{{0,4}}{_FENCE}{_SPEAKER}")
r"""The text between a name in a sentence and the next line: ` for ci01 is:\n`."""
_TOKEN = re.compile(
    r"(?<=[\s\"'`(=:>/,|*])(?:[^\s\"'`<>,;(){}\[\]|\\%]|%(?![0-9A-Fa-f]{2})){8,64}+(?=[\s\"'`<>,;(){}\[\]|\\%]|$)"
)
"""A value without spaces, between such signs: ` Canyon!7river,`."""
_WILD = re.compile(r"(?<=[\s\"'`(=:>])[^\s\"'`\\]{8,64}+(?=[\s\"'`\\]|$)")
"""A value with any signs; that of a setting among others ends at the next: ` u3X(eAj}TZ@9 `."""
_NEXT_SETTING = re.compile(r"[;,&][A-Za-z][\w .-]{0,30}=")
"""The name of the setting after a value: `;User ID=`."""
_SIGN = re.compile(r"[!#$%^&*@~?+]")
_DIGITS = re.compile("[0-9]+")
_CODE = re.compile(
    r"=|\*\*|\*$|^\W|\+\+|\w#\d[\d.]*$|@v?\d|->|&&|%[0-9A-Fa-f]{2}|^[\w.]+\.[A-Z]\w*$|\?\?|:!|![01]$"
    r"|\?[\w.]+:|[+*^]\d$|^\d+[*+?]|^\de\d|&#|^\w*\$[a-z]\w*$|:#[0-9A-Fa-f]{3,8}$|\.[a-z]{1,4}#|[+]\d+\*\w|^\w+-\d+(?:\.\d+)+$|[a-z_]\w*\.\w+[!?]$"
    r"|@[A-Za-z]+$|^[0-9A-F]{40}$|^[MLHVCSQTAZmlhvcsqtaz\d.,+-]+$"
)
"""Code and references that would look like passwords: `uint64_t*`, `GH#42147`, `lodash@4.17.21`."""
_NUMBERED = re.compile(
    r"(?!test_|(?:sha|md|utf|base|aes|argon|bcrypt|pbkdf|oauth|rfc|ipv|http|port|u?int|char|varchar|test|type"
    r"|user|step|level|hash|rule|line|page|version)[a-z]*[-_.]?\d)"
    r"(?=[^-]{8}|.{12})[a-z]{4,16}(?:[-_.]?[a-z]{3,12}){0,4}[-_.]?\d{2,4}"
)
"""Words and a number, which is a password where only that can be: `velvetviolet32`."""
_ABOUT_SECRETS = re.compile("secret|passw|token|key|cred|auth", re.IGNORECASE)
"""Parts of the names of variables: `api_token`."""
_NAME_OF_CODE = re.compile(
    r"0{6}|^test_|[aA0]-[zZfF9]|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|UTF-\d|%[0-9A-Fa-f]{2}|^\w+[*^]\d$"
    r"|^@?[\w.-]*[.@-]\$S?\d|\$\w+\$\d|^#[0-9A-Fa-f]{6,8}$|^X(?:-\w+)+$|^\+|^\d\d?[A-Z][a-z]{2,8}\d{4}$|^v?\d+(?:\.\d+){1,3}[+-]\w"
    r"|^(?!.*\d\d)(?=(?:\D*\d){1,2}\D*$)[A-Za-z]\w*[A-Z][a-z]{3,}$"
)
"""What is no password in quotes either: a set of characters, a module, `os.environ`."""
_NOT_BETWEEN = re.compile(NO_PASSWORD_AFTER, re.IGNORECASE)
"""What says that the text after it is not the password: `commit `."""
LINES = LinePrefilter(rf"(?:{NAME})[sS]?[^A-Za-z0-9_]")
"""Finds the lines with such a name."""

_CHANGES = re.compile(
    r"\b(?:set|change|changed|update|updated|rotate|rotated|reset|switch|switched|replace|replaced)\b",
    re.IGNORECASE,
)
"""A verb for changes: `rotated`."""
_SETS = re.compile(
    r"(?:^|[\s;&|\"'`(:])(?:set|setenv|env|config|use|using|export|expected|php_value|put|insert)"
    r"[ \t]{1,4}(?:(?:-{1,2}[\w-]{1,20}|the|my|our|this|new)[ \t]{1,4}){0,2}[\w./:-]{0,60}\Z",
    re.IGNORECASE,
)
"""A verb for settings, before a name: ` export `."""
_LINE_START = re.compile(
    r"(?:^|\n)[ \t]*(?:\d{1,6}[\t\u2192])?[ \t>*\u2022+-]{0,12}[\w .-]{0,60}\Z"
)
r"""The beginning of a line up to a name: `\n- admin `."""
_SETTING_START = re.compile(r"(?:^|\n|\\n)[ \t]*(?:\d{1,6}[\t\u2192])?[ \t+-]{0,12}\Z")
r"""The beginning of the line of a setting with only a space before its value: `\n  `."""
_LINE_END = re.compile(rf"{_OPENS}[ \t]*(?:\r?\n|\Z)")
r"""The end of a line after a value: `"\n`."""


def find_connected(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the values that are connected with a name in lines of `LINES`."""
    for line, line_end in lines:
        for word in KEYWORD.finditer(ascii_lower(text[line:line_end])):
            start, end = line + word.start(), line + word.end()
            prefix = _prefix(text, start, word[0])
            if not is_named(word[0], prefix) or (word[0] == "pass" and not prefix):
                continue
            match = _NEXT.match(text, end)
            if match is not None and _is_connected(match, text, start - len(prefix)):
                yield from _after(match, text, word[0])
            is_part = text.startswith("::", start - len(prefix) - 2)  # AWS::IAM::AccessKey
            if not is_part and (stop := _name_end(text, end)) is not None:
                yield from _near(text, stop)
                if word[0] in PASSWORDS:
                    yield from _wild(text, stop, stop + REACH)


def _prefix(text: str, start: int, keyword: str) -> str:
    """Returns the text of a name before its final keyword, which begins at `start`."""
    prefix = prefix_of(text, start)
    if keyword == "key" and not prefix and KEY_WORD_BEFORE.search(text, max(0, start - 20), start):
        prefix = "api_"
    return prefix


def _name_end(text: str, end: int) -> int | None:
    """Returns where a name whose keyword ends at `end` ends; None if that is only a part of it."""
    end += text[end : end + 1] in ("s", "S")
    after = text[end : end + 1]
    return None if after.isalnum() or after in ("_", "-") else end  # passwords_file


def _near(text: str, end: int) -> Iterator[Hit]:
    """Yields the first password after a name, which ends at `end`."""
    alone = _ALONE.match(text, end)
    begin = alone.end() if alone is not None else end
    rest = _REST.match(text, begin)
    stop = rest.end() if rest is not None else begin
    if alone is None and (announced := _ANNOUNCED.match(text, end)) is not None:
        yield from _whole_line(text, announced.end())
    for token in islice(_TOKEN.finditer(text, begin, stop + MAX_VALUE), MAX_TOKENS):
        if token.start() > stop or (alone is not None and token.start() > begin):
            return
        value = _trimmed(token[0])
        if _is_password(value, text[token.start() - 1], text[token.end() : token.end() + 1]):
            if _NOT_BETWEEN.search(text, end, token.start()) is None:
                yield Hit(token.start(), token.start() + len(value), "secret", certain=False)
            return


def _trimmed(value: str) -> str:
    """Returns the value without punctuation that belongs to the sentence or the form around it."""
    return value.rstrip(".:&!?" if value[-2:-1] in ".:!?" else ".:&")


def _wild(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields the first value drawn from all signs in a part of the text, or of its next line."""
    line_end = text.find("\n", start, end)
    second = text.find("\n", line_end + 1, end) if line_end >= 0 else -1
    end = second if second >= 0 else end
    for token in islice(_WILD.finditer(text, start, end + MAX_VALUE), MAX_TOKENS):
        if token.start() > end:
            return
        value = _trimmed(_NEXT_SETTING.split(token[0])[0].rstrip(";,"))
        if _DIGITS.search(value) and is_wild(value) and not is_stand_in(value):
            yield Hit(token.start(), token.start() + len(value), "secret", certain=False)
            return


def _whole_line(text: str, start: int) -> Iterator[Hit]:
    """Yields the value that is all of a line, from `start` on."""
    token = _TOKEN.match(text, start)
    if token is not None and _LINE_END.match(text, token.end()) and _looks_secret(token[0]):
        yield Hit(start, token.end(), "secret", certain=False)


def _is_password(value: str, before: str, after: str) -> bool:
    """Returns whether a value between these characters looks like a password, not like code."""
    numbers = len(_DIGITS.findall(value))
    if not numbers or not grade(value).is_secret or _NAME_OF_CODE.search(value):
        return False
    if before in "\"'`" and after in (before, "\\"):
        return True
    if _CODE.search(value) or after == "(":
        return False
    return _SIGN.search(value) is not None or (
        value.isalnum()
        and not _ABOUT_SECRETS.search(value)
        and (numbers > 2 or (len(value) > 9 and is_drawn(value)))
    )


def _after(match: re.Match[str], text: str, keyword: str) -> Iterator[Hit]:
    """Yields the values after a name that are connected with it."""
    values = [match]
    if match["words"] is not None and match["words"].strip() == "from":
        values += filter(None, [_CHANGED.match(text, match.end("value"))])
    for one in values:
        value = _trimmed(one["value"])
        is_joined = match["gap"] or (match["words"] and match["words"].endswith((": ", ":")))
        is_numbered = keyword in PASSWORDS and is_joined and _NUMBERED.fullmatch(value)
        if is_numbered or _looks_secret(value, keyword):
            begin = one.start("value")
            yield Hit(begin, begin + len(value), "secret", certain=False)


def _is_connected(match: re.Match[str], text: str, start: int) -> bool:
    """Returns whether the text around a name, which begins at `start`, connects it with a value."""
    if match["words"] is not None:
        return True
    before = text[max(0, start - LOOK_BACK) : start]
    if match["to"] is not None:
        return _CHANGES.search(before[before.rfind("\n") + 1 :]) is not None
    if match["gap"] is not None and match["gap"] not in (",", ";") and _SETS.search(before):
        return True
    if _LINE_END.match(text, match.end("value")) is None:
        return False
    starts = _SETTING_START if match["gap"] == " " else _LINE_START
    return starts.search(text, max(0, start - LOOK_BACK), start) is not None


def _looks_secret(value: str, keyword: str = "password") -> bool:
    if is_stand_in(value) or _CODE.search(value) or _NAME_OF_CODE.search(value):
        return False
    return looks_random(value) or (keyword in PASSWORDS and grade(value).is_secret)
