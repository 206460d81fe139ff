"""Finds secrets in decoded text: by their own form, by their surroundings, and by their name.

- form or surroundings: the tables `builder.scrub.token_rules` and `builder.scrub.context_rules`
- a word for secrets nearby, and a value that looks generated: `builder.scrub.nearby`
- a name: `builder.scrub.assignments`, and as the header of a column `builder.scrub.columns`
- a block that contains secrets: `builder.scrub.blocks`
- a private key in PEM, complete or cut off
- base64 of a text that contains one of these: `builder.scrub.encoded`
- any of these in JSON that escapes what is not ASCII: `builder.scrub.unescaped`

The search takes linear time, since every repetition is bounded. Our own placeholders are never
secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from builder.scrub import assignments, blocks, columns, encoded, nearby, sentences
from builder.scrub.assignments import find_named, may_name
from builder.scrub.blocks import find_in_blocks
from builder.scrub.columns import find_in_columns
from builder.scrub.command_rules import COMMAND_RULES
from builder.scrub.config_rules import CONFIG_RULES
from builder.scrub.context_rules import CONTEXT_RULES
from builder.scrub.dump_rules import DUMP_RULES
from builder.scrub.encoded import find_encoded
from builder.scrub.escapes import outside_escapes
from builder.scrub.hits import Hit, apart, found_in, remembering
from builder.scrub.nearby import find_nearby
from builder.scrub.prefilter import (
    LinePrefilter,
    LiteralPrefilter,
    ascii_lower,
    necessary,
    projected,
)
from builder.scrub.prose_rules import OTHER_SCRIPT_RULES, PROSE_RULES
from builder.scrub.sentences import find_in_sentences
from builder.scrub.token_rules import TOKEN_RULES
from builder.scrub.unescaped import unescaped
from builder.scrub.values import entropy, looks_random

MARK = "REDACTED_"
"""The prefix of every placeholder."""

RULES = (
    *TOKEN_RULES,
    *CONTEXT_RULES,
    *CONFIG_RULES,
    *COMMAND_RULES,
    *DUMP_RULES,
    *PROSE_RULES,
)
"""The rules of all tables."""

KINDS = tuple(sorted({rule.kind for rule in RULES} | {"secret", "aws_secret_key", "private_key"}))
"""All kinds that a hit can have."""

_RULES_IN = LiteralPrefilter((*rule.gate, rule) for rule in RULES)
_OTHER_SCRIPTS = LinePrefilter(
    "|".join(sorted({
        re.sub(r"(?:\\\?){2,}", r"\\?\\?", re.escape(projected(word).decode()))
        for rule in OTHER_SCRIPT_RULES
        for word in rule.prefilter
    }))
)  # fmt: skip
"""A pattern that matches in every text with a word of `OTHER_SCRIPT_RULES`, as RE2 sees it."""

_PEM = re.compile(r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"(?:[A-Za-z0-9+/=:,\s-]|\\{1,4}[nr])*")
_RARE = LinePrefilter(
    "|".join(
        (
            necessary(_PEM.pattern),
            *(module.CONDITION for module in (columns, blocks, encoded, nearby, sentences)),
        )
    )
)
"""A pattern that matches in every text in which `_rare` or `find_encoded` finds something."""
MAX_PEM = 20_000
"""Maximum code points of a private key, with everything a viewer put between its lines."""


@remembering
def find_secrets(text: str) -> tuple[Hit, ...]:
    """Returns the secrets in a decoded text, in order, none overlapping."""
    hits = apart(outside_escapes(text, _all(text)))
    return tuple(hit for hit in hits if MARK not in text[hit.start : hit.end])


def secrets_in(texts: Sequence[str]) -> list[tuple[Hit, ...]]:
    """Returns the secrets in each of some texts."""
    return found_in(texts, find_secrets, _may_hold)


def named_secret(name: str, value: str) -> bool:
    """Returns whether the name of a JSON member (`api_key`, `password`) makes its value secret."""
    return MARK not in value and assignments.named_secret(name, value)


def _may_hold(text: str) -> bool:
    read = unescaped(text)
    return _may_hold_as_written(text) or (read is not None and _may_hold_as_written(read.text))


def _may_hold_as_written(text: str) -> bool:
    if not text.isascii() and _OTHER_SCRIPTS.holds(text):
        return True
    return bool(_RULES_IN(text)) or _RARE.holds(text) or may_name(text)


def _all(text: str) -> Iterator[Hit]:
    """Yields all hits, unordered."""
    read = unescaped(text)
    if read is None:
        yield from _as_written(text)
    else:
        yield from read.whole(_as_written(text))
        yield from read.original(_as_written(read.text))


def _as_written(text: str) -> Iterator[Hit]:
    """Yields the hits in the text as it is, unordered."""
    yield from _plain(text)
    if _RARE.holds(text):
        yield from _rare(text)
        yield from find_encoded(text, _find_decoded)


def _find_decoded(text: str) -> tuple[Hit, ...]:
    return apart([*_plain(text), *_rare(text)])


def _rare(text: str) -> Iterator[Hit]:
    """Yields the hits of everything but rules and names, unordered."""
    yield from _pems(text)
    for find in (find_in_columns, find_in_blocks, find_nearby, find_in_sentences):
        yield from find(text)


def _plain(text: str) -> Iterator[Hit]:
    """Yields the hits of rules and names, unordered."""
    rules = _RULES_IN(text)
    lower = ascii_lower(text) if any(not rule.token for rule in rules) else ""
    for rule in rules:
        for hit in rule.find(text, text if rule.token else lower):
            yield hit
            if hit.kind == "aws_access_key":
                yield from _aws_secrets(text, hit.start, hit.end)
    if not text.isascii() and _OTHER_SCRIPTS.holds(text):
        for rule in OTHER_SCRIPT_RULES:
            yield from rule.find(text, text)
    yield from find_named(text)


_AWS_SECRET = re.compile(r"(?:(?<![A-Za-z0-9+/=])|(?<=\\[nrt]))[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")


def _aws_secrets(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields secret keys without a name within 200 code points of an access key."""
    for match in _AWS_SECRET.finditer(text, max(0, start - 200), end + 240):
        key = match[0]
        if not key.islower() and not key.isupper() and entropy(key) > 4:
            yield Hit(match.start(), match.end(), "aws_secret_key", certain=False)


