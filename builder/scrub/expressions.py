"""Tells expressions of source code, also minified, from values: `password = form.password.data`."""

from __future__ import annotations

import re

from builder.scrub.values import is_wordlike

_CODE_NAME = re.compile(r"[A-Za-z_]\w*")
_ATTRIBUTE = re.compile(r"[:@]?[A-Za-z][A-Za-z:.-]*=")
"""The name of the next attribute: `v-model="newPassword" :rules="…"`."""
_CODE_AFTER = re.compile(r"(?:\??\.|::|->)?[\w.$?:]{0,60}[(\[]|\??\.[A-Za-z_]| [|+*-] \d")
"""The rest of a call, of an indexed value or of a sum."""
_EXPRESSION = re.compile(
    r"!![A-Za-z_$][\w$.]*|return\b.+|![A-Za-z_$][\w$]*\.[A-Za-z_$][\w$.]*|[\w$.]+\?\.[A-Za-z_$].*"
    r"|[\w$.]+(?:\.length\b|[!=]==).*|[a-z]+=\$\w+\.\w+|[\w$]+\?[\w$]+\.[\w$.]+:.*|[\w$]+:!?\w+\.env\b.*"
)
"""Code, minified or not: `!!e.password`, `t.tokens.length-1`, `creds?.password`."""
_BETWEEN = re.compile(r"[ ,;:?+=.)][^\s\"']*[\w$](?:[(=]|\.[A-Za-z]).*", re.DOTALL)
"""Code between two strings, which then seems to be one."""
_ESCAPED_LETTER = re.compile(r"\\{1,7}u(?!00[0-7])[0-9a-fA-F]{4}")
_NAMED_PASSWORD = re.compile(r"\w+_(?:pwd|pw|pass|passwd|password)")
_NUMBERED = re.compile(r"\w*(?:_(?:0\d|\d{3,})|(?<!iso)[a-z]\d{4,6})")


def is_code(match: re.Match[str], text: str, value: str, name: str) -> bool:
    """Returns whether a value is an expression of code.

    `match` is that of `builder.scrub.assignments.NAMED`, whose text follows `name`.
    """
    sep = match["sep"].strip()
    if match["quote"] is not None:
        if _ESCAPED_LETTER.match(text, match.end("quoted")):
            return True  # the label of a field in another language
        is_name = "_" in value and is_variable(value)
        if sep == "," and (value.startswith("--") or is_name or _is_name_like(value, name)):
            return True  # ["--disabled-password", "--group"], ("password1", "password2")
        if sep == "==" and value.isalpha() and value == value.lower():
            return True  # if self.update_password == "always"
        is_open = sep == ":" and text[match.start("sep") - 1] not in "\"'`"
        return (sep in (",", "") or is_open) and _BETWEEN.fullmatch(value) is not None
    end = match.end("bare")
    if _ATTRIBUTE.fullmatch(value) and text.startswith(('"', "'"), end):
        return True
    if value.startswith("=") or (sep == ">" and value[0] in "@:"):
        return True  # ===, <password>@host
    is_member = text[match.start("sep") - 1] in "\"'" and text.startswith((",", "}", ")"), end)
    if sep == "==" and is_variable(value):
        return True
    if sep == ":" and is_member and (is_variable(value) or _is_name_like(value, name)):
        return True
    if sep in ("=", ":", "=>", "==") and name != name.upper():
        if _EXPRESSION.fullmatch(value) or _CODE_AFTER.match(text, end):
            return True
        is_name = _CODE_NAME.fullmatch(value) is not None
        lower = value.lower()
        is_like = lower.endswith(name.lower()) or _NAMED_PASSWORD.fullmatch(lower) is not None
        return is_name and sep != ":" and is_like
    return False


def _is_name_like(value: str, name: str) -> bool:
    """Returns whether the value is a name that ends like the one before it."""
    last = re.split("[_-]", name.lower())[-1]
    return _CODE_NAME.fullmatch(value) is not None and value.lower().rstrip("12345").endswith(last)


def is_variable(value: str) -> bool:
    """Returns whether it is the name of a variable, not a value.

    Names are short or made of words.
    """
    if _CODE_NAME.fullmatch(value) is None or (len(value) > 12 and _NUMBERED.fullmatch(value)):
        return False
    return len(value) < 10 or is_wordlike(value)
