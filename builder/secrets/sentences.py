"""Finds passwords in sentences: "the admin password on ci01 is …", "log in with me / …".

A sentence has a word for passwords or for logging in. The password follows it on the line: after a
verb or a sign, straight after the word, or after the name of a user. No syntax marks it, so it must
look like a password by itself (`builder.secrets.grade`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.secrets.grade import grade
from builder.secrets.hits import Hit
from builder.secrets.passphrases import is_simple
from builder.secrets.prefilter import LinePrefilter, Lines, Matches
from builder.secrets.words import (
    ACCOUNTS,
    COMPOUNDS,
    LOGINS,
    MACHINES,
    MORE_ACCOUNTS,
    REACHED,
    SENTENCE_KEYS,
    SENTENCE_PASSWORDS,
    TAKES,
)

REACH = 100
"""Maximum code points between the word and the password."""
NEXT_TO = 40
"""Code points before the password within which a verb or a sign ends."""

_ADDRESS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_WEAK = f"user(?:name)?|ssh|use|account|connect|{TAKES}|{MACHINES}|{_ADDRESS}"
"""Words after which only `me / …` counts, after a machine only for accounts that many have."""
_CONTRASENA = "contrase"
_WORDS = Matches(rf"{SENTENCE_PASSWORDS}|{LOGINS}|{SENTENCE_KEYS}|{_WEAK}|{ACCOUNTS}|{_CONTRASENA}")
_COMPOUND = re.compile(COMPOUNDS)
"""Words that languages write together with others: `passwort` in `Einmalpasswort`."""
_LOGIN_WORD = re.compile(rf"{LOGINS}|{_WEAK}|{ACCOUNTS}", re.IGNORECASE)
"""A word after which a user precedes the password: `credentials`."""
_KEY_WORD = re.compile(SENTENCE_KEYS, re.IGNORECASE)
"""A word after which only a value in backticks with a digit counts: `api key`."""
_WEAK_WORD = re.compile(_WEAK, re.IGNORECASE)
"""A word after which only `me / …` counts: `router`."""
_VERB = re.compile(TAKES, re.IGNORECASE)
"""A verb after which `me / …` counts if the sentence speaks of a machine: `accepts`."""
_MACHINE = re.compile(rf"{MACHINES}|{_ADDRESS}", re.IGNORECASE)
"""A machine that has accounts of its own: `10.0.0.7`."""
_OF_MACHINES = re.compile(
    rf"(?<![A-Za-z])(?:{MACHINES}|{REACHED})\d{{0,4}}(?![A-Za-z]|[ \t]?\()"
    rf"|{_ADDRESS}|[\w-]{{2,40}}\.[\w.-]{{1,60}}\.?[a-z]{{2}}",
    re.IGNORECASE,
)
"""A machine, its address, or how to reach one: `ssh`, `build.example.org`."""
_ACCOUNT = re.compile(
    rf"(?<![\w.@+-])(?:{ACCOUNTS}|{MORE_ACCOUNTS})[\"'`*)]{{0,3}}[ \t]/[ \t]", re.IGNORECASE
)
"""A user of a machine, before a password: `admin / `."""
_IS_ACCOUNT = re.compile(ACCOUNTS, re.IGNORECASE)
"""The name of a user that machines have: `root`."""
_OPENS = r"[ \t\"'`*\[|]"
_BETWEEN = r"[^\n;{}()=<>]"
_WORD_END = r"[^A-Za-z0-9_\n;{}()=<>-]"
_AND = "and|with|und|et|y|e|&"
LINES = LinePrefilter(
    "|".join((
        rf"(?i:{SENTENCE_PASSWORDS}|{_CONTRASENA})(?:[A-Za-z]{{0,4}}{_WORD_END}{_BETWEEN}*)?{_OPENS}[^\s\"'`|]{{8}}",
        rf"(?i:{LOGINS}){_WORD_END}{_BETWEEN}*(?:[/:]|[ \t](?i:{_AND})[ \t])",
        rf"(?i:{SENTENCE_KEYS}){_WORD_END}{_BETWEEN}*`[^\s\"'`|]{{8}}",
        rf"(?i:{_WEAK}){_WORD_END}{_BETWEEN}*[ \t]/[ \t]",
        rf"(?i:{ACCOUNTS})[\"'`*)]*[ \t]/[ \t]",
        rf"(?i:{TAKES})[ \t]+[\"'`*]*[A-Za-z0-9_.@+-]+[\"'`*]*(?:[ \t]:[ \t]|/[^ \t/]{{7}})",
    ))
)  # fmt: skip
"""Finds the lines with such a password."""

_REST = re.compile(rf"{_BETWEEN}{{0,{REACH}}}")
_TOKEN = re.compile(rf"(?<={_OPENS})(?!\*)[^\s\"'`|]{{8,80}}")
"""A text that may be a password: ` Canyon!7river`."""
_QUOTES = r"[ \t]{0,2}(?:\\{0,7}[\"'`*(\[]){0,3}$"
_LINK = re.compile(
    r"(?:(?<![a-z])(?:is|it's|its|was|be|to|as|type|typed|enter|use|try|says|ist|lautet|est|es|\u00e8|\u00e9|jest|je"
    r"|er|\u00e4r|este)"
    r"(?:[ \t](?:now|still|currently|just|simply|always|again|jetzt|noch|nun|maintenant|ahora))?"
    rf"|:|->|=>|\u2192|\u2014|-):?{_QUOTES}",
    re.IGNORECASE,
)
"""A verb or a sign before the password: ` is now "`."""
_STRAIGHT = re.compile(rf"[ \t]{{1,2}}(?:\\{{0,7}}[\"'`*(\[]){{0,3}}$|{_QUOTES}")
"""Only a space or quotation marks: ` "`."""
_INTRODUCED = re.compile(
    r"(?:with|and|using|use|the|my|our|new|old|typed|enter|wrong|right|,|\d|/|;"
    r"|(?:user(?:name)?|login)[ \t:]{1,3}[\w.@-]{2,40})[ \t]{1,2}$",
    re.IGNORECASE,
)
"""The text before a word that the password follows straight: `log in with `."""
_USER_NAME = (
    r"(?:^|[ \t])[\"'`*(]{0,3}(?!(?:use|used|along|together|in|on|up|out|back)[ \t])"
    r"[\w.@+\\-]{2,60}[\"'`*)]{0,3}"
)
_USER = re.compile(
    rf"{_USER_NAME}(?:[ \t]?[/:][ \t]?|[ \t](?:{_AND})[ \t]){_QUOTES}",
    re.IGNORECASE,
)
"""The name of a user before the password: ` me and `."""
_USER_SLASH = re.compile(rf"{_USER_NAME}[ \t]/[ \t]{_QUOTES}")
"""The name of a user and a slash before the password: ` me / `."""
_SLASH = re.compile(r"[\"'`*)]{0,3}[ \t]/[ \t]{1,2}(?:\\{0,7}[\"'`*(\[]){0,3}")
"""The text between an account and its password: `" / `."""
_USER_OF_MACHINE = re.compile(rf"{_USER_NAME}[ \t][/:][ \t]{_QUOTES}")
"""The name of a user before the password, after a verb: ` me : `."""
_PAIR = re.compile(r"[\w.@+-]{2,60}[:/](?=\S{8})")
"""The name of a user before the password, without spaces: `me:Canyon!7river`."""
_SIGNED_PAIR = re.compile(r"[\w.@+-]{2,60}/(?=[^\s/]{8})(?=\S{0,60}\d)(?=\S{0,60}[!#$%^*@~])")
"""The name of a user before a password with a digit and a sign, no path: `me/Canyon!7river`."""
_MAIL = re.compile(r"[\w.+-]{1,60}@[\w-]{1,60}\.[\w.-]{2,60}[\"'`*)]{0,3}[ \t]{1,2}/[ \t]\S{0,3}\Z")
"""The address of a user straight before the password: `me@example.org / `."""
_MIXED = re.compile(r"(?=.*\d.*\d)(?=.*[A-Za-z])[A-Za-z0-9]{8,64}")
"""Letters and two digits or more: `river4471`."""
_NOT_AFTER = re.compile(
    r"[ _-](?:polic|rule|strength|hash|format|length|manager|store|field|input|prompt|reset|generat"
    r"|hint|history|expir|check|valid|encod|encrypt|auth|rotat|min|max|column|screen|page"
    r"|types?\b(?![ \t][`'\"]))",
    re.IGNORECASE,
)
"""A noun that makes a password the attribute of another thing: ` policy`."""
_DIGIT = re.compile("[0-9]")
_NOUN_END = re.compile(r"[\"'`*)\]]{0,3}[ \t]{0,2}(?:[=\u2014-]|:(?!\w+:)|->|=>|(?:is|was)\b)")
"""The text after `pass` if it means a password: `: `."""
_QUALIFIED = re.compile(
    r"\b(?:the|my|our|your|this|that|new|old)[ \t][\w.-]{1,20}[ \t]$", re.IGNORECASE
)
"""The text before it: `the db `."""
_COMMIT = re.compile("[0-9a-f]{40}")
"""The hash of a commit, which nobody chooses as a password."""
_LINE_END = re.compile(r"\\{1,8}[nrt]")
_URL = re.compile(r"://|^/|^[\w.-]{1,60}/[\w./-]{1,60}$")
"""An address or a path: `src/main`."""


def find_in_sentences(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the passwords in sentences, in lines of `LINES`, in order of the words before them."""
    for line, line_end in lines:
        done = 0
        for start, end in _WORDS(text, line, line_end):
            if start < done or not _is_word(text, start, end):
                continue
            found = _after(text, start, end)
            if found is not None:
                done = found.end
                yield found