def _pems(text: str) -> Iterator[Hit]:
    at = 0
    while begin := _PEM.search(text, at):
        end = _PEM_END.search(text, begin.end(), begin.end() + MAX_PEM)
        if end is not None:
            at = end.end()
        else:  # cut off when it was displayed: as far as it looks like a key
            body = _PEM_BODY.match(text, begin.end(), begin.end() + MAX_PEM)
            at = body.end() if body else begin.end()
        if _has_key(text[begin.end() : at]):
            yield Hit(begin.start(), at, "private_key")


_PEM_RUN = re.compile(r"[A-Za-z0-9+/=]{20,}")


def _has_key(body: str) -> bool:
    """Returns whether most of the text between BEGIN and END is base64, and not code."""
    size = sum(map(str.isalnum, body))
    return size >= 40 and 2 * sum(map(len, _PEM_RUN.findall(body))) >= size


_RUN = re.compile(r"[A-Za-z0-9_+/=.-]{12,}")
_ID = re.compile(
    r"(?:call|toolu|srvtoolu|tooluse|msg|chatcmpl|resp|fc|rs|ws|mcp|req|run|lc_run|ses|prt|item|step"
    r"|thread|conv|evt|event|trace|span|gen|asst|cmpl|functions?)[_.:-]{1,2}[\w.:-]+"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:[._/-][\w.-]{0,20})?"
    r"|[\w-]{0,20}\d{4}-\d\d-\d\d[\w.-]*"
)
"""Forms of ids that agents and providers write, and names of session files with a date."""
_ID_BEFORE = re.compile(
    r"(?:\b(?:ids?|calls?|spans?|runs?|sessions?|messages?|traces?|threads?|observations?|requests?"
    r"|responses?|records?|entr(?:y|ies)|items?|events?|chats?|conversations?|steps?|turns?|parents?"
    r"|agents?|tasks?|uuids?|files?|blobs?|results?|digests?|hash(?:es)?|sha256|commits?)"
    r"|[\w.-]{12,},)[ :=#]{1,3}['\"`(]{0,2}$",
    re.IGNORECASE,
)
_TOKEN_STARTS = tuple(
    literal
    for rule in TOKEN_RULES
    if rule.lead == (0, 0)
    for literal in rule.prefilter
    if len(literal) > 2
)
_TOKEN_START = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, _TOKEN_STARTS))})")


def mask_pieces(text: str) -> str:
    """Masks possible pieces of a secret in a text that may start or end inside one.

    Ids of calls and records look as random as secrets; they are kept if their form or the preceding
    word marks them as ids, unless a part of them starts like a token.
    """
    return _RUN.sub(_masked, text)


def _masked(run: re.Match[str]) -> str:
    piece = run[0]
    if not looks_random(piece) or MARK in piece:
        return piece
    is_id = _ID.fullmatch(piece) or _ID_BEFORE.search(
        run.string, max(0, run.start() - 90), run.start()
    )
    if is_id and not _TOKEN_START.search(piece):
        return piece
    return f"{MARK}CUT"


def scanned_secrets(texts: Iterable[str]) -> list[str]:
    """Returns the findings of the scanner of the extra `secrets`; nothing if it is not installed.

    It returns values, not positions. It examines only the text and contacts no provider.
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
