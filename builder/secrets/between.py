# ruff: noqa: E501 - patterns
r"""Defines what may stand between the name of a secret and its value, and the value.

A sign (`=`, `: `, `=>`), other members of an object or a declaration (`variable "password" {`, `type`,
`default = …`), the next item of a list after an option (`"--password", "…"`), elements of XML, lines
of a table. `builder.secrets.assignments` judges what follows.
"""

from __future__ import annotations

import re

from builder.secrets.layout import EOL, NUMBER, WRAP
from builder.secrets.names import SUFFIX

_BARE = r"(?:[^\s\"'`<>\\;,&|(){}\[\]%]|&(?=\w{0,30}[!#$%^*@+~?])|%(?!2[267]))"
"""A character of an unquoted value; `&` is one if it cannot begin the next field of a form."""
CLOSED = r"(?: \([\w .-]{1,20}\))?(?:\\{0,7}[\"'`]|\*\*|&(?:quot|#34|#39|apos);|%2[27]|\\{1,4}u002[27])?(?:[\]}]|%5[dD])?[ \t]{0,24}"
_STRING = r"\\{0,7}\"[^\"\n\\]{0,300}\\{0,7}\"|\\{0,7}'[^'\n\\]{0,300}\\{0,7}'"
_GIVEN = (
    rf"(?:(?:{_STRING})[^,;\n\r{{}}\"'\\]{{0,60}}|\{{[^{{}}]{{0,400}}\}}|\[[^\[\]\n]{{0,200}}\]"
    r"|[^\s,;{}\"'\\\[](?:[^,;\n\r{}\\]|,(?=[ ]\w{1,20}[ ][^ \t:=])|,(?=[ ]\w{1,20}[.!?\r\n\\])){0,120})"
)
"""The value of a member, with nothing in it that also ends it."""
MEMBER = (
    rf"\\{{0,7}}[\"']?(?![\w./-]{{1,80}}[:-]\d{{1,6}}[:-])[\w$-]{{1,30}}\\{{0,7}}[\"']?[ \t]{{0,24}}(?:(?:=>|[:=])[ \t]{{0,4}}{_GIVEN}|\{{[^{{}}]{{0,400}}\}})"
    rf"(?:[,;]|(?=[\r\n]|\\{{1,4}}[nr])){WRAP}(?:(?:#|//)[^\r\n\\]{{0,200}}(?=[\r\n\\]){WRAP}){{0,3}}"
)
"""A member between those with the name and the value; its key is no place in a file."""
_PAIR = (
    rf"(?P<pair>(?:[,;:=]?[ \t]{{0,2}}\{{|[,;:])?{WRAP}(?:{MEMBER}){{0,8}}"
    r"\\{0,7}[\"']?(?:(?:Parameter|plaintext_)?[vV]alue|[dD]efault(?:Value)?)\\{0,7}[\"']?[ \t]{0,24}(?:=>|[:=]))"
    r"|(?:[ \t][\w-]{1,20}=\\{0,7}\"[^\"\n]{0,60}\"){1,3}[ \t]{1,4}value="
    rf"|</[\w:-]{{1,40}}>{WRAP}<[\w:-]{{1,40}}>"
)
"""The text between a name and its value in two members, attributes or elements."""
_ITEM = (
    rf"(?P<item>(?<=[\"']),{WRAP}(?=\\{{0,7}}[\"'])"
    rf"|\);?{WRAP}[\w.$>-]{{0,30}}(?:\.|->)(?:arg|addArg|appendArg|add|append|push)\((?=\\{{0,7}}[\"'])"
    rf"|(?P<row>{EOL}[+-]?(?:[ \t]|\\{{1,4}}t){{0,40}}-[ \t]{{1,4}}))"
)
"""The text between an option and its value in a list, or in two calls, that may be on two lines."""
_DESCRIBED = rf"(?P<described>:{EOL}-{{4}}(?:{EOL}){{1,2}})"
"""The text between a name and its value as `kubectl describe` prints them."""
_INSTEAD = r"(?:(?:\)[ \t]?)?(?:\|\||\?\?|\?:)|(?:\)[ \t]?|[ \t])or)(?=[ \t]{0,2}\\{0,7}[\"'`])"
"""The text between the name of a variable and the value that it has otherwise."""
_CALLED = (
    r"\)\.(?:to(?:Be|Equal|StrictEqual|Contain)|unwrap_or|or_else|orElse)\((?=\\{0,7}[\"'`])"
    r"|:[ ]?\\{0,7}[\"'],[ \t]?(?=\\{0,7}[\"'])|\{(?=\\{0,7}\")|\{[ \t]?get;[^}\n]{0,30}\}[ \t]?=|%3[aAdD]|\\{1,4}u003[aAdD]|[ \t][aA]s[ \t][sS]tring[ \t]?="
    r"|(?<=[\"'])(?:[ \t][\w:-]{1,30}=\\{0,7}[\"'][^\"'\n<>]{0,60}\\{0,7}[\"']){0,3}[ \t]?>(?=[^<>\s]{4,400}</)"
)
"""The text between a name and its value in a test, a format, a declaration, an element of XML."""
BARS = ("|", "\u2502", "\u2503", "\u2551")
"""Lines between the columns of a table."""
_BAR = r"[|\u2502\u2503\u2551]"
IN_ROW = re.compile(rf"(?<!\w){_BAR}[ \t`*]{{0,4}}\Z|{_BAR}[ \t`*]{{1,4}}\Z")
"""The text before the first cell of a pair, which no alternation of words has: `| `."""
SIGN = (
    rf":=|=>|[!=]?={{1,2}}|<-|(?:\|\||\?\??)=|{_PAIR}|{_INSTEAD}|{_CALLED}|{_DESCRIBED}|:|>(?:{WRAP}(?=[^<>\s]{{6,400}}\s{{0,40}}</))?|[ \t]is\b:?"
    rf"|(?<=[\"']),(?=[ \t]?\\{{0,7}}[\"'])|{_ITEM}"
    r"|\((?=[ \t]{0,2}\\{0,7}[\"'])"
    rf"|{_BAR}(?=[ \t]{{0,24}}`?[^\s|`\u2502\u2503\u2551]{{6,400}}`?[ \t]{{0,80}}{_BAR})"
)
VALUE = (
    r"(?:\*\*)?[ \t]{0,24}(?:&?(?:'static )?\w{1,20}(?:\[\w{1,20}(?: \| None)?\])? = |(?:[bBuUN@]|\[\]byte\(|\\{0,7}[\"']{2})(?=\\{0,7}[\"'])"
    r"|[\w.:]{0,30}(?:64decode|64_decode|decode64|decodestring|from_?hex|unhexlify|unhex|buffer\.from"
    r"|atob|SecretStr|String::from)\([bB]?(?=\\{0,7}[\"'])"
    r"|(?:&?(?:'static )?\w{1,20}(?:\[\w{1,20}(?: \| None)?\])? = )?(?:[\w.]{1,20}\.)?(?:[fF]ield|mapped_column|Column|Some|Ok|Just|[sS]tr|String"
    r"|Secret|SecretString|Ptr|ptr|of|from)\((?:(?:default|value|server_default)[ ]?=[ ]?)?(?=\\{0,7}[\"'])"
    rf"|{WRAP}string\(\d{{1,4}}\) (?=\\{{0,7}}\")"
    r"|[>|][+-]?(?:\n|\\{1,4}n)[ \t]{1,20}|[\w.$]{1,60} (?:\|\||\?\?|or) "
    rf"|(?<=[=:] )\({WRAP}(?=\\{{0,7}}[\"'])|&(?:quot|#34|#39|apos);|%2[27]|\\{{1,4}}u002[27]|\[{WRAP})?"
    r"(?:\\{0,7}(?P<quote>[\"'`])(?P<quoted>(?:[^\"'`\n\\]|\\{1,7}u00[2-7][0-9a-fA-F]){4,4000})"
    r"(?=\\{0,7}[\"'`]|\\|$)"
    rf"|(?P<bare>{_BARE}{{6,4000}})(?![\w(\[{{]))"
)
TAB = r"(?:\t|\\{1,4}t)"
"""A tab, which may be escaped."""
NAMED = re.compile(
    rf"(?P<plural>[sS]?)(?:{SUFFIX})?{CLOSED}"
    rf"(?P<sep>{SIGN}|[ \t]{{1,8}}(?=\S)|(?P<tab>{TAB})){VALUE}"
)
"""The text after a name: `: "value"`, `=value`, ` value` (after an option), `>value<`."""
NEXT_VALUE = re.compile(
    rf"\\{{0,7}}[\"'`]{WRAP},{WRAP}\\{{0,7}}[\"'`](?P<quoted>[^\"'`\n\\]{{4,4000}})(?=\\{{0,7}}[\"'`])"
)
"""The text after a value in a list, with the next value: `", "k3J9sPq0"`."""


