"""Finds secrets in decoded text: by their own form, by their surroundings, and by their name.

- form or surroundings: the tables of rules (`RULES`)
- a word for secrets nearby, and a value that looks generated: `builder.secrets.nearby`
- a sentence about a password: `builder.secrets.sentences`, `builder.secrets.phrases`
- a word for secrets anywhere around a value that can hardly be anything else:
  `builder.secrets.strong`
- a name: `builder.secrets.assignments`, connected by words or a layout `builder.secrets.connected`,
  and as the header of a column `builder.secrets.tables`
- a block that contains secrets: `builder.secrets.blocks`
- a command that prints one, in a pasted session: `builder.secrets.answers`
- a private key in PEM, complete or cut off: `builder.secrets.pem`
- base64 of a text that contains one of these: `builder.secrets.encoded`
- any of these in JSON that escapes what is not ASCII: `builder.secrets.unescaped`
- any of these in typographic quotation marks: `builder.secrets.quotes`

Versions and public keys are none (`builder.secrets.open_values`).
The search takes linear time, since every repetition is bounded. Our own placeholders are never
secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from builder.secrets import (
    answers,
    assignments,
    blocks,
    connected,
    cookies,
    encoded,
    nearby,
    pem,
    phrases,
    sentences,
    strong,
    tables,
)
from builder.secrets.call_rules import CALL_RULES
from builder.secrets.command_rules import COMMAND_RULES
from builder.secrets.config_rules import CONFIG_RULES
from builder.secrets.context_rules import CONTEXT_RULES
from builder.secrets.dump_rules import DUMP_RULES
from builder.secrets.escapes import outside_escapes
from builder.secrets.form_rules import FORM_RULES
from builder.secrets.grade import is_generated
from builder.secrets.hits import Hit, Joined, apart, remembering
from builder.secrets.open_values import is_open
from builder.secrets.prefilter import (
    LinePrefilter,
    Lines,
    LiteralPrefilter,
    WordPrefilter,
)
from builder.secrets.prose_rules import OTHER_SCRIPT_RULES, PROSE_RULES
from builder.secrets.quotes import straight
from builder.secrets.token_rules import TOKEN_RULES
from builder.secrets.unescaped import unescaped
from builder.secrets.values import entropy, looks_random

MARK = "REDACTED_"
"""The prefix of every placeholder."""

RULES = (
    *TOKEN_RULES,
    *CONTEXT_RULES,
    *CONFIG_RULES,
    *COMMAND_RULES,
    *CALL_RULES,
    *DUMP_RULES,
    *FORM_RULES,
    *PROSE_RULES,
)
"""The rules of all tables."""

KINDS = tuple(sorted({rule.kind for rule in RULES} | {"secret", "aws_secret_key", "private_key"}))
"""All kinds that a hit can have."""

_RULES_IN = LiteralPrefilter((*rule.gate, rule) for rule in RULES)
_OTHER_SCRIPTS = WordPrefilter(word for rule in OTHER_SCRIPT_RULES for word in rule.prefilter)


def find_secrets(text: str) -> tuple[Hit, ...]:
    """Returns the secrets in a decoded text, in order, none overlapping."""
    return secrets_in([text])[0]


@remembering
def secrets_in(texts: Sequence[str]) -> list[tuple[Hit, ...]]:
    """Returns the secrets in each of some texts: those of `find_secrets`."""
    texts = [straight(text) for text in texts]
    return [_found(text, marks) for text, marks in zip(texts, _marked(texts), strict=True)]


def named_secret(name: str, value: str) -> bool:
    """Returns whether the name of a JSON member (`api_key`, `password`) makes its value secret."""
    if MARK in value or is_open(value):
        return False
    return assignments.named_secret(name, value) or cookies.is_header(name, value)


@dataclass(slots=True)
class _Marks:
    """What the prefilters found in a text.

    places         the positions of the literals of rules, as `LiteralPrefilter` returns them
    lines          the lines for each function of `_FINDERS`, by its number there
    other_scripts  whether `OTHER_SCRIPT_RULES` may hit
    """

    places: dict[str, list[int]] = field(default_factory=dict)
    lines: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    other_scripts: bool = False


def _marked(texts: Sequence[str]) -> list[_Marks]:
    """Runs the prefilters once over all texts, joined."""
    joined = Joined(texts)
    marks = [_Marks() for _ in texts]
    for literal, places in _RULES_IN(joined.text).items():
        for at in places:
            number, place = joined.place(at)
            marks[number].places.setdefault(literal, []).append(place)
    for finder, (prefilter, _) in enumerate(_FINDERS):
        for number, start, end in joined.ranges(prefilter(joined.text)):
            marks[number].lines.setdefault(finder, []).append((start, end))
    if not joined.text.isascii():
        for text, mark in zip(texts, marks, strict=True):
            mark.other_scripts = not text.isascii() and _OTHER_SCRIPTS(text)
    return marks


def _found(text: str, marks: _Marks) -> tuple[Hit, ...]:
    hits = list(_as_written(text, marks))
    if (read := unescaped(text)) is not None:
        plain = straight(read.text)
        (seen,) = _marked([plain])
        hits = [*read.whole(hits), *read.original(_as_written(plain, seen))]
    if not hits:
        return ()
    found = apart(outside_escapes(text, hits))
    return tuple(
        hit
        for hit in found
        if MARK not in text[hit.start : hit.end]
        and not _OPEN_BEFORE.search(text, max(0, hit.start - 64), hit.start)
        and not _SEALED.match(text, hit.start, hit.end)
        and not is_open(text[hit.start : hit.end])
    )


def _as_written(text: str, marks: _Marks) -> Iterator[Hit]:
    """Yields the hits in the text as it is, unordered."""
    for rule in _RULES_IN.rules(marks.places):
        for hit in rule.find(text, marks.places):
            yield hit
            if hit.certain and (rest := _WRAPPED.match(text, hit.end)) and is_generated(rest["v"]):
                yield Hit(hit.start, rest.end(), hit.kind)
            if hit.kind == "aws_access_key":
                yield from _aws_secrets(text, hit.start, hit.end)
    if marks.other_scripts:
        for rule in OTHER_SCRIPT_RULES:
            yield from rule.find(text, rule.places(text))
    for finder, lines in marks.lines.items():
        yield from _FINDERS[finder][1](text, lines)


_OPEN_BEFORE = re.compile(
    r"(?:(?:ENC\[AES256_GCM,data|,iv|,tag):[/+]{0,4}|checksum/[\w.-]{1,40}:[ \t]{1,4}[\"']?)\Z"
)
"""The text before what sops has encrypted, and before a checksum in Helm: `checksum/config: `."""
_SEALED = re.compile(r"Ag[A-D][A-Za-z0-9+/]{100}")
"""A value that Sealed Secrets has encrypted with the key of a cluster (RSA of 4,096 bits)."""
_WRAPPED = re.compile(
    r"\\?(?:\r?\n|\\{1,4}n)[+-]?[ \t]{0,8}(?P<v>(?=[^a-z\s]*[a-z])(?=[^A-Z\s]*[A-Z])[\w-]{20,200})"
    r"(?=[\s\"',]|\\|$)",
    re.ASCII,
)
r"""The next line, where a token too long for one line goes on: `\nk3J9sPq0Zx7LmT2vQ8wE4`."""
_AWS_SECRET = re.compile(r"(?:(?<![A-Za-z0-9+/=])|(?<=\\[nrt]))[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
"""A secret key of AWS: `k3J9sPq0Zx7LmT2vQ8wE4rTyk3J9sPq0Zx7LmT2v`."""


def _aws_secrets(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields secret keys without a name within 200 code points of an access key."""
    for match in _AWS_SECRET.finditer(text, max(0, start - 200), end + 240):
        key = match[0]
        if not key.islower() and not key.isupper() and entropy(key) > 4:
            yield Hit(match.start(), match.end(), "aws_secret_key", certain=False)


