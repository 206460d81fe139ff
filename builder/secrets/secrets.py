"""Finds secrets in decoded text: by their own form, by what is around them, and by their name.

Tokens have a form of their own (tokens.toml); headers, URLs, commands and calls mark a value
(contexts.toml); so do names (`builder.secrets.names`). A gate finds the literals of all rules in
one pass, and a pattern is only tried there. Every repetition is bounded, so that the search takes
linear time. Our own placeholders are never secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from builder.secrets import names
from builder.secrets.grade import entropy, is_password, is_random, is_stand_in
from builder.secrets.hits import Gate, Hit, Joined, apart, outside_escapes, remembering
from builder.secrets.tables import CONTEXTS, TOKENS, VALUES, Rule

MARK = "REDACTED_"
"""The prefix of every placeholder."""
KINDS = tuple(sorted({rule.kind for rule in TOKENS} | {"secret", "aws_secret_key", "private_key"}))
"""All kinds that a hit can have."""
NEAR = 200
"""Code points around a word of a token's `near` in which the token must be; a context has twice."""
_LONGEST = 1000
"""Code points of a match that starts near a literal."""
MAX_PEM = 20_000
"""Maximum code points of a private key, with what a viewer put between its lines."""

_Find = Callable[[str, int, int], Iterator[Hit]]
"""(text, start and end of a literal in it) → the hits there."""