_MEMBERS = re.compile(MEMBER)
"""A member of an object, with what ends it: `type: string,`."""
_NAMING = re.compile(
    r"(?<![A-Za-z])(?:\w{0,20}[nN]ame|[kK]ey|id)\\{0,7}[\"']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}\\{0,7}[\"']?[\w.-]{0,60}\Z"
)
"""The text up to a name that is itself the value of a member: `name: DB_PASSWORD`."""
LINE_BEFORE = re.compile(
    rf"(?:^|\n|\\n|\u2192|[\n ]{NUMBER})[+-]?(?P<indent>[ \t]*)(?:[+-][ \t]*)?[\w.-]{{0,60}}\Z"
)
"""The text of a line up to the keyword of a name: `  db_`."""
_LAST_LINE = re.compile(
    rf"(?:.*(?:\n|\\n))(?:[ \t]{{0,8}}{NUMBER})?[+-]?(?P<indent>[ \t]*)", re.DOTALL
)
r"""The lines before the last one, and its indentation: `x: 1\n  `."""
_OPTION = re.compile(
    r"(?:(?P<method>\w{1,40})\(\\{0,7}[\"']|(?<![\w-])|(?<=\\[nrt]))-{1,2}\w[\w-]{0,60}\Z"
)
"""An option in a list of arguments, or in the call of a method: `.arg("--password`."""
_CALLED_NEXT = re.compile(r"(\w{1,40})\(\Z")
"""The method of the second of two calls."""
_ROW = re.compile(
    r"(?:^|\n|\\[nt]|[\t\u2192 \"'+]|u2192)-[ \t]{1,4}\\{0,7}[\"']?-{1,2}\w[\w-]{0,60}\Z"
)
"""An option that is an item of a list in YAML: `- --password`."""
_ROW_END = re.compile(r"(?:\\{0,7}[\"'])?[ \t]{0,8}(?:#|\r?\n|\\{1,4}[nr]|[\"']|\Z)")
"""The end of an item: `" # comment`."""