def _find_decoded(text: str) -> tuple[Hit, ...]:
    """Returns the secrets in a decoded text, but for those that are encoded once more."""
    text = straight(text)
    (marks,) = _marked([text])
    marks.lines.pop(_ENCODED, None)
    return apart(_as_written(text, marks))


_FINDERS: tuple[tuple[LinePrefilter, Callable[[str, Lines], Iterator[Hit]]], ...] = (
    (assignments.LINES, assignments.find_named),
    (connected.LINES, connected.find_connected),
    (tables.LINES, tables.find_in_tables),
    (blocks.LINES, blocks.find_in_blocks),
    (nearby.LINES, nearby.find_nearby),
    (sentences.LINES, sentences.find_in_sentences),
    (phrases.LINES, phrases.find_phrases),
    (strong.LINES, strong.find_strong),
    (answers.LINES, answers.find_in_sessions),
    (pem.LINES, pem.find_keys),
    (encoded.LINES, partial(encoded.find_encoded, find=_find_decoded)),
)
"""Searches of lines, each with its prefilter."""
_ENCODED = len(_FINDERS) - 1

_RUN = re.compile(r"[A-Za-z0-9_+/=.-]{12,}")
_ID = re.compile(
    r"(?:call|toolu|srvtoolu|tooluse|msg|chatcmpl|resp|fc|rs|ws|mcp|req|run|lc_run|ses|prt|item|step"
    r"|thread|conv|evt|event|trace|span|gen|asst|cmpl|functions?)[_.:-]{1,2}[\w.:-]+"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:[._/-][\w.-]{0,20})?"
    r"|[\w-]{0,20}\d{4}-\d\d-\d\d[\w.-]*"
    r"|[\w./=+-]+\.(?:jsonl?|ndjson|db|vscdb|sqlite3?|md|txt|log|ya?ml|parquet|csv|zip|gz|zst|html)\.?"
)
"""An id as agents and providers write it, or the name of a session or file: `toolu_01ab`."""
_ID_BEFORE = re.compile(
    r"(?:\b(?:ids?|calls?|spans?|runs?|sessions?|messages?|traces?|threads?|observations?|requests?"
    r"|responses?|records?|entr(?:y|ies)|items?|events?|chats?|conversations?|steps?|turns?|parents?"
    r"|agents?|tasks?|uuids?|files?|blobs?|results?|digests?|hash(?:es)?|sha256|commits?)"
    r"|[\w.-]{12,},)[ :=#]{1,3}['\"`(]{0,2}$",
    re.IGNORECASE,
)
"""The text before an id: `session id: `."""
_TOKEN_STARTS = tuple(
    literal
    for rule in TOKEN_RULES
    if rule.lead == (0, 0)
    for literal in rule.prefilter
    if len(literal) > 2
)
_TOKEN_START = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, _TOKEN_STARTS))})")
"""The beginning of a token: `AKIA`."""


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


def scanned_secrets(texts: Sequence[str]) -> list[str]:
    """Returns the findings of the scanner of the extra `secrets`; nothing if it is not installed.

    It returns values, not positions. It examines only the texts and contacts no provider.
    """
    if _scanner() is None:
        return []
    return sorted({secret for found in _scanned(texts) for secret in found})


@remembering
def _scanned(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the findings in each text. The scanner reads C strings, which a NUL would end."""
    scan = _scanner()
    assert scan is not None, "asked for without the extra"
    found = (
        {
            finding.secret
            for finding in scan(text.replace("\0", " "))
            if looks_random(finding.secret)
        }
        for text in texts
    )
    return [
        tuple(secret for secret in secrets if len(secret) >= 8 and MARK not in secret)
        for secrets in map(sorted, found)
    ]


_SCANNER_RULES = Path(__file__).with_name("scanner.toml")


@cache
def _scanner() -> Callable[[str], Any] | None:
    try:
        import betterleaks  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return partial(betterleaks.scan_string, config_path=str(_SCANNER_RULES))