_FILLER = re.compile(r"x{8}|X{8}|\*{8}|0{6}|EXAMPLE")
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{40}$")
_AWS_SECRET = re.compile(r"(?:(?<![A-Za-z0-9+/=])|(?<=\\[nrt]))[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_BEGIN = re.compile(r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_MARK = re.compile(r"-----(?P<edge>BEGIN|END)[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"(?:[A-Za-z0-9+/=:,\s-]|\\{1,4}[nr])*")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{20,}")
_ENCRYPTED = re.compile(
    r"(?:(?:ENC\[AES256_GCM,data|,iv|,tag):[/+]{0,4}|checksum/[\w.-]{1,40}: [\"']?)\Z"
)
"""The text before what sops has encrypted, and before a checksum in Helm: `checksum/config: `."""


def _of_rule(rule: Rule) -> _Find:
    """Returns the search of a rule around a literal."""
    reach = (NEAR if rule.token else 2 * NEAR) if rule.near else rule.back

    def find(text: str, start: int, end: int) -> Iterator[Hit]:
        if not reach:
            match = rule.regex.match(text, start)
            if match is not None:
                yield from _judged(rule, text, match)
                return
            other = rule.other_length.match(text, start) if rule.other_length else None
            if other and is_random(other["v"]) and sum(map(str.isdigit, other["v"])) > 2:
                yield Hit(*other.span(), rule.kind)
            return
        first = max(0, start - reach) if rule.token or rule.back else start
        if rule.near:
            found = rule.regex.finditer(text, first, end + reach + _LONGEST)
        else:
            tried = (rule.regex.match(text, at, start + _LONGEST) for at in range(first, start + 1))
            found = filter(None, tried)
        for match in found:
            if match.start() <= end + reach:
                yield from _judged(rule, text, match)

    return find


def _judged(rule: Rule, text: str, match: re.Match[str]) -> Iterator[Hit]:
    """Yields the secret in a match of a rule, if it is no placeholder and of its grade."""
    group = "v" if "v" in rule.regex.groupindex else 0
    value, (start, end) = match[group], match.span(group)
    if rule.grade == "random" and not is_random(value):
        return
    if rule.token:
        before = text[max(0, start - 40) : start]
        is_in_blob = _BLOB.search(before) and is_random(before) and not before.islower()
        if is_in_blob or _FILLER.search(value):
            return
    elif (
        is_stand_in(value)
        or "EXAMPLE" in value
        or (rule.grade == "password" and not is_password(value, quoted=True, setting=True))
    ):
        return
    yield Hit(start, end, rule.kind, certain=rule.token)
    if rule.kind == "aws_access_key":
        for key in _AWS_SECRET.finditer(text, max(0, start - NEAR), end + NEAR + 40):
            if not key[0].islower() and not key[0].isupper() and entropy(key[0]) > 4:
                yield Hit(key.start(), key.end(), "aws_secret_key", certain=False)


def _find_key(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields the private key in PEM whose first line begins at `start`; it may be cut off."""
    begin = _BEGIN.match(text, start)
    if begin is None:
        return
    mark = _KEY_MARK.search(text, begin.end(), begin.end() + MAX_PEM)
    last = mark if mark is not None and mark["edge"] == "END" else None
    limit = mark.start() if mark is not None else begin.end() + MAX_PEM
    body = _KEY_BODY.match(text, begin.end(), limit)
    end = limit if last is not None else body.end() if body is not None else begin.end()
    size = sum(map(str.isalnum, text[begin.end() : end]))
    runs = sum(map(len, _KEY_RUN.findall(text, begin.end(), end)))
    if size >= 40 and 2 * runs >= size:
        yield Hit(start, last.end() if last is not None else end, "private_key")


def _gates() -> tuple[Gate[_Find], Gate[_Find]]:
    """Returns the gates of what starts a token, in its own case, and of the rest, in lower case."""
    exact: list[tuple[str, _Find]] = [("-----BEGIN", _find_key)]
    lower: list[tuple[str, _Find]] = [(word, names.find_named) for word in names.KEYWORDS]
    for rule in (*TOKENS, *CONTEXTS):
        find = _of_rule(rule)
        if rule.near:
            _WIDE.add(find)
        if rule.token and not rule.back:
            exact += [(literal, find) for literal in rule.start]
        else:
            lower += [(literal.lower(), find) for literal in (*rule.start, *rule.near)]
        lower += [(word, find) for word in rule.near if rule.token and not rule.back]
    return Gate(exact), Gate(lower)


_WIDE: set[_Find] = set()
"""The searches that look far around a literal, and are made once where there are many."""
_ALNUM = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_EXACT, _LOWER = _gates()
_RANKS = {rule.kind: rank for rank, rule in reversed([*enumerate((*TOKENS, *CONTEXTS))])}
"""Of several kinds of one text, the first in the tables is its kind: `sk-ant-` before `sk-`."""


def find_secrets(text: str) -> tuple[Hit, ...]:
    """Returns the secrets in a decoded text, in order, none overlapping."""
    return secrets_in([text])[0]


@remembering
def secrets_in(texts: Sequence[str]) -> list[tuple[Hit, ...]]:
    """Returns the secrets in each of some texts: those of `find_secrets`."""
    joined = Joined(texts)
    hits: dict[int, list[Hit]] = {}
    wide: dict[tuple[_Find, int], list[tuple[int, int]]] = {}
    data = joined.data
    for gate in (_EXACT, _LOWER):
        for at, end, finds in gate(data if gate is _EXACT else data.lower()):
            if gate is _EXACT and at and data[at - 1] in _ALNUM and not _is_escape(data, at):
                continue  # within a word
            number, start = joined.place(at)
            for find in finds:
                if find in _WIDE:
                    wide.setdefault((find, number), []).append((start, start + end - at))
                else:
                    hits.setdefault(number, []).extend(find(texts[number], start, start + end - at))
    for (find, number), places in wide.items():
        for start, end in _regions(places):
            hits.setdefault(number, []).extend(find(texts[number], start, end))
    return [_secrets(text, hits.get(n, [])) for n, text in enumerate(texts)]


def _regions(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the places of literals, those joined around which the same text is searched."""
    regions: list[tuple[int, int]] = []
    for place in sorted(places):
        is_joined = regions and place[0] <= regions[-1][1] + NEAR
        first, last = regions.pop() if is_joined else place
        regions.append((first, max(last, place[1])))
    return regions


def _is_escape(data: bytes, at: int) -> bool:
    """Returns whether an escape may end here: a newline in JSON, of a URL, of a colour."""
    return data[at - 1] == ord("m") or b"\\" in data[at - 2 : at] or b"%" in data[at - 3 : at]


def _secrets(text: str, hits: list[Hit]) -> tuple[Hit, ...]:
    hits.sort(key=lambda hit: _RANKS.get(hit.kind, 0))
    return tuple(
        hit
        for hit in apart(outside_escapes(text, hits))
        if MARK not in text[hit.start : hit.end]
        and not _ENCRYPTED.search(text, max(0, hit.start - 64), hit.start)
    )


def named_secret(name: str, value: str) -> bool:
    """Returns whether the name of a JSON member (`api_key`, `password`) makes its value secret."""
    return MARK not in value and names.named_secret(name, value)


_RUN = re.compile(r"[A-Za-z0-9_+/=.-]{12,}")
_ID = re.compile("|".join(VALUES["id"]))
"""An id as agents and providers write it, or the name of a session or file: `toolu_01ab`."""
_ID_BEFORE = re.compile("|".join(VALUES["before_id"]), re.IGNORECASE)
"""The text before an id: `session id: `."""
_TOKEN_STARTS = sorted(
    {literal for rule in TOKENS if not rule.back for literal in rule.start if len(literal) > 2}
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
    if not is_random(piece) or MARK in piece:
        return piece
    is_id = _ID.fullmatch(piece) or _ID_BEFORE.search(
        run.string, max(0, run.start() - 90), run.start()
    )
    return piece if is_id and not _TOKEN_START.search(piece) else f"{MARK}CUT"


def scanned_secrets(texts: Sequence[str]) -> list[str]:
    """Returns the findings of the scanner of the extra `secrets`; nothing if it is not installed.

    It returns values, not positions. It examines only the texts and contacts no provider.
    """
    if _scanner() is None:
        return []
    return sorted({secret for found in _scanned(texts) for secret in found})


@remembering
def _scanned(texts: Sequence[str]) -> list[set[str]]:
    scanner = _scanner()
    assert scanner is not None, "asked for without the extra"
    found = (scanner.scan(text.encode("utf-8", "replace")) for text in texts)
    return [{one.secret for one in findings if _is_sure(one)} for findings in found]


def _is_sure(finding: Any) -> bool:
    is_ours = MARK in finding.secret or not finding.visible
    return not is_ours and "generic" not in finding.rule_id and is_random(finding.secret)


@cache
def _scanner() -> Any:
    """Returns the scanner of kingfisher-secret-scanner, or None if it is not installed."""
    try:
        import kingfisher_sdk  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return kingfisher_sdk.Scanner(kingfisher_sdk.Rules(), base64=False)
