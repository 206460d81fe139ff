"""Tells expressions of source code, also minified, from values: `password = form.password.data`."""

from __future__ import annotations

import re

from builder.secrets.assigned import Assigned
from builder.secrets.passphrases import is_leet, is_titled
from builder.secrets.values import is_wordlike

_CODE_NAME = re.compile(r"[A-Za-z_]\w*")
_ATTRIBUTE = re.compile(r"[:@]?[A-Za-z][A-Za-z:.-]*=")
"""The name of the next attribute: `v-model="newPassword" :rules="…"`."""
_CODE_AFTER = re.compile(r"(?:\??\.|::|->)?[\w.$?:]{0,60}[(\[]|\??\.[A-Za-z_]| [|+*-] \d")
"""The rest of a call, of an indexed value or of a sum: `.get(`."""
_EXPRESSION = re.compile(
    r"!![A-Za-z_$][\w$.]*|return\b.+|![A-Za-z_$][\w$]*\.[A-Za-z_$][\w$.]*|[\w$.]+\?\.[A-Za-z_$].*"
    r"|[\w$.]+(?:\.length\b|[!=]==).*|[a-z]+=\$\w+\.\w+|[\w$]+\.[\w$.]+=[\w$.=]+|[\w$]+\?[\w$]+\.[\w$.]+:.*|[\w$]+:!?\w+\.env\b.*"
)
"""Code, minified or not: `!!e.password`, `t.tokens.length-1`, `creds?.password`."""
_BETWEEN = re.compile(
    r"[ ,;:?+=.)}][^\s\"']*[\w$](?:[(=]|\.[A-Za-z]).*|\+[\w$]+[\[(.].*", re.DOTALL
)
"""Code between two strings, which then seems to be one: `+user.id+x(`."""
_ESCAPED_LETTER = re.compile(r"\\{1,7}u(?!00[0-7])[0-9a-fA-F]{4}")
r"""An escape of a letter that is not ASCII: `\u00f1`."""
_NAME = re.compile(r"[\w-]+")
_NO_LETTER = re.compile("[^a-z0-9]")
_LOCALE = re.compile(r"[a-z]{2,3}[_-](?:[A-Z][a-z]{3}[_-])?PW")
"""A language in Palau: `en_PW`."""
_FAULT = re.compile(r"invalid|errcode|(?:^|_)err(?:or)?_", re.IGNORECASE)
"""Codes of errors: `ERRCODE_INVALID_PASSWORD`."""
_PATH = re.compile(r"\w+(?:::\w+)+")
_NULLABLE = re.compile(r"[A-Z][A-Za-z]*\?")
_TYPE = re.compile(r"(?:[A-Z][a-z]+){2,}[A-Z]{0,3}\d{0,4}")
"""The type of a member of an interface: `apiKey: SensitiveString2048;`."""
_OPTIONAL = re.compile(r"[\w$]+(?:\??\.[\w$]+)+\??")
"""An attribute, also of what may be missing: `form?.password`."""
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){2,}")
"""The name of a constant: `MAX_LOGIN_TRIES`."""
_CONDITION = re.compile(r" (?:&&|\|\||\?\?) ")
_DOTTED_NAME = re.compile(r"[A-Za-z_][\w.]*")
_LAST_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_LOGIN = re.compile("user|login|mail|auth|host|smtp|account", re.IGNORECASE)
"""What is near a real password: `smtp_user`."""
_MIXED = re.compile(r"[a-z]+_[A-Z][a-z]{2,}\d{2,}")
"""No style of names has such parts: `velvet_Dragon72`."""
_NAMED_PASSWORD = re.compile(r"\w+_(?:pwd|pw|pass|passwd|password)")
"""A variable for a password: `user_pwd`."""
_NUMBERED = re.compile(r"\w*(?:_(?:0\d|\d{3,})|(?<!iso)[a-z]\d{4,6}(?:_|_(?=\w{0,7}\d)\w{1,8})?)")
"""A name with a number of several digits, which no variable has: `river4471`."""


def is_code(it: Assigned) -> bool:
    """Returns whether a value is an expression of code."""
    name = it.name + it.match["plural"]
    value, named = (_NO_LETTER.sub("", part.lower()) for part in (it.value, name))
    if len(value) >= 6 and named.endswith(value) and _NAME.fullmatch(it.value):
        return True  # "bind-pw": "bindpw", DB_PASSWORD = "dbPassword"
    if _LOCALE.fullmatch(it.name) or _FAULT.search(it.name):
        return True
    return _is_code_in_quotes(it) if it.quoted else _is_bare_code(it)