def _is_word(text: str, start: int, end: int) -> bool:
    """Returns whether it is a whole word: no part of a name, and no attribute of a thing."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before == "_" and text[start:end].isupper() and after in "`'\"":
        return True  # set `ADMIN_PASSWORD` to …
    if before == "-" and not text[start].isupper():
        return False  # but LUKS-Passphrase
    if before.isalnum() and not (before.islower() and _COMPOUND.fullmatch(text, start, end)):
        return False
    if before in ("_", ".", "/", "$"):
        return False
    if text[start:end].lower() == _CONTRASENA and after.isalpha():
        return True
    in_name = after in ("_", "/", "-") or (after == "." and text[end + 1 : end + 2].isalnum())
    return not after.isalnum() and not in_name and not _NOT_AFTER.match(text, end)


def _after(text: str, start: int, end: int) -> Hit | None:
    """Returns the password after the word at [start, end), or None."""
    rest = _REST.match(text, end)
    stop = rest.end() if rest is not None else end
    is_login = _LOGIN_WORD.fullmatch(text, start, end) is not None
    needs_quote = _KEY_WORD.fullmatch(text, start, end) is not None
    is_pass = text[start:end].lower() == "pass"
    if is_pass and not _is_noun(text, start, end):
        return None  # pass the :class:`~Context`
    for token in _TOKEN.finditer(text, end, stop + 60):
        if token.start() > stop:
            return None
        if needs_quote and (text[token.start() - 1] != "`" or not _DIGIT.search(token[0])):
            continue
        begins = _after_login if is_login else _after_name
        at = begins(text, start, end, token)
        if at is None:
            continue
        value = _trimmed(text[at : token.end()])
        if is_pass and not _DIGIT.search(value):
            continue  # and pass kind+how
        is_likely = (
            grade(value).is_secret
            or (is_simple(value) and not needs_quote)
            or (is_login and _MAIL.search(text, end, at) is not None and _MIXED.fullmatch(value))
        )
        if not _URL.search(token[0]) and is_likely and not _COMMIT.fullmatch(value):
            return Hit(at, at + len(value), "secret", certain=False)
    return None


def _is_noun(text: str, start: int, end: int) -> bool:
    """Returns whether the word at [start, end) is no verb, which takes an object."""
    return (
        _INTRODUCED.search(text, max(0, start - 60), start) is not None
        or _QUALIFIED.search(text, max(0, start - 60), start) is not None
        or _NOUN_END.match(text, end) is not None
    )


def _after_name(text: str, start: int, end: int, token: re.Match[str]) -> int | None:
    """Returns where a password begins in the token if a verb, a sign or the word introduces it."""
    between = text[end : token.start()]
    if _LINK.search(between[-NEXT_TO:]) is not None:
        return token.start()
    is_introduced = _INTRODUCED.search(text, max(0, start - 60), start) is not None
    return token.start() if is_introduced and _STRAIGHT.fullmatch(between) is not None else None


def _after_login(text: str, start: int, end: int, token: re.Match[str]) -> int | None:
    """Returns where a password begins in the token if the name of a user introduces it."""
    is_weak = _WEAK_WORD.fullmatch(text, start, end) is not None
    if _IS_ACCOUNT.fullmatch(text, start, end) is not None:
        is_next = _SLASH.fullmatch(text, end, token.start()) is not None
        return token.start() if is_next and _is_of_machine(text, start, token.end()) else None
    if is_weak and _VERB.fullmatch(text, start, end) is not None:
        return _after_verb(text, start, end, token)
    pair = None if is_weak else _PAIR.match(token[0])
    if pair is not None:
        return token.start() + pair.end()
    between = text[max(end, token.start() - 2 * NEXT_TO) : token.start()]
    named = (_USER_SLASH if is_weak else _USER).search(between)
    if _MACHINE.fullmatch(text, start, end) is not None and not _ACCOUNT.search(between):
        return None
    return token.start() if named is not None else None


def _is_of_machine(text: str, start: int, end: int) -> bool:
    """Returns whether the sentence around [start, end) speaks of a machine."""
    before = text[max(0, start - REACH) : start].rpartition("\n")[2]
    after = text[end : end + NEXT_TO].partition("\n")[0]
    return any(_OF_MACHINES.search(part) is not None for part in (before, after))


def _after_verb(text: str, start: int, end: int, token: re.Match[str]) -> int | None:
    """Returns the same after a verb, if its sentence speaks of a machine."""
    if not _is_of_machine(text, start, token.end()):
        return None
    between = text[end : token.start()]
    if (pair := _SIGNED_PAIR.match(token[0])) is not None and not between.strip(" \t\"'`*"):
        return token.start() + pair.end()
    return token.start() if _USER_OF_MACHINE.search(between) is not None else None


def _trimmed(token: str) -> str:
    """Returns the token without an escaped line end and punctuation of the sentence."""
    value = _LINE_END.split(token, 1)[0].rstrip(".,:;)]\\")
    return value.removesuffix("**").rstrip(".,:;)]\\")