DESCRIBED = "----"
"""The sign of values that `kubectl describe` prints."""
_COMPARED = {"===": "==", "!=": "==", "!==": "=="}
"""Operators, and the one that stands for them."""


def sign_of(match: re.Match[str]) -> str:
    """Returns the sign between a name and the value that `NAMED` found, or one that stands for it."""
    if match["tab"]:
        return ""
    if match["described"] or match["item"]:
        return DESCRIBED if match["described"] else ","
    return _COMPARED.get(match["sep"].strip(), match["sep"].strip())


def is_joined(match: re.Match[str], text: str, start: int) -> bool:
    """Returns whether a name and the value that `NAMED` found after it belong together.

    The final keyword of the name begins at `start`. Members of an object belong to a name that opens
    it, or that is the value of another member; items of a list, to an option before them.
    """
    if match["pair"] is not None:
        return _is_pair(match, text, start)
    if match["item"] is not None:
        before = text[max(0, start - 70) : match.start("plural")]
        if match["row"] is None:
            option, called = _OPTION.search(before), _CALLED_NEXT.search(match["item"])
            return option is not None and (called is None or called[1] == option["method"])
        return _ROW.search(before) is not None and _ends_line(match, text)
    return match["described"] is None or _ends_line(match, text)


def _ends_line(match: re.Match[str], text: str) -> bool:
    return _ROW_END.match(text, match.end()) is not None


def _is_pair(match: re.Match[str], text: str, start: int) -> bool:
    between = match["pair"].lstrip(" \t")
    if between[:1] == "{" or between[1:].lstrip(" \t")[:1] == "{":
        return True
    if between[:1] == ":":
        before = LINE_BEFORE.search(text, max(0, start - 100), start)
        last = _LAST_LINE.match(between)
        least = len(before["indent"]) if before is not None else 0
        return last is None or len(last["indent"]) > least
    if len(_MEMBERS.findall(between)) < 2:
        return True
    is_quoted = text[match.start("sep") - 1] in "\"'"
    return is_quoted or _NAMING.search(text, max(0, start - 120), start) is not None