def _is_code_in_quotes(it: Assigned) -> bool:
    value, name, sign = it.value, it.name, it.sign
    if _ESCAPED_LETTER.match(it.text, it.match.end("quoted")):
        return True  # the label of a field in another language
    is_name = "_" in value and is_variable(value)
    is_word = value.isalpha() and "PSK" in value
    is_mode = name.lower().endswith("psk") and (sign == "," or is_word)
    if is_mode or (
        sign == "," and (value.startswith("--") or is_name or _is_name_like(value, name))
    ):
        return True  # ["--disabled-password", "--group"], ("password1", "password2"), "psk", "open"
    if sign == "==" and value.isalpha() and value == value.lower():
        return True  # if self.update_password == "always"
    is_open = sign == ":" and it.before_sign not in "\"'`"
    start = it.name_start
    if sign == ":" and not is_open and it.text[start - 2 : start - 1] == "?":
        return True  # type ? "password" : "text"
    if is_open and name == "pass" and value.isalpha():
        return _LOGIN.search(it.text, max(0, start - 160), start) is None  # pass: "shadow"
    return (sign in (",", "") or is_open) and _BETWEEN.fullmatch(value) is not None


def _is_bare_code(it: Assigned) -> bool:
    value, name, sign, after = it.value, it.name, it.sign, it.after
    if _ATTRIBUTE.fullmatch(value) and after.startswith(('"', "'")):
        return True
    if value.startswith("=") or (sign == ">" and value.startswith(("@", ":"))):
        return True  # ===, <password>@host
    is_declared = sign == ":" and after[:2] in (";", ";\n", ";\r", ";\\")
    if _PATH.fullmatch(value) or (is_declared and _TYPE.fullmatch(value)):
        return True
    if sign == ":" and _NULLABLE.fullmatch(value):
        return True  # password: SecureString?
    is_member = it.before_sign in "\"'" and after.startswith((",", "}", ")"))
    if sign == "==" and (is_variable(value) or _OPTIONAL.fullmatch(value)):
        return True
    if sign == ":" and is_member and (is_variable(value) or _is_name_like(value, name)):
        return True
    is_spaced = sign == ":" or it.before_sign in " \t"
    if is_spaced and (_CONSTANT.fullmatch(value) or _is_name_of(value, name)):
        return True
    if sign not in ("=", ":", "=>", "==") or name == name.upper():
        return False
    if _EXPRESSION.fullmatch(value) or _CODE_AFTER.match(it.text, it.match.end("bare")):
        return True
    if sign == "=" and is_spaced and _CONDITION.match(after):
        return True
    is_name = _CODE_NAME.fullmatch(value) is not None
    is_attribute = it.text[it.name_start - 1 : it.name_start] == "."
    if is_name and sign == "=" and is_attribute and after.startswith("}"):
        return True  # this.password=value}
    lower = value.lower()
    is_like = lower.endswith(name.lower()) or _NAMED_PASSWORD.fullmatch(lower) is not None
    return is_name and sign != ":" and is_like


def _is_name_of(value: str, name: str) -> bool:
    """Returns whether it is a name that ends like a name of several words before it."""
    words, last = (re.sub("[_-]", "", part.lower()) for part in (value, name))
    has_words = "_" in name.strip("_") or name[1:] != name[1:].lower()
    return has_words and words.endswith(last) and _DOTTED_NAME.fullmatch(value) is not None


def _is_name_like(value: str, name: str) -> bool:
    """Returns whether the value is a name that ends like the one before it."""
    last = _LAST_PART.findall(name)[-1].lower()
    return _CODE_NAME.fullmatch(value) is not None and value.lower().rstrip("12345").endswith(last)


def is_variable(value: str) -> bool:
    """Returns whether it is the name of a variable, not a value.

    Names are short or made of words.
    """
    if is_leet(value) or is_titled(value, 2) or _MIXED.fullmatch(value):
        return False
    if _CODE_NAME.fullmatch(value) is None or (len(value) > 12 and _NUMBERED.fullmatch(value)):
        return False
    return len(value) < 10 or is_wordlike(value)
